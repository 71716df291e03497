# SPDX-License-Identifier: BSD-3-Clause
"""The binary interface of libibcoll.so is the one that tests/abi/libibcoll.abi describes, and changes with CHANGELOG.md."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import description
from description import KEPT, ROOT

HEADER = ROOT / "runtime/include/ibcoll.h"
BUILD = ROOT / os.environ.get("build", "build/release")
ADVICE = ("\nIf that is meant: `tests/abi/renew`, and commit tests/abi/libibcoll.abi together with a line in "
          "CHANGELOG.md.\n"
          "Functions, and fields at the end of structs with a size, may be added; nothing else may change within a SONAME.")
SMALL = """#include <stddef.h>
struct args { size_t struct_size; int root;%s };
int first(const struct args* args) { return args->root; }
"""


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, timeout=20, check=False)


class Interface(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ibcoll_abi.")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_it_is_as_described(self):
        now = self.folder / "now.abi"
        description.describe(BUILD / "tests/abi/libibcoll_abi.so", now)
        status, text = description.differences(KEPT, now)
        self.assertEqual(status, 0, "the binary interface has changed:\n" + text + ADVICE)

    def test_the_description_has_all_of_the_header(self):
        text = KEPT.read_text()
        header = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
        functions = re.findall(r"\b(ibcoll_\w+)\(", header)
        self.assertGreater(len(functions), 50)
        for name in functions:
            self.assertTrue(f"mangled-name='{name}'" in text, f"ibcoll.h declares {name}." + ADVICE)
        for struct in ("ibcoll_bootstrap", "ibcoll_context_params", "ibcoll_members", "ibcoll_collective_args"):
            self.assertRegex(text, rf"class-decl name='{struct}' size-in-bits")

    def test_it_changes_together_with_the_changelog(self):
        if git("rev-parse", "HEAD").returncode:
            self.skipTest("no clone of git")
        names = ("tests/abi/libibcoll.abi", "CHANGELOG.md")
        changed = git("diff", "--name-only", "HEAD", "--", *names).stdout.split()
        if names[0] not in changed:
            last = git("log", "-1", "--format=%H", "--", names[0]).stdout.strip()
            changed = git("show", "--format=", "--name-only", last, "--", *names).stdout.split() if last else list(names)
        self.assertEqual(sorted(changed), sorted(names),
                         "tests/abi/libibcoll.abi changes in a commit that also changes CHANGELOG.md")

    def test_the_newest_version_of_the_changelog(self):
        header = re.findall(r"#define IBCOLL_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", HEADER.read_text())
        changes = re.search(r"^## ([\d.]+)", (ROOT / "CHANGELOG.md").read_text(), re.M).group(1)
        self.assertEqual(changes, ".".join(header))

    def library(self, name, text):
        source, made = self.folder / f"{name}.c", self.folder / f"{name}.abi"
        source.write_text(text)
        library = self.folder / f"{name}.so"
        subprocess.run(["gcc", "-g", "-shared", "-fPIC", source, "-o", library], check=True, timeout=30)
        description.describe(library, made, self.folder)
        return made

    def test_what_it_finds(self):
        second, third = "int second(void) { return 2; }\n", "int third(void) { return 3; }\n"
        old = self.library("old", SMALL % "" + second)
        self.assertEqual(description.differences(old, old)[0], 0)
        for name, text, removed in (("added", SMALL % "" + second + third, False),
                                    ("grown", SMALL % " int more;" + second, False), ("gone", SMALL % "", True)):
            status, said = description.differences(old, self.library(name, text))
            self.assertNotEqual(status, 0, said)
            self.assertEqual(bool(status & description.REMOVED), removed, said)
