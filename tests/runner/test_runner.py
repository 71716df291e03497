# SPDX-License-Identifier: BSD-3-Clause
"""tests/cases.py, tests/suite and tests/run themselves, with cases and suites that are made here."""

import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
CASES = """import unittest
class Some(unittest.TestCase):
  def test_a(self): pass
  def test_b(self): self.fail("b is wrong")
  def test_c(self): self.skipTest("not here")
class Others(unittest.TestCase):
  def test_d(self): pass
"""


class Runner(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ibcoll_runner.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "test_made.py"
        self.file.write_text(CASES)

    def run_words(self, *words, seconds=60, **environment):
        return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=seconds,
                              check=False, env={**os.environ, **{name: str(value) for name, value in environment.items()}})

    def cases(self, *words):
        """The exit code, and what ran as {case: result}."""
        done = self.run_words(sys.executable, TESTS / "cases.py", *words)
        return done.returncode, dict(reversed(pair) for pair in re.findall(
            r"^\[ +(OK|FAILED|SKIPPED) +\] test_made\.(\S+) \(\d+ ms, \d+ ms of processor time\)$", done.stderr, re.M))

    def test_each_case_has_its_result(self):
        everything = {"Some.test_a": "OK", "Some.test_b": "FAILED", "Some.test_c": "SKIPPED", "Others.test_d": "OK"}
        self.assertEqual(self.cases(self.file), (1, everything))
        self.assertEqual(self.cases(self.folder), (1, everything))

    def test_cases_by_name(self):
        self.assertEqual(self.cases(self.file, "Others", "Some.test_a"),
                         (0, {"Others.test_d": "OK", "Some.test_a": "OK"}))
        self.assertEqual(self.cases(self.file, "test_made.Others"), (0, {"Others.test_d": "OK"}))
        self.assertEqual(self.cases("-f", self.file, "Some"), (1, {"Some.test_a": "OK", "Some.test_b": "FAILED"}))

    def test_parts_have_each_case_once(self):
        parts = [self.cases(self.file, "--part", f"{part}/3")[1] for part in (1, 2, 3)]
        self.assertEqual(sorted(case for part in parts for case in part),
                         ["Others.test_d", "Some.test_a", "Some.test_b", "Some.test_c"])

    def test_mistakes(self):
        for text in ("x", "1", "/", "0/2", "3/2", "1/2/3"):
            done = self.run_words(sys.executable, TESTS / "cases.py", self.file, "--part", text)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"error: argument --part: '{text}' is not K/N", done.stderr)
        for words, status, said in (((self.file, "Nobody"), 1, "no case is called Nobody"),
                                    ((self.folder / "test_none.py",), 2, "there is no"),
                                    (("Some",), 2, "no test file is given")):
            done = self.run_words(sys.executable, TESTS / "cases.py", *words)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(said, done.stderr)

    def test_a_suite_writes_its_line_and_the_times_of_its_cases(self):
        command = (f"{sys.executable} '{TESTS}/cases.py' {self.file}; "
                   "echo '[       OK ] Of/Some.Test/4, where GetParam() = (1 2) (7 ms)'; exit 1")
        done = self.run_words(TESTS / "suite", "made", "30", command, build=self.folder, builds=self.folder,
                              verbose="no")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^made +FAILED +\d+ s +\d+ s +0 s +0 s  1 of 3 cases, 1 skipped$")
        self.assertIn("b is wrong", done.stdout)
        with open(self.folder / "tests/times.csv", encoding="utf-8") as file:
            rows = {row["case"]: row for row in csv.DictReader(file)}
        self.assertEqual({case: row["result"] for case, row in rows.items()}, {
            "test_made.Some.test_a": "OK", "test_made.Some.test_b": "FAILED", "test_made.Some.test_c": "SKIPPED",
            "test_made.Others.test_d": "OK", "Of/Some.Test/4": "OK"})
        self.assertEqual((rows["Of/Some.Test/4"]["suite"], rows["Of/Some.Test/4"]["ms"]), ("made", "7"))

    def test_a_checkout_with_spaces_in_its_path(self):
        root = self.folder / "a clone"
        (root / "tests").mkdir(parents=True)
        (root / "build/release/bin").mkdir(parents=True)
        shutil.copy(TESTS / "suite", root / "tests")
        program = root / "build/release/bin/program"
        program.write_text("#!/bin/sh\necho 1 passed, 0 failed\n")
        program.chmod(0o755)
        done = self.run_words(root / "tests/suite", "made", "30", 'all_of "$build/bin/program --of $build"',
                              build=root / "build/release", builds=root / "build", verbose="no")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue((root / "build/tests/made.log").exists())
        done = self.run_words(TESTS / "run", "-B", self.folder / "a build", "format")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there must be no space in its path", done.stderr)

    def build_tree(self, tree, before="true", **environment):
        """tools/build_tree after a command as root, in a mount namespace of its own."""
        return self.run_words("unshare", "--mount", "bash", "-c", f"{before} && exec tools/build_tree release '{tree}' -n",
                              **environment)

    @unittest.skipIf(os.geteuid(), "only root mounts")
    def test_a_full_disk_is_named(self):
        done = self.build_tree(self.folder, f"mount -t tmpfs -o size=64K none {self.folder}")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"0 MB are left where {self.folder} is; a build takes 1 GB. Make room and repeat", done.stderr)

    @unittest.skipIf(os.geteuid(), "only root mounts")
    def test_a_run_on_a_full_disk_fails_and_the_next_one_goes_on(self):
        """The disk is full before the first run, and after the second one has begun."""
        tree = self.folder / "b"
        done = self.run_words("unshare", "--mount", "bash", "-c", f"""
            mount -t tmpfs -o size=64K none '{self.folder}' || exit 9
            '{TESTS}/run' -B '{tree}' mutants; echo "first $?"
            mount -o remount,size=52M '{self.folder}'
            (for ((i = 0; i < 600; ++i)); do [ ! -s '{tree}/tests/ctest.log' ] || break; sleep 0.05; done
             cat /dev/zero >'{self.folder}/fill') 2>/dev/null &
            '{TESTS}/run' -B '{tree}' mutants; echo "second $?"
            wait; rm '{self.folder}/fill'
            mount -o remount,size=1G '{self.folder}'
            '{TESTS}/run' -B '{tree}' mutants; echo "third $?" """, seconds=200)
        first, second, third = re.split(r"first \d+\n|second \d+\n", done.stdout)
        self.assertEqual(re.findall(r"^(?:first|second|third) \d+$", done.stdout, re.M),
                         ["first 1", "second 1", "third 0"], done.stdout + done.stderr)
        self.assertEqual(first, "0 passed, 1 failed\n")
        self.assertRegex(second, r"(?m)^0 passed, 1 failed\n\Z")
        self.assertRegex(third, r"(?m)^[1-9]\d* passed, 0 failed\n")
        said = f"MB are left where {tree} is; a build takes 1 GB. Make room and repeat"
        self.assertGreaterEqual(done.stderr.count(said), 2, done.stderr)

    def old_compiler(self):
        compiler = self.folder / "g++-9"
        compiler.write_text("#!/bin/bash\nexec g++ -U__GNUC__ -D__GNUC__=9 -Wno-builtin-macro-redefined \"$@\"\n")
        compiler.chmod(0o755)
        return compiler

    def test_a_compiler_that_is_too_old_is_named(self):
        too_old = r"g\+\+-9 is GNU 9\.\d+\.\d+, and ibcoll needs 12 or later\. Install it"
        done = self.run_words("cmake", "-G", "Ninja", "-S", TESTS.parent, "-B", self.folder / "a tree",
                              CXX=self.old_compiler())
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(" ".join(done.stderr.split()), too_old)
        done = self.run_words(TESTS / "run", "-B", self.folder / "b", "mutants", "layering", CXX=self.old_compiler())
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(re.findall(too_old, " ".join(done.stdout.replace(" | ", " ").split()))), 1, done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "0 passed, 2 failed")

    def test_who_is_not_root_reads_what_an_administrator_types(self):
        """A system without packages and without sudo."""
        tools = self.folder / "tools"
        tools.mkdir()
        for name, script in (("id", "echo 1000"), ("dpkg-query", "exit 1")):
            (tools / name).write_text(f"#!/bin/bash\n{script}\n")
            (tools / name).chmod(0o755)
        for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
            for file in pathlib.Path(folder).iterdir():
                if file.name != "sudo" and not (tools / file.name).exists():
                    (tools / file.name).symlink_to(file)
        for words, package in ((("tools/quickstart",), "cmake"),
                               (("tests/run", "-B", self.folder / "b", "mutants"), "clang-format")):
            done = self.run_words(TESTS.parent / words[0], *words[1:], PATH=tools)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertRegex(done.stderr, rf"let an administrator run: apt-get install .*\b{package}\b")

    def test_the_compiler_of_the_preset_is_the_package_that_is_installed(self):
        presets = json.loads((TESTS.parent / "CMakePresets.json").read_text())["configurePresets"]
        compiler = next(preset for preset in presets if preset["name"] == "clang")["cacheVariables"]["CMAKE_C_COMPILER"]
        self.assertIn(f'  [clang]="{compiler}"\n', (TESTS.parent / "tools/install_packages").read_text())

    def test_packages_without_root_or_network(self):
        copy = self.folder / "install_packages"
        text = (TESTS.parent / "tools/install_packages").read_text()
        copy.write_text(text.replace("[build]=\"", "[build]=\"ibcoll-no-such-package "))
        copy.chmod(0o755)
        tools = self.folder / "tools"
        tools.mkdir()
        for name, script in (("id", "echo 1000"), ("sudo", "exit 1")):
            (tools / name).write_text(f"#!/bin/bash\n{script}\n")
            (tools / name).chmod(0o755)
        done = self.run_words(copy, PATH=f"{tools}:{os.environ['PATH']}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("apt-get failed (its last lines are above); is the network there", done.stderr)
        (tools / "sudo").unlink()
        without = ":".join(folder for folder in os.environ["PATH"].split(":") if not os.path.exists(f"{folder}/sudo"))
        if all(shutil.which(word, path=without) for word in ("apt-get", "dpkg-query", "sed", "tr")):
            done = self.run_words(copy, PATH=f"{tools}:{without}")
            self.assertIn("let an administrator run: apt-get install ", done.stderr)

    def test_debian_builds_with_all_that_a_build_takes(self):
        """A library that is not there leaves out what needs it, and says nothing."""
        known = dict(line.split(": ", 1) for line in self.run_words(TESTS.parent / "tools/install_packages", "-h").stdout.splitlines()
                     if ": " in line and line.split(": ")[0].isalpha())
        control = (TESTS.parent / "debian/control").read_text().split("\n\n")[0]
        depends = {line.split()[0].rstrip(",") for line in control.split("Build-Depends:")[1].splitlines()}
        self.assertEqual(set(known["build"].split()) - depends, {"g++"}, "g++ is always there")

    def test_sweeps_are_named_where_they_are_asked_for(self):
        usual, everything = (self.run_words(TESTS / "run", "-l", *words).stdout.split() for words in ((), ("--all",)))
        self.assertIn("unit", usual)
        self.assertEqual([name for name in everything if name in usual], usual)
        self.assertIn("sweep_parts", set(everything) - set(usual))
        for words in (("-r", "0"), ("-r",), ("--every",), ("nosuch",), ("-B",)):
            self.assertEqual(self.run_words(TESTS / "run", *words).returncode, 2, words)
