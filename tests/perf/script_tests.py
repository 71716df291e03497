# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of perf/guidelines and perf/regret share: the script starts a program that prints known times."""

import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = (ROOT / os.environ.get("build", "build/release")).resolve() / "bin"


def run_built(name, *options):
    """The program itself, on three ranks, with short times."""
    return subprocess.run([BIN / "ibcoll_run", "-n", "3", BIN / name, "--most", "64", "--seconds", "0.001", *options],
                          capture_output=True, text=True, check=False, timeout=100,
                          env={**os.environ, "IBCOLL_TUNING": "off"})


class ScriptTests:
    """A base beside unittest.TestCase. `words`: the script and its options; `name`: the program that it starts."""
    words = []
    name = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix=f"{self.name}.")
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)

    def program(self, text):
        (self.build / "bin").mkdir()
        for name in (self.name, "ibcoll_run"):
            file = self.build / "bin" / name
            file.write_text(text if name == self.name else '#!/bin/bash\nshift 2\nexec "$@"\n')
            file.chmod(0o755)

    def run_script(self, *options):
        return subprocess.run([ROOT / self.words[0], "--build", self.build, *self.words[1:], *options],
                              capture_output=True, text=True, check=False, timeout=60)

    def test_a_program_that_fails(self):
        self.program('#!/bin/bash\necho "no luck today" >&2\nexit 3\n')
        done = self.run_script()
        self.assertEqual(done.returncode, 1)
        self.assertIn("no luck today", done.stderr)

    def test_a_tree_without_the_program(self):
        done = self.run_script()
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{self.name} does not exist; build it first: ninja -C", done.stderr)
