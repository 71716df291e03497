# SPDX-License-Identifier: BSD-3-Clause
"""Sources keep the rules for co_await, and the check finds what breaks one."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import await_rules  # noqa: E402

ROOT = Path(__file__).parents[2]


def found(text):
    return [rule for _, rule in await_rules.violations(text)]


class ThisTree(unittest.TestCase):
    def test_every_source_keeps_the_rules(self):
        violations = list(await_rules.in_tree(ROOT))
        self.assertFalse(violations, "\n" + "\n".join(violations))

    def test_a_violation_is_named_with_file_and_line(self):
        bad = {"runtime/collectives/a.cc": "Task run(Comm& c) {\n  co_await c.take(Pair{1, 2});\n}\n",
               "tests/b.h": "Task run(Comm& c, Args& a);\n", "perf/c.cc": "f(Pair{1, 2});\n"}
        with tempfile.TemporaryDirectory() as folder:
            for name, text in bad.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            self.assertEqual(list(await_rules.in_tree(Path(folder))), [
                f"runtime/collectives/a.cc:2: {await_rules.BRACES}", f"tests/b.h:1: {await_rules.REFERENCE}"])


class Statements(unittest.TestCase):
    """Each stands in the body of a task."""

    BAD = [
        (await_rules.LAMBDA, "co_await c.until([&] { return done; });"),
        (await_rules.LAMBDA, "co_await c.until([at, n](int i) -> bool { return at + i < n; });"),
        (await_rules.LAMBDA, "const int from = co_await c.next(), to = find([=] { return; });"),
        (await_rules.BRACES, "co_await c.take(Pair{1, 2});"),
        (await_rules.BRACES, "f(Pair{1, 2}, co_await c.next());"),
        (await_rules.BRACES, "f(co_await c.next(),\n  // its size\n  {1, 2});"),
        (await_rules.BRACES, "if (x) co_await c.take({});"),
        (await_rules.BRACES, "if (co_await c.take(Pair{1, 2})) return;"),
        (await_rules.BRACES, "const Pair pair{co_await c.next(), 2};"),
        (await_rules.CONDITIONAL, "co_await c.take(x ? 1 : 2);"),
        (await_rules.CONDITIONAL, "const int to = x ? co_await c.next() : co_await c.last();"),
        (await_rules.CONDITIONAL, "for (int i = co_await c.next() ? 1 : 2; i < n; ++i) f(i);"),
        (await_rules.BINDING, "auto [from, bytes] = co_await c.next();"),
        (await_rules.BINDING, "const auto& [from, bytes] = co_await c.next();"),
        (await_rules.CATCH, "try { f(); } catch (const Error& error) { if (x) co_await c.flushed(); }"),
        (await_rules.CONDITIONAL, "task = [](Comm& c) -> Task { co_await c.take(x ? 1 : 2); };"),
        (await_rules.REFERENCE, "task = [](Comm& c, const Args& a) -> Task { co_await c.next(); };"),
    ]
    GOOD = [
        "const Pair pair{1, 2}; co_await c.take(pair);",
        "const int n = x ? 1 : 2; co_await c.take(n);",
        "auto [a, b] = pair; co_await c.take(a);",
        "auto done = [&] { return n == 1; }; while (!done()) co_await c.next();",
        "if (co_await c.next()) { f(Pair{1, 2}); g(x ? 1 : 2); h([&] { return x; }); }",
        "if (x ? y : z) co_await c.next(); else co_await c.last();",
        "for (const int i : {1, 2}) { co_await c.take(i); }",
        "for (int i = x ? 1 : 2; i < n; ++i) co_await c.take(i);",
        "switch (x) { case 1: co_await c.next(); break; default: co_await c.last(); }",
        "do { co_await c.next(); } while (x ? y : z);",
        "co_await c.until([](int i) { return i > 0; });",
        "co_await c.take(parts[i], own[c.rank()]);",
        "co_await c.take(x);  // not Pair{1, 2}, [&] {} or x ? 1 : 2",
        "co_await c.take(\"x ? {1} : 2\", '?', 1'000'000, R\"(x ? 1)\");",
        "/* x ? 1 : 2 */ co_await\n    c.take(x);",
        "try { co_await c.next(); } catch (...) { f(Pair{1, 2}); } co_await c.last();",
        "task = [&](Comm& c) -> Task { co_await c.next(); };",
    ]

    def test_each_bad_statement_is_found(self):
        for rule, statement in self.BAD:
            with self.subTest(statement):
                task = f"Task run(Comm& c) {{ {statement} }}"
                self.assertEqual(found(f"struct S : Base {{ S() : a{{1}} {{}} {task} }};"), [rule])

    def test_good_statements_are_not(self):
        for statement in self.GOOD:
            with self.subTest(statement):
                self.assertEqual(found(f"namespace n {{\nTask run(Comm& c) noexcept {{ {statement}\n}} }}"), [])

    def test_the_line_is_that_of_what_is_forbidden(self):
        text = "// one\n/* two\nthree */ Task run(Comm& c) {\n  co_await c.take(1,\n      x ? 1 : 2);\n}\n"
        self.assertEqual(await_rules.violations(text), [(5, await_rules.CONDITIONAL)])


class Tasks(unittest.TestCase):
    BAD = [
        "Task run(Comm& c, Args& a);",
        "inline Task a::run(Comm&, const Args&) {}",
        "auto run(Comm& c, Args&& a) -> Task;",
        "template <typename T> Task run(const Comm& c, T t) {}",
        "Task run(Comm& c, std::span<int>& all);",
    ]
    GOOD = [
        "Task run(Comm& c, Args a, Comm& team);",
        "Task run(Comm&, Args* a, Function<void(int&)> f);",
        "auto run(Comm& c) -> Task;",
        "Task& operator=(Task&& other) noexcept {}",
        "Task task(std::move(other));",
        "void enter(const Task& task);",
        "static Task make(Comm&) noexcept { return Task(handle & 1); }",
        "template <Task (*kAmong)(Comm&, Args)> void f(int& x);",
    ]

    def test_a_reference_is_found(self):
        for head in self.BAD:
            with self.subTest(head):
                self.assertEqual(found(head), [await_rules.REFERENCE])

    def test_values_and_pointers_are_not(self):
        for head in self.GOOD:
            with self.subTest(head):
                self.assertEqual(found(head), [])

    def test_brackets_that_do_not_match_are_said(self):
        for text in ("Task run(Comm& c) { co_await c.next(;", "Task run(Comm& c) { if (x { } }", "}"):
            with self.subTest(text):
                self.assertIn(await_rules.BRACKETS, found(text))


if __name__ == "__main__":
    unittest.main()
