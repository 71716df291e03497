# SPDX-License-Identifier: BSD-3-Clause
"""The C interface on real processes: every scenario of ibcoll_api_ranks on one node and on several, with even and
uneven numbers of ranks.
IBCOLL_TEST_LAYOUTS=one: every scenario once, on its last layout (for builds that are slow)."""

import os
import re
import tempfile
import unittest

import ranks
from test_checkers import Checkers  # noqa: F401  pylint: disable=unused-import
from test_endings import Deaths, Reports, SharedMemory  # noqa: F401  pylint: disable=unused-import

# Scenario: layouts (ranks x nodes). 4x1 and 4x2 where nothing else is said.
LAYOUTS = {
    "restart": ["1x1", "2x1", "4x1", "5x2"],
    "in_flight": ["3x1", "4x2", "5x3"],
    "many_in_flight": ["4x1", "5x2"],
    "one_stays_in_flight": ["2x1", "4x2"],
    "allocations": ["1x1", "2x1", "4x1"],
    "late": ["4x1", "3x2"],
    "barrier_waits_for_all": ["6x1", "5x2"],
    "threads": ["3x1", "4x2"],
    "same_shorthand": ["3x1", "4x2"],
    "another_thread_waits": ["2x1", "3x1", "2x2"],
    "never_waiting": ["2x1"],
    "create_from_list": ["1x1", "5x1", "8x3"],
    "split_by_color_and_key": ["7x1", "8x2"],
    "nested_splits": ["8x1", "7x3"],
    "remade_teams": ["5x2"],
    "churn": ["4x1", "3x2"],
    "little_or_nothing": ["1x1", "5x1", "4x2"],
    "in_place": ["1x1", "4x1", "3x2"],
    "every_algorithm": ["3x1", "4x1", "5x2"],
    "non_commutative": ["9x1", "6x3"],
    "opaque_elements": ["1x1", "5x1", "6x3"],
    "types_and_operations": ["1x1", "4x1", "4x2"],
    "same_bits_everywhere": ["5x1", "6x2"],
    "same_extremes_everywhere": ["2x2", "5x1", "6x2"],
    "far_apart": ["3x1", "3x2"],
    "bad_arguments": ["1x1", "3x1", "4x2"],
    "bad_parameters": ["1x1"],
    "contexts_again": ["1x1", "3x1", "4x2"],
    "the_program_stays_as_it_was": ["2x1", "4x2"],
    "rings_too_small": ["2x1", "3x2"],
    "sizes_differ": ["3x1", "4x2"],
    "blocks_differ": ["3x1", "4x2"],
    "last_calls_differ": ["3x1", "5x2"],
    "freed_at_once": ["3x1", "3x3", "5x2"],
    "one_call_fewer": ["2x1", "5x1"],
    "split_differs": ["3x1", "3x2"],
    "computes_afterwards": ["5x2"],
    "sleepers_are_woken": ["4x1"],
    "a_leader_wakes_its_node": ["6x3"],
    "random_programs": ["3x1", "6x1", "7x4", "4x2"],
}
# Started by test_endings.py, or with settings of their own.
ELSEWHERE = re.compile("die_in_.*|stuck.*|first_call_is_late|one_malformed|forced_where_it_does_not_apply|from_another_folder")
# Scenarios that run once more with each way to wait, and once without the single-copy path.
WAITING = ["in_flight", "late", "threads"]
# These provoke errors that the runtime logs.
QUIET = {"IBCOLL_LOG": "error"}


class Api(unittest.TestCase):
    def check(self, scenario, layout, env=None):
        processes, nodes = map(int, layout.split("x"))
        done = ranks.run(ranks.job(processes, nodes, ranks.tool("ibcoll_api_ranks"), scenario), env)
        self.assertEqual(done.returncode, 0, ranks.story(done))

    def test_every_scenario_is_run(self):
        done = ranks.run([ranks.tool("ibcoll_api_ranks"), "--list"])
        listed = {name for name in done.stdout.split() if not ELSEWHERE.fullmatch(name)}
        self.assertEqual(listed - {"allocations"}, SCENARIOS - {"allocations"})

    def test_unknown_scenario(self):
        done = ranks.run([ranks.tool("ibcoll_api_ranks"), "no_such_thing"])
        self.assertEqual(done.returncode, 2, ranks.story(done))

    def test_forced_where_it_does_not_apply(self):
        self.check("forced_where_it_does_not_apply", "4x2", {**QUIET, "IBCOLL_BARRIER": "shm", "IBCOLL_ALLGATHER": "shm"})

    def test_from_another_folder(self):
        """A relative path of the libraries, and of the configuration file, and a program that changes its directory."""
        folder = ranks.BIN.parent
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".conf") as config:
            config.write("IBCOLL_WAIT = yield\n")
            config.flush()
            env = {"LD_LIBRARY_PATH": "lib", "IBCOLL_CONFIG_FILE": os.path.basename(config.name)}
            done = ranks.run(ranks.job(2, 2, ranks.tool("ibcoll_api_ranks"), "from_another_folder"), env, folder=folder)
        self.assertEqual(done.returncode, 0, ranks.story(done))

    @classmethod
    def add(cls, name, scenario, layout, env):
        def case(self):
            if scenario == "allocations" and "allocations" not in ranks.run([ranks.tool("ibcoll_api_ranks"), "--list"]).stdout:
                self.skipTest("a sanitizer has malloc for itself")
            self.check(scenario, layout, env)

        setattr(cls, name, case)


SCENARIOS = {
    *LAYOUTS, "busy", "wait_timeout", "describe", "progress", "forked_child", "several_teams_in_flight", "bad_teams", "one_speaks",
    "library_memory", "read_only_sources", "neighbours_first", "malformed_settings", "settings_differ", "calls_differ", "teams_of_a_failed_team",
    "reductions_differ", "roots_differ", "root_counts_differ", "order_differs", "lists_differ"}

ONE_LAYOUT = os.environ.get("IBCOLL_TEST_LAYOUTS") == "one"
for one in sorted(SCENARIOS):
    for where in LAYOUTS.get(one, ["4x1", "4x2"])[-1 if ONE_LAYOUT else 0:]:
        Api.add(f"test_{one}_{where}", one, where, QUIET)
for one in [] if ONE_LAYOUT else WAITING:
    for wait in ("spin", "yield", "sleep"):
        Api.add(f"test_{one}_{wait}", one, "3x1" if wait == "yield" else "2x2", {**QUIET, "IBCOLL_WAIT": wait})
for one in ("every_algorithm", "in_flight", "random_programs"):
    Api.add(f"test_{one}_no_single_copy", one, "3x1", {**QUIET, "IBCOLL_SINGLE_COPY": "off"})
    Api.add(f"test_{one}_small_ring", one, "3x1", {**QUIET, "IBCOLL_SHM_RING_BYTES": "16K", "IBCOLL_SHM_SLOT_BYTES": "4K",
                                                   "IBCOLL_EAGER_BYTES": "1K"})
