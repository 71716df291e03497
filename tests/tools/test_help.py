# SPDX-License-Identifier: BSD-3-Clause
"""What the command lines of all tools have in common: --help, misspelt options, completions, and manual pages."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = (ROOT / os.environ.get("build", "build/release")).resolve() / "bin"
TOOLS = ("ibcoll_run", "ibcoll_info", "ibcoll_mpi", "ibcoll_perf", "ibcoll_sim", "ibcoll_trace", "ibcoll_tune")
MISSPELT = {"ibcoll_run": ("--tag-ouput", "--tag-output"), "ibcoll_info": ("--algoritms", "--algorithms"),
            "ibcoll_mpi": ("--trce", "--trace"), "ibcoll_perf": ("--byets=8", "--bytes"), "ibcoll_sim": ("--rank", "--ranks"),
            "ibcoll_trace": ("--htlm", "--html"), "ibcoll_tune": ("--secons", "--seconds")}


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=50, check=False)


def completed(tool, *words):
    """What bash offers for the last word."""
    script = """source tools/completions/ibcoll; tool=$1; shift; COMP_WORDS=("${tool##*/}" "$@"); COMP_CWORD=$#
                _ibcoll "$tool"; printf '%s\\n' "${COMPREPLY[@]}" """
    return subprocess.run(["bash", "-c", script, "bash", BIN / tool, *words], cwd=ROOT, capture_output=True, text=True,
                          timeout=50, check=True).stdout.split()


class CommandLines(unittest.TestCase):
    def test_help_fits_80_columns_and_begins_with_examples(self):
        for tool in TOOLS:
            text = run(BIN / tool, "--help").stdout
            with self.subTest(tool=tool):
                self.assertEqual([line for line in text.splitlines() if len(line) > 80], [])
                self.assertLess(text.index("\nExamples:\n  "), text.index("\nOptions:\n"))
                self.assertIn(tool, text.split("\nExamples:\n")[1].split("\nUsage:")[0])
                self.assertTrue(text.endswith("\n"))

    def test_a_misspelt_option_names_the_nearest(self):
        for tool, (wrong, right) in MISSPELT.items():
            done = run(BIN / tool, wrong, "x")
            with self.subTest(tool=tool):
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, rf"option {wrong.split('=')[0]}; did you mean {right}\?; see {tool} --help\n$")

    def test_no_option_is_near(self):
        self.assertEqual(run(BIN / "ibcoll_sim", "--frobnicate").stderr,
                         "ibcoll_sim: there is no option --frobnicate; see ibcoll_sim --help\n")

    def test_bash_completes(self):
        self.assertEqual(completed("ibcoll_perf", "--arr"), ["--arrival"])
        self.assertEqual(completed("ibcoll_perf", "--calls", ""), ["persistent", "blocking", "oneshot"])
        self.assertEqual(completed("ibcoll_sim", "allred"), ["allreduce"])
        self.assertEqual(completed("ibcoll_run", "--net", "v"), ["verbs"])
        self.assertIn("--hostfile", completed("ibcoll_run", "--host"))
        self.assertEqual(completed("ibcoll_trace", "READM"), ["README.md"])

    def test_every_function_and_tool_has_a_manual_page(self):
        header = re.sub(r"/\*.*?\*/", "", (ROOT / "runtime/include/ibcoll.h").read_text(), flags=re.S)
        functions = set(re.findall(r"\b(ibcoll_\w+)\(", header))
        with tempfile.TemporaryDirectory() as folder:
            done = run(ROOT / "tools/manuals/make", BIN.parent, folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            pages = {page.name: page.read_text() for page in Path(folder).iterdir()}
        self.assertEqual(set(pages), {f"{name}.3" for name in functions} | {f"{tool}.1" for tool in TOOLS} | {"ibcoll.7"})
        self.assertIn("blocks until the request is complete", pages["ibcoll_wait.3"])
        self.assertIn("requests.c", pages["ibcoll_wait.3"])
        for tool in TOOLS:
            self.assertRegex(pages[f"{tool}.1"], r"(?i)\.S[SH] \"?examples")
