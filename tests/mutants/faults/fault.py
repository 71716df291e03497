# SPDX-License-Identifier: BSD-3-Clause
"""What a fault is, and the suites that should notice some."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Suite:
    """What is built (none: nothing), and the command that runs `tests` of it. {bin}: folder of the programs;
    {tests}: in the last word."""
    targets: tuple
    command: tuple

    def run(self, programs, tests):
        words = [word.format(bin=programs) for word in self.command[:-1]]
        last = self.command[-1]
        names = tests.split() if last == "{tests}" else [last.format(bin=programs, tests=tests)]
        return words + names


def google_test(target, *more):
    return Suite((target, *more), (f"{{bin}}/{target}", "--gtest_fail_fast", "--gtest_filter={tests}"))


def python_test(path, *targets):
    """`path`: a file of tests, or a folder; `tests`: modules, classes or cases of it."""
    return Suite(targets, ("python3", "tests/cases.py", "-f", path, "{tests}"))


# What a compiler or clang-tidy finds: the tests are files that ninja makes in a tree that has been configured.
BUILT = Suite(("build.ninja",), ("ninja", "-C", "{bin}/..", "{tests}"))

UNIT, SIMULATED, CONFORMANCE, FAILURES = "unit", "simulated", "conformance", "failures"
FAKE_VERBS, VM, NO_MEMORY = "fake_verbs", "vm", "no_memory"
RDMA_IN_MEMORY, RDMA_IN_MEMORY_JOBS = "rdma_in_memory", "rdma_in_memory_jobs"
LAUNCHER_PARTS, LAUNCHER, PERF, API, BOOTSTRAPS = "launcher_parts", "launcher", "perf", "api", "bootstraps"
LAYERING, DOCS, TOOL_PAGES, COMPARE, INSTALLED = "layering", "docs", "tool_pages", "compare", "installed"
INFO, SIM, TRACE, RECORDED, CALL_SITES, OUTPUT = "info", "sim", "trace", "recorded", "call_sites", "output"
FORMAT, HEADERS, TIDY = "format", "headers", "tidy"
REMOTE, COLLECTIVES, APPS, RADIX, CLUSTER = "remote", "collectives", "apps", "radix", "cluster"
OPEN_MPI = "open_mpi"
SLURM = "slurm"
PMPI = "pmpi"
BROWSER = "browser"
CLUSTERS = "clusters"
RUNNER = "runner"
SURVIVORS, LOST_HOST = "survivors", "lost_host"
INSTRUCTIONS = "instructions"
SUITES = {
    UNIT: google_test("ibcoll_unit_tests"),
    SIMULATED: google_test("ibcoll_simulated_tests"),
    CONFORMANCE: google_test("ibcoll_conformance_tests", "ibcoll_ucx"),
    FAKE_VERBS: google_test("ibcoll_fake_verbs_tests"),
    FAILURES: google_test("ibcoll_failures_tests", "ibcoll_ucx", "ibcoll_trace_module", "ibcoll_run"),
    NO_MEMORY: google_test("ibcoll_refused_memory_tests", "ibcoll_ucx"),
    VM: Suite(("ibcoll_run", "ibcoll_ucx", "ibcoll_verbs", "ibcoll_perf", "ibcoll_info", "ibcoll_api_ranks",
               "ibcoll_conformance_tests"), ("tests/vm/steps", "brief", "{tests}")),
    RDMA_IN_MEMORY: Suite(("ibcoll_run", "ibcoll_rdma_in_memory", "ibcoll_rdma_in_memory_tests"),
                          ("{bin}/ibcoll_run", "--rdma-in-memory", "-n", "1", "--no-bind", "--timeout", "60",
                           "{bin}/ibcoll_rdma_in_memory_tests", "--gtest_fail_fast", "--gtest_filter={tests}")),
    RDMA_IN_MEMORY_JOBS: python_test("tests/rdma_in_memory/test_jobs.py", "ibcoll_run", "ibcoll_rdma_in_memory", "ibcoll_verbs",
                                     "ibcoll_perf", "ibcoll_info"),
    LAUNCHER_PARTS: google_test("ibcoll_launcher_tests"),
    LAUNCHER: python_test("tests/launcher", "ibcoll_run", "ibcoll_trace_module", "ibcoll_launcher_probe"),
    PERF: python_test("tests/tools/test_perf.py", "ibcoll_run", "ibcoll_perf", "ibcoll_tables"),
    INFO: python_test("tests/tools", "ibcoll_run", "ibcoll_info", "ibcoll_ucx", "ibcoll_tables"),
    SIM: python_test("tests/tools", "ibcoll_sim"),
    TRACE: python_test("tests/tools", "ibcoll_trace"),
    RECORDED: python_test("tests/tools", "ibcoll_run", "ibcoll_trace_module", "ibcoll_sim"),
    OUTPUT: python_test("tests/tools/test_output.py", "ibcoll_run", "ibcoll_perf", "ibcoll_info", "ibcoll_sim", "ibcoll_trace",
                        "ibcoll_tune", "ibcoll_mpi"),
    CALL_SITES: python_test("tests/tools/test_trace.py", "ibcoll_trace_module", "ibcoll_trace"),
    LAYERING: python_test("tests/layering"),
    RUNNER: python_test("tests/runner"),
    DOCS: python_test("tests/docs", "ibcoll_tables"),  # but for options
    TOOL_PAGES: python_test("tests/docs", "ibcoll_run", "ibcoll_perf", "ibcoll_info", "ibcoll_sim", "ibcoll_trace", "ibcoll_tune",
                            "ibcoll_tables"),
    COMPARE: python_test("tests/perf", "ibcoll_tables"),
    INSTRUCTIONS: python_test("tests/perf/test_instructions.py", "ibcoll_run", "ibcoll_ucx", "ibcoll_count_instructions"),
    INSTALLED: Suite(("all",), ("tests/installed/run", "{bin}/..")),
    FORMAT: Suite((), ("clang-format", "--dry-run", "-Werror", "{tests}")),
    HEADERS: BUILT,
    TIDY: BUILT,
    API: python_test("tests/multiprocess/test_api.py", "ibcoll_run", "ibcoll_ucx", "ibcoll_api_ranks"),
    SURVIVORS: python_test("tests/multiprocess/test_survivors.py", "ibcoll_run", "ibcoll_ucx", "ibcoll_verbs",
                           "ibcoll_rdma_in_memory", "ibcoll_survivor_ranks", "ibcoll_heat"),
    LOST_HOST: python_test("tests/multiprocess/test_lost_host.py", "ibcoll_run", "ibcoll_ucx", "ibcoll_survivor_ranks"),
    REMOTE: google_test("ibcoll_remote_tests", "ibcoll_ucx"),
    COLLECTIVES: python_test("tests/multiprocess/test_collectives.py", "ibcoll_run", "ibcoll_ucx", "ibcoll_perf",
                             "ibcoll_api_ranks"),
    APPS: python_test("tests/multiprocess/test_apps.py", "ibcoll_run", "ibcoll_ucx", "ibcoll_ft", "ibcoll_nbody"),
    RADIX: python_test("tests/multiprocess/test_radix.py", "ibcoll_run", "ibcoll_ucx", "ibcoll_radix"),
    BOOTSTRAPS: python_test("tests/bootstraps", "ibcoll_run", "ibcoll_ucx", "ibcoll_bootstrap_programs"),
    OPEN_MPI: python_test("tests/under_mpi", "mca_coll_ibcoll", "ibcoll_mpi", "ibcoll_trace_module", "ibcoll_trace",
                          "ibcoll_under_mpi_programs", "ibcoll_tables"),
    PMPI: python_test("tests/under_mpi/test_pmpi.py", "ibcoll_ucx", "ibcoll_pmpi_openmpi", "ibcoll_pmpi_mpich",
                      "ibcoll_under_mpi_programs", "ibcoll_tables"),
    SLURM: python_test("tests/slurm", "all", "ibcoll_bootstrap_programs"),
    CLUSTERS: python_test("tests/clusters", "ibcoll_run", "ibcoll_ucx", "ibcoll_info"),
    BROWSER: Suite(("ibcoll_trace",), ("/usr/bin/python3", "tests/cases.py", "-f", "tests/browser/test_trace_page.py", "{tests}")),
    CLUSTER: python_test("tests/perf/test_cluster.py", "ibcoll_run", "ibcoll_ucx", "ibcoll_info", "ibcoll_perf"),
}
# Of all kinds of messages, in a tenth of the time of all.
SOME_ALGORITHMS = ":".join(f"*EveryAlgorithm*all*_{name}" for name in ("ring", "bruck", "direct", "two_phase_bruck"))
ARRIVALS = "*ArrivalAware*:*ArrivalNotice*:*LinearTime*"
SEEDS = "Seeds.EveryRunCompletesWithTheRightData"


@dataclasses.dataclass(frozen=True)
class Fault:
    """Where `old` stands once in `file`, `new` stands instead, and `tests` of the suite should notice."""
    name: str
    file: str
    old: str
    new: str
    suite: str
    tests: str  # a filter of GoogleTest, cases of tests/cases.py, files, or patterns of steps; "all" where there are no names
    same: str = ""  # why nothing changes that can be observed; not counted

    def put_into(self, text):
        return text.replace(self.old, self.new)
