#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the unittest cases of files and says what each took.

`python3 tests/cases.py [--part K/N] [-f] PATH... [NAME...]`: a path is a test file, or a folder with files test_*.py; a name is
a Class or Class.test of any of them. The build tree is $build, else build/release. One line per case as GoogleTest prints it, with the processor time of the processes that
the case started; tests/suite reads these lines."""

import argparse
import importlib
import os
import pathlib
import re
import sys
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tools/tables"))  # tables.py, for all tests


def part_of(text):
    """K/N as (K, N)."""
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"'{text}' is not K/N with K from 1 to N")
    return int(part), int(parts)


def processor_seconds():
    now = os.times()
    return now.user + now.system + now.children_user + now.children_system


class Result(unittest.TextTestResult):
    """One block of lines per case, in the words of GoogleTest."""

    def startTest(self, test):
        self.before = len(self.failures) + len(self.errors) + len(self.unexpectedSuccesses)
        self.skipped_before = len(self.skipped)
        self.begun = time.monotonic(), processor_seconds()
        self.stream.writeln(f"[ RUN      ] {test.id()}")
        self.stream.flush()
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        clock, processor = (now - then for now, then in zip((time.monotonic(), processor_seconds()), self.begun))
        word = "      OK"
        if len(self.failures) + len(self.errors) + len(self.unexpectedSuccesses) > self.before:
            word = " FAILED "
        elif len(self.skipped) > self.skipped_before:
            word = " SKIPPED"
        self.stream.writeln(f"[ {word} ] {test.id()} ({clock * 1000:.0f} ms, {processor * 1000:.0f} ms of processor time)")
        self.stream.flush()


def files_of(path):
    return sorted(path.glob("test_*.py")) if path.is_dir() else [path]


def load(file):
    """The module of a test file, as if its folder were the program's."""
    path = file.resolve()
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    return importlib.import_module(path.stem)


def cases(suite):
    """The cases of nested suites, one by one."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from cases(test)
        else:
            yield test


def usual_cases(module):
    """What the module runs where nothing is named: all, or what its load_tests() chooses."""
    return cases(unittest.defaultTestLoader.loadTestsFromModule(module))


def all_cases(module):
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, unittest.TestCase):
            yield from cases(unittest.defaultTestLoader.loadTestsFromTestCase(value))


def chosen(modules, names):
    """The usual cases of the modules, or those that the names name. A class that two modules know is one."""
    found = {}
    for module in modules:
        for test in (all_cases if names else usual_cases)(module):
            found.setdefault(test.id(), test)
    if not names:
        return list(found.values())
    wanted = {}
    for name in names:
        matching = {one: test for one, test in found.items() if re.search(rf"(^|\.){re.escape(name)}(\.|$)", one)}
        if not matching:
            sys.exit(f"tests/cases.py: no case is called {name}")
        wanted.update(matching)
    return list(wanted.values())


def main():
    parser = argparse.ArgumentParser(prog="tests/cases.py", description=__doc__.splitlines()[0])
    parser.add_argument("--part", type=part_of, default=(1, 1), metavar="K/N", help="every N-th case, from the K-th on")
    parser.add_argument("-f", dest="fail_fast", action="store_true", help="stop at the first failure")
    parser.add_argument("words", nargs="+", metavar="PATH... NAME...")
    options = parser.parse_args()
    paths = [word for word in options.words if "/" in word or word.endswith(".py")]
    files = [file for path in paths for file in files_of(pathlib.Path(path))]
    if not files:
        parser.error("no test file is given")
    if missing := [str(file) for file in files if not file.is_file()]:
        parser.error(f"there is no {missing[0]}")
    tests = chosen([load(file) for file in files], [word for word in options.words if word not in paths])
    part, parts = options.part
    result = unittest.TextTestRunner(resultclass=Result, failfast=options.fail_fast, verbosity=0).run(
        unittest.TestSuite(tests[part - 1::parts]))
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
