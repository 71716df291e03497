# SPDX-License-Identifier: BSD-3-Clause
"""The C interface on real processes: every scenario of ibcoll_api_ranks on one node and on several, with even and
uneven numbers of ranks.

One job for each layout runs its scenarios one after the other: to start processes takes longer than most scenarios do.
IBCOLL_TEST_SWEEP=all: a job for each scenario on each of its layouts. One of these by its name: Api.test_late_4x1.
IBCOLL_TEST_LAYOUTS=one: every scenario once, on its last layout (for builds that are slow)."""

import os
import re
import tempfile
import unittest

import ranks
from test_checkers import Checkers
from test_endings import Deaths, Reports, SharedMemory

# Scenario: layouts (ranks x nodes), those that a sweep adds after the bar. 4x1 and 4x2 where nothing else is said.
LAYOUTS = {
    "restart": "1x1 4x1 5x2 | 2x1",
    "in_flight": "3x1 4x2 | 5x3",
    "once": "1x1 3x1 4x2",
    "many_in_flight": "4x1 5x2",
    "one_stays_in_flight": "2x1 4x2",
    "allocations": "1x1 4x1 | 2x1",
    "late": "4x1 3x2",
    "barrier_waits_for_all": "5x2 | 6x1",
    "threads": "3x1 4x2",
    "same_shorthand": "3x1 4x2",
    "another_thread_waits": "2x1 3x1 | 2x2",
    "never_waiting": "2x1",
    "create_from_list": "1x1 5x1 8x3",
    "split_by_color_and_key": "7x1 | 8x2",
    "nested_splits": "7x1 7x4 | 8x1 7x3",
    "remade_teams": "5x2",
    "halves_make_teams": "4x1 5x2",
    "pairs_make_teams": "4x1 5x2",
    "bad_members": "4x1 3x2",
    "many_teams": "4x1",
    "churn": "4x1 3x2",
    "little_or_nothing": "1x1 5x1 4x2",
    "in_place": "1x1 4x1 3x2",
    "every_algorithm": "4x1 5x2 | 3x1",
    "non_commutative": "7x1 6x3 | 9x1",
    "opaque_elements": "1x1 5x1 6x3",
    "types_and_operations": "1x1 4x1 4x2",
    "same_bits_everywhere": "5x1 6x3 | 6x2",
    "same_bits_in_every_call": "6x2 | 5x1 4x4",
    "same_extremes_everywhere": "5x1 6x3 | 2x2 6x2",
    "far_apart": "3x1 3x2",
    "bad_arguments": "1x1 4x2 | 3x1",
    "bad_parameters": "1x1",
    "contexts_again": "1x1 3x1 4x2",
    "the_program_stays_as_it_was": "2x1 4x2",
    "missing_memory": "4x1",
    "secret_buffers": "4x1 | 4x2",
    "modes_differ": "6x3 | 5x1 7x3",
    "rings_too_small": "2x1 3x2",
    "sizes_differ": "3x1 4x2",
    "blocks_differ": "3x1 4x2",
    "last_calls_differ": "3x1 5x2",
    "freed_at_once": "3x1 5x2 | 3x3",
    "one_call_fewer": "2x1 5x1",
    "split_differs": "3x1 3x2",
    "computes_afterwards": "5x2",
    "sleepers_are_woken": "4x1",
    "a_leader_wakes_its_node": "6x3",
    "random_programs": "3x1 7x4 | 6x1 4x2",
}
# Started by test_endings.py, or with settings of their own.
ELSEWHERE = re.compile("die_in_.*|stuck.*|first_call_is_late|one_malformed|forced_where_it_does_not_apply|"
                       "from_another_folder")
# Their processes are not as they were: these come last in a job.
LEAVE_TRACES = ("sleepers_are_woken", "a_leader_wakes_its_node")
# These provoke errors that the runtime logs.
QUIET = {"IBCOLL_LOG": "error"}
# Scenarios that run once more with each way to wait, and some without the single-copy path, or with little memory.
SETTINGS = {
    "spin": ("2x2", "in_flight late threads", {"IBCOLL_WAIT": "spin"}),
    "yield": ("3x1", "in_flight late threads", {"IBCOLL_WAIT": "yield"}),
    "sleep": ("2x2", "in_flight late threads", {"IBCOLL_WAIT": "sleep"}),
    "no_single_copy": ("3x1", "every_algorithm in_flight random_programs", {"IBCOLL_SINGLE_COPY": "off"}),
    "small_ring": ("3x1", "every_algorithm in_flight random_programs",
                   {"IBCOLL_SHM_RING_BYTES": "16K", "IBCOLL_SHM_SLOT_BYTES": "4K", "IBCOLL_EAGER_BYTES": "1K"}),
}
SCENARIOS = {
    *LAYOUTS, "busy", "wait_timeout", "describe", "progress", "forked_child", "several_teams_in_flight", "bad_teams",
    "one_speaks", "library_memory", "read_only_sources", "neighbours_first", "small_stack",
    "malformed_settings", "settings_differ", "calls_differ", "teams_of_a_failed_team", "operation_for_elements",
    "operation_that_calls", "reductions_differ", "roots_differ", "root_counts_differ", "order_differs", "lists_differ",
    "decides_by_sizes"}
ONE_LAYOUT = os.environ.get("IBCOLL_TEST_LAYOUTS") == "one"


def layouts_of(scenario, swept):
    usual, _, more = LAYOUTS.get(scenario, "4x1 4x2").partition("|")
    return [*usual.split(), *(more.split() if swept else [])]


def listed():
    """The scenarios that the program has; a sanitizer has malloc for itself, so `allocations` may be missing."""
    return set(ranks.run([ranks.tool("ibcoll_api_ranks"), "--list"]).stdout.split())


class Scenarios(unittest.TestCase):
    def check(self, scenarios, layout, env=None):
        processes, nodes = map(int, layout.split("x"))
        seconds = ranks.SECONDS if len(scenarios) == 1 else 2 * ranks.SECONDS
        command = ranks.job(processes, nodes, ranks.tool("ibcoll_api_ranks"), *scenarios, seconds=seconds)
        done = ranks.run(command, {**QUIET, **(env or {})}, seconds=seconds)
        self.assertEqual(done.returncode, 0, ranks.story(done))


class Settings(Scenarios):
    def test_every_scenario_is_run(self):
        found = {name for name in listed() if not ELSEWHERE.fullmatch(name)}
        self.assertEqual(found - {"allocations"}, SCENARIOS - {"allocations"})

    def test_unknown_scenario(self):
        done = ranks.run([ranks.tool("ibcoll_api_ranks"), "busy", "no_such_thing"])
        self.assertEqual(done.returncode, 2, ranks.story(done))

    def test_forced_where_it_does_not_apply(self):
        self.check(["forced_where_it_does_not_apply"], "4x2", {"IBCOLL_BARRIER": "shm", "IBCOLL_ALLGATHER": "shm"})

    def test_from_another_folder(self):
        """A relative path of the libraries, and of the configuration file, and a program that changes its directory."""
        folder = ranks.BIN.parent
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".conf") as config:
            config.write("IBCOLL_WAIT = yield\n")
            config.flush()
            env = {"LD_LIBRARY_PATH": "lib", "IBCOLL_CONFIG_FILE": os.path.basename(config.name)}
            done = ranks.run(ranks.job(2, 2, ranks.tool("ibcoll_api_ranks"), "from_another_folder"), env, folder=folder)
        self.assertEqual(done.returncode, 0, ranks.story(done))


class Jobs(Scenarios):
    """test_3x2: all scenarios of that layout."""


class Api(Scenarios):
    """test_late_3x2: one scenario."""


def add(to, name, scenarios, layout, env=None):
    def case(self):
        there = listed()
        wanted = [one for one in scenarios if one in there or one != "allocations"]
        if not wanted:
            self.skipTest("a sanitizer has malloc for itself")
        self.check(wanted, layout, env)

    setattr(to, f"test_{name}", case)


def add_all():
    jobs = {}
    for scenario in sorted(SCENARIOS, key=lambda name: (name in LEAVE_TRACES, name)):
        for layout in layouts_of(scenario, swept=True):
            add(Api, f"{scenario}_{layout}", [scenario], layout)
        for layout in layouts_of(scenario, swept=False)[-1 if ONE_LAYOUT else 0:]:
            jobs.setdefault(layout, []).append(scenario)
    for layout, scenarios in jobs.items():
        add(Jobs, layout, scenarios, layout)
    for name, (layout, scenarios, env) in SETTINGS.items():
        add(Settings, name, scenarios.split(), layout, env)


def load_tests(loader, _tests, _pattern):
    """What runs where no test is named."""
    classes = [Settings, Api if ranks.SWEEP else Jobs, Deaths, Reports, SharedMemory, Checkers]
    return unittest.TestSuite(map(loader.loadTestsFromTestCase, classes))


add_all()
