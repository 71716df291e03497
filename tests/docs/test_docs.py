# SPDX-License-Identifier: BSD-3-Clause
"""The Markdown files: links, length of lines, and that what they name exists: settings, options of tools, paths. Options come
from --help of the tools, settings and algorithms from tables.json, both of the build tree ($build, else build/release); names of
tests, suites and constants from the text of the sources."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import tables

ROOT = Path(__file__).parents[2]
BUILD = ROOT / os.environ.get("build", "build/release")
TOOLS = ("ibcoll_run", "ibcoll_perf", "ibcoll_info", "ibcoll_sim", "ibcoll_trace", "ibcoll_tune")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# Not IBCOLL_RUN_*, IBCOLL_<COLLECTIVE>: a name is whole.
NAME = re.compile(r"\bIBCOLL_[A-Z0-9_]*[A-Z0-9]\b(?!_?[*<])")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]\b")
PATH = re.compile(r"(?<![\w/.$-])(?:runtime|bootstrap|tools|perf|tests|docs)/[\w/-]+(?:\.[a-z]+)?\b(?![\w/*{-])")

SUITE = re.compile(r"\b[Ss]uite +`(\w+)`")
TEST = re.compile(r"`((?:[A-Z]+[a-z]\w*(?:\.\w+)?)|test_\w+)`")


def documents(root=ROOT):
    """The Markdown files of a tree and their lines."""
    paths = [path for path in root.rglob("*.md") if path.relative_to(root).parts[0] not in ("build", ".git")]
    return {path: path.read_text().splitlines() for path in sorted(paths)}


def anchors(lines):
    """The anchors that a page offers: its headings, as web pages of repositories spell them."""
    headings = (line.lstrip("#").strip().lower() for line in lines if re.match(r"#+ ", line))
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


def wrong_links(pages):
    for page, lines in pages.items():
        text = "\n".join(lines)  # the text of a link may continue in the next line
        for link in LINK.finditer(text):
            number, target = text.count("\n", 0, link.end()) + 1, link.group(1)
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists():
                yield f"{page}:{number}: {target}: no such file"
            elif anchor and anchor not in anchors(pages.get(file) or file.read_text().splitlines()):
                yield f"{page}:{number}: {target}: no such heading"


def long_lines(pages):
    for page, lines in pages.items():
        yield from (f"{page}:{number}: {len(line)} columns" for number, line in enumerate(lines, 1) if len(line) > 120)


def documented_values():
    """Of docs/settings.md: each setting, the values that its item lists, and the bold one, the default."""
    for item in re.findall(r"^- (`IBCOLL_.*?)(?=^- |^$)", (ROOT / "docs/settings.md").read_text(), re.M | re.S):
        head = item.split(":")[0]
        if "=" in head:
            names, values = re.findall(r"`(IBCOLL_\w+)`", head), head.split("=")[1]
            for name in names:
                yield name, values.replace("*", ""), re.findall(r"\*\*(\w+)\*\*", values)


def named_in_sources():
    """What the interface and the tools call IBCOLL_ and is no setting: constants, and variables that tools set."""
    names = set()
    for folder in ("runtime/include", "bootstrap", "tools", "tests", "perf", "CMakeLists.txt"):
        path = ROOT / folder
        for file in [path] if path.is_file() else path.rglob("*"):
            if file.is_file() and file.suffix not in (".md", ".pyc") and "docs" not in file.parts:
                names.update(NAME.findall(file.read_text(errors="replace")))
    return names


def suites_and_tests():
    """The suites of tests/run, and the tests: `Suite` and `Suite.Name` of GoogleTest, `test_name` of Python."""
    suites = set(re.findall(r"^ibcoll_suite\((\w+)", (ROOT / "tests/suites.cmake").read_text(), re.M))
    tests = set()
    for file in (ROOT / "tests").rglob("*.cc"):
        for suite, name in re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", file.read_text(), re.M):
            tests.update((suite, f"{suite}.{name}"))
    for file in (ROOT / "tests").rglob("test_*.py"):
        tests.update(re.findall(r"^    def (test_\w+)", file.read_text(), re.M))
    return suites, tests


def own_options(tool):
    """The options that --help of a tool names."""
    text = subprocess.run([BUILD / "bin" / tool, "--help"], capture_output=True, text=True, timeout=20).stdout
    return set(OPTION.findall(text))


def launcher_takes(option):
    """As an option of another launcher, which --help does not name."""
    refused = subprocess.run([BUILD / "bin/ibcoll_run", option], capture_output=True, text=True, timeout=20).stderr
    return option not in refused


class Documents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages = documents()

    def assert_none(self, found):
        found = sorted(set(found))
        if found:
            self.fail("\n" + "\n".join(found))

    def named(self, pattern, pages=None):
        for page, lines in (pages or self.pages).items():
            for number, line in enumerate(lines, 1):
                for name in pattern.findall(line):
                    yield f"{page.relative_to(ROOT)}:{number}", line, name

    def test_links_resolve(self):
        self.assert_none(wrong_links(self.pages))

    def test_lines_end_at_120_columns(self):
        self.assert_none(long_lines(self.pages))

    def test_settings_that_are_named_exist(self):
        known = tables.settings().keys() | named_in_sources()
        self.assert_none(f"{where}: {name} is no setting" for where, _, name in self.named(NAME) if name not in known)

    def test_settings_that_may_differ_between_ranks(self):
        in_code = {name for name, row in tables.settings().items() if row["ranks"] == "may differ"}
        items = re.findall(r"^- `(IBCOLL_\w+)`(.*?)(?=^- |^$)", (ROOT / "docs/settings.md").read_text(), re.M | re.S)
        self.assertEqual({name for name, text in items if "May differ." in text}, in_code)

    def test_settings_are_documented(self):
        text = (ROOT / "docs/settings.md").read_text()
        self.assertGreater(len(tables.settings()), 30)
        self.assert_none(f"docs/settings.md lacks {name}" for name in tables.settings() if f"`{name}`" not in text)

    def test_algorithms_are_documented(self):
        text = (ROOT / "docs/algorithms/README.md").read_text()
        # The page has node_NAME as "NAME, node_".
        self.assert_none(f"docs/algorithms/README.md lacks {algorithm['name']} of {row['name']}"
                         for row in tables.read()["collectives"] for algorithm in row["algorithms"]
                         if not re.search(rf"\b{algorithm['name'].removeprefix('node_')}\b", text))

    def test_values_of_settings_are_those_of_the_code(self):
        in_code = tables.settings()
        items = list(documented_values())
        self.assertGreater(len(items), 20)
        for name, values, bold in items:
            row = in_code[name]
            with self.subTest(name):
                self.assertEqual(bold, [row["default"]])
                limits = re.search(r"\w+ to \w+", values)
                if row["kind"] == "choice":
                    self.assertEqual(set(re.split(r",|\bor\b|\s", values)) - {""},
                                     set(row["allowed"].removeprefix("one of ").split(", ")))
                elif limits:
                    self.assertRegex(row["allowed"], rf" from {limits[0]}\b")

    def test_paths_that_are_named_exist(self):
        self.assert_none(f"{where}: {name}: no such file" for where, _, name in self.named(PATH)
                         if not (ROOT / name).exists() and not (ROOT / name.rstrip(".")).exists())

    def test_tests_that_are_named_exist(self):
        suites, tests = suites_and_tests()
        for name in ("reliability.md", "security.md"):
            page = {ROOT / "docs" / name: self.pages[ROOT / "docs" / name]}
            text = {path: [" ".join(lines)] for path, lines in page.items()}
            found = list(self.named(TEST, page))
            self.assertGreater(len(found), 3)
            self.assert_none(f"{where}: {test}: no such test" for where, _, test in found if test not in tests)
            self.assert_none(f"{name}: {suite}: no such suite" for _, _, suite in self.named(SUITE, text) if suite not in suites)

    def test_options_on_the_pages_of_tools_exist(self):
        tools = {tool for tool in TOOLS if (BUILD / "bin" / tool).exists()}
        if not tools:
            self.skipTest(f"no tools in {BUILD / 'bin'}")
        options = {tool: own_options(tool) for tool in tools}
        for tool in tools:
            page = ROOT / "docs" / f"{tool}.md"
            if not page.exists():
                continue
            text = "\n".join(self.pages[page])
            known = set().union(*(options[other] for other in tools if other in text))
            for where, _, name in self.named(OPTION, {page: self.pages[page]}):
                with self.subTest(where=where, option=name):
                    self.assertTrue(name in known or "ibcoll_run" in text and launcher_takes(name))


class TheChecksThemselves(unittest.TestCase):
    """Each finds what it is for."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.page = Path(folder.name).resolve() / "page.md"

    def pages(self, text):
        self.page.write_text(text)
        return documents(self.page.parent)

    def test_a_link_to_nowhere(self):
        pages = self.pages("[a](gone.md) [b](page.md#a-b) [c](#no) [d\ne](gone.md)\n# A: b\n")
        self.assertEqual(len(list(wrong_links(pages))), 3)

    def test_a_long_line(self):
        self.assertEqual(len(list(long_lines(self.pages("x" * 120 + "\n" + "y" * 121)))), 1)

    def test_names(self):
        self.assertEqual(NAME.findall("IBCOLL_RUN_* IBCOLL_<X> IBCOLL_LOG"), ["IBCOLL_LOG"])
        self.assertEqual(TEST.findall("`Remote.ABusyRank` `DyingRank`, `test_a_b`; `TCP_INFO` `UCX`"),
                         ["Remote.ABusyRank", "DyingRank", "test_a_b"])
        self.assertEqual(SUITE.findall("Suite `a`, suite   `b_c`: `Test`"), ["a", "b_c"])
        self.assertEqual(OPTION.findall("`--bytes` -x--no a--b -- --net-x."), ["--bytes", "--net-x"])
