# SPDX-License-Identifier: BSD-3-Clause
"""Dependencies point one way: tools, perf -> ibcoll.h -> api -> context -> engine -> collectives -> comm -> transport."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import rules  # noqa: E402

ROOT = rules.ROOT


class ThisTree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = rules.Tree(ROOT)

    def assert_none(self, violations):
        found = sorted(set(violations))
        self.assertFalse(found, "\n" + "\n".join(found))

    def test_no_dependency_from_below_to_above(self):
        self.assert_none(rules.wrong_direction(self.tree))

    def test_each_layer_defines_what_it_declares(self):
        self.assert_none(rules.defined_elsewhere(self.tree))
        classes, names = rules.declarations(self.tree)
        self.assertLessEqual({"Comm", "Engine", "Json"}, classes.keys())
        self.assertLessEqual({"find_algorithm", "last_level_cache_bytes", "kWaitRules"}, names.keys())

    def test_tools_perf_and_bootstrap_use_what_is_open_to_them(self):
        self.assert_none(rules.beyond_the_interface(self.tree))

    def test_collectives_know_no_fabric_clock_thread_or_chance(self):
        self.assert_none(rules.impure_collectives(self.tree))

    def test_constants_of_costs_stand_in_one_table(self):
        self.assert_none(rules.constants_outside_the_table(self.tree))

    def test_sources_include_their_own_header_first(self):
        self.assert_none(rules.own_header_not_first(self.tree))

    def test_every_algorithm_is_registered(self):
        self.assert_none(rules.unregistered(self.tree))

    def test_classes_are_small(self):
        self.assertEqual(rules.many_public_functions(self.tree).keys(), rules.MANY_PUBLIC_FUNCTIONS.keys())
        self.assertEqual(rules.many_sources(self.tree).keys(), rules.MANY_SOURCES.keys())

    def test_every_source_states_its_license(self):
        unmarked = [path for path in self.tree.code
                    if "SPDX-License-Identifier: BSD-3-Clause" not in (ROOT / path).read_text()[:200]]
        self.assert_none(unmarked)


class TheRulesThemselves(unittest.TestCase):
    """Each rule finds what it is for."""

    def tree(self, **files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, text in files.items():
            path = Path(folder.name) / name.replace("__", "/").replace("_h", ".h").replace("_cc", ".cc")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return rules.Tree(folder.name)

    def test_transport_may_not_include_comm(self):
        tree = self.tree(runtime__comm__comm_h="", runtime__shm__ring_cc='#include "runtime/comm/comm.h"\n')
        self.assertEqual(len(list(rules.wrong_direction(tree))), 1)

    def test_comm_may_include_transport(self):
        tree = self.tree(runtime__transport__t_h="", runtime__comm__c_cc='#include "runtime/transport/t.h"\n')
        self.assertEqual(list(rules.wrong_direction(tree)), [])

    def test_transports_stay_apart(self):
        tree = self.tree(runtime__shm__ring_h="", runtime__ucx__put_cc='#include "runtime/shm/ring.h"\n')
        self.assertEqual(len(list(rules.wrong_direction(tree))), 1)

    def test_what_another_layer_declares_is_found(self):
        header = ("class Comm {\n  void put();\n  static void copy();\n};\nstruct Own {\n  void run();\n};\n"
                  "Arena& arena_of(Comm& comm) noexcept;\nvoid log(int level,\n         int text);\nextern const int kA, kB;\n")
        source = ("namespace {\nint kB = 1;\nvoid log(int, int) {}\nstruct Own {\n  void run();\n};\nvoid Own::run() {}\n}\n"
                  "void Comm::put() { Comm::copy(); }\nArena& arena_of(Comm& comm) noexcept { return comm; }\n"
                  "const int kA{1};\nvoid use() {\n  Comm::copy();\n  log(1, 2);\n}\n")
        above = "runtime/engine/e.cc defines what runtime/comm/ declares: "
        self.assertEqual(list(rules.defined_elsewhere(self.tree(runtime__comm__comm_h=header, runtime__engine__e_cc=source))),
                         [above + "Comm", above + "arena_of", above + "kA"])
        self.assertEqual(list(rules.defined_elsewhere(self.tree(runtime__comm__comm_h=header, runtime__comm__c_cc=source))), [])

    def test_a_file_outside_of_the_folders_is_found(self):
        self.assertEqual(len(list(rules.wrong_direction(self.tree(runtime__stray_h="")))), 1)

    def test_tools_may_not_include_internals(self):
        tree = self.tree(runtime__team_h="", perf__loop_cc='#include "runtime/team.h"\n')
        self.assertEqual(len(list(rules.beyond_the_interface(tree))), 1)

    def test_a_clock_behind_a_header_is_found(self):
        tree = self.tree(runtime__base__wait_h="#include <chrono>\n",
                         runtime__collectives__ring_cc='#include "runtime/base/wait.h"\n')
        self.assertEqual(len(list(rules.impure_collectives(tree))), 1)

    def test_constants_of_costs_in_other_files_are_found(self):
        factors = "double f(double x) { return 1.05 * x + 2e-3 + 64e6 + .5 + 1.0 + 0.0 + 16 + y1.x; }  // 0.02\n"
        tree = self.tree(runtime__collectives__ring_cc=factors,
                         runtime__ucx__t_cc="LinkModel model() const { return {12.0, 1, 4}; }\n",
                         runtime__shm__t_cc="LinkModel model{0.8, 1};\ndouble seconds = 1.5;\nLinkModel none{};\n")
        self.assertEqual([violation.split(": ")[0] for violation in rules.constants_outside_the_table(tree)],
                         [f"runtime/collectives/ring.cc has {number}" for number in ("1.05", "2e-3", "64e6", ".5")]
                         + ["runtime/shm/t.cc has LinkModel model{0.8, 1}",
                            "runtime/ucx/t.cc has LinkModel model() const { return {12.0, 1, 4}"])

    def test_public_functions_are_counted(self):
        header = ("class Base {\n public:\n  int one() const noexcept { return f(2); }\n  const int& one();\n"
                  "  template <typename F, int k = f(1)>\n  [[gnu::cold]] static auto two(F call = F()) -> decltype(call());\n"
                  "  Base(int a) : a_(a), b_{[] { return g(1); }} {}\n  ~Base();\n  Base& operator=(const Base&) = delete;\n"
                  "  bool operator()(int) const;\n  explicit operator bool() const;\n  std::function<void(int)> called;\n"
                  "  int value = f(3);\n  struct Inner {\n    void three();\n  };\n  using Call = void(int);\n protected:\n"
                  "  void four();\n public:\n  friend void five();\n  virtual std::map<int, std::vector<int>> six(int) = 0;\n"
                  " private:\n  void seven();\n};\n")
        self.assertEqual(list(rules.public_functions(header)), [("Base", {"one", "two", "six"}), ("Inner", {"three"})])

    def test_large_classes_are_found(self):
        functions = "".join(f"  void f{i}();\n" for i in range(26))
        sources = {f"runtime__a__part{i}_cc": f"void Large::f{i}() {{}}\nvoid use() {{\n  Other::f();\n}}\n" for i in range(3)}
        tree = self.tree(runtime__a__large_h=f"class Large {{\n public:\n{functions}}};\nstruct Other {{\n  static void f();\n}};\n",
                         runtime__b__other_cc="void Large::f9() {}\n", **sources)
        self.assertEqual(rules.many_public_functions(tree), {"runtime/a/large.h Large": 26})
        self.assertEqual(rules.many_sources(tree), {"runtime/a/large.h Large": [f"runtime/a/part{i}.cc" for i in range(3)]})

    def test_an_algorithm_that_is_not_listed_is_found(self):
        rows = "std::span<const Algorithm> rows() {}\n"
        tree = self.tree(runtime__CMakeLists="collectives/framework/registry.cc a/old a/twice a/twice collectives/a/file.cc",
                         runtime__collectives__framework__registry_cc=rows, runtime__collectives__a__old_cc=rows,
                         runtime__collectives__a__file_cc=rows, runtime__collectives__a__twice_cc=rows,
                         runtime__collectives__a__parts_cc="")
        (tree.root / "runtime/CMakeLists").rename(tree.root / "runtime/CMakeLists.txt")
        self.assertEqual(list(rules.unregistered(tree)), [
            "a/file is 0 times in runtime/CMakeLists.txt", "collectives/a/parts.cc is 0 times in runtime/CMakeLists.txt",
            "a/twice is 2 times in runtime/CMakeLists.txt"])

    def test_a_call_of_rand_is_found_but_not_in_a_comment(self):
        tree = self.tree(runtime__collectives__a_cc="int x = rand();\n", runtime__collectives__b_cc="// rand()\n")
        self.assertEqual(list(rules.impure_collectives(tree)), ["runtime/collectives/a.cc uses rand("])
