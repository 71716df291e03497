# SPDX-License-Identifier: BSD-3-Clause
# Every suite, as a test of CTest. tests/run runs those of all build trees; `ctest --test-dir build/release` runs
# those of one tree.
#
#   ibcoll_suite(NAME PRESET [ALL] SECONDS S [BESIDE|ALONE] [TARGETS TARGET...] [LOCKS LOCK...] COMMAND COMMAND)
#
# A suite belongs to the build tree of its preset, which is also its label; release has those that need no build. The
# test build_NAME builds the targets that the suite needs. tests/suite runs the command in the root of the checkout,
# with $build = the tree, for SECONDS at most; it explains the words of commands.
#
# ALL: a long sweep, for `tests/run --all` and `ctest -C all` only.
#
# tests/run lets two suites run at a time: one that keeps all cores busy, and one that mostly waits, or has one thread
# (BESIDE). Trees are built meanwhile by what time the suites leave, release first. No suite runs beside one that is
# ALONE: packets between two emulated machines time out when others take the cores. Of suites with a lock in common one
# runs at a time. The lock `vm`: virtual machines need gigabytes of memory. No suite changes the network of the machine
# but cluster: the other namespaces belong to the processes that made them.
#
# What a suite of every run looks at, it looks at in one tree. asan (AddressSanitizer and UndefinedBehaviorSanitizer, checks
# of the standard library) has what the library, the launcher and the virtual device do, step by step; release has programs
# as users start them, allocations and figures. `hooked` is in release because the sanitizer hooks the same calls of libc.
# Leaks are not looked for in ranks that are programs (no_leaks): MPI and PMIx never free some. Options of the sanitizers:
# tests/sanitizer_defaults.c.
# tsan looks at what is threaded: one rank of many threads on one node. UCX is not built for it: on several nodes it
# crashes in threads of its own. Traffic between ranks that one thread polls cannot race.
# clang compiles each source alone, which shows that each includes what it needs.
# rdma_in_memory: verbs between processes, on the device of ibcoll_run --rdma-in-memory. Not with a sanitizer, which has to
# be loaded before that.
set(ibcoll_suites 0)
function(ibcoll_suite name preset)
  cmake_parse_arguments(PARSE_ARGV 2 suite "ALL;BESIDE;ALONE" "SECONDS;COMMAND" "TARGETS;LOCKS")
  math(EXPR ibcoll_suites "${ibcoll_suites} + 1")
  set(ibcoll_suites ${ibcoll_suites} PARENT_SCOPE)
  if(NOT preset STREQUAL IBCOLL_PRESET)
    return()
  endif()
  set(runner ${PROJECT_SOURCE_DIR}/tests/suite)
  if(suite_ALONE OR NOT suite_BESIDE)
    list(APPEND suite_LOCKS cores)
  endif()
  if(suite_ALONE OR suite_BESIDE)
    list(APPEND suite_LOCKS beside)
  endif()
  set(when)
  if(suite_ALL)
    set(when CONFIGURATIONS all)
  endif()
  add_test(NAME ${name} ${when} COMMAND ${runner} ${name} ${suite_SECONDS} "${suite_COMMAND}")
  # tests/suite ends it in time; CTest ends tests/suite where that hangs.
  math(EXPR timeout "${suite_SECONDS} + 60")
  set_tests_properties(${name} PROPERTIES LABELS ${preset} TIMEOUT ${timeout} COST ${suite_SECONDS}
                       ENVIRONMENT build=${PROJECT_BINARY_DIR} RESOURCE_LOCK "${suite_LOCKS}")
  if(suite_TARGETS)
    # In the order of this file.
    math(EXPR cost "10000 - ${ibcoll_suites}")
    set(builder sanitized)
    if(preset STREQUAL "release")
      set(builder release)
    endif()
    add_test(NAME build_${name} ${when} COMMAND ${runner} -b ${name} ${preset} ${suite_TARGETS})
    set_tests_properties(build_${name} PROPERTIES LABELS build TIMEOUT 3600 COST ${cost} RESOURCE_LOCK build_${builder}
                         FIXTURES_SETUP built_${name} ENVIRONMENT build=${PROJECT_BINARY_DIR})
    set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED built_${name})
  endif()
endfunction()

ibcoll_suite(format release SECONDS 120 BESIDE
  COMMAND [[$sources | xargs -0 clang-format --dry-run -Werror --ferror-limit=1 && echo "1 passed, 0 failed"]])
ibcoll_suite(runner release SECONDS 60 BESIDE
  COMMAND [[python3 tests/cases.py tests/runner]])
ibcoll_suite(layering release SECONDS 60 BESIDE
  COMMAND [[python3 tests/cases.py tests/layering]])
ibcoll_suite(mutants release SECONDS 60 BESIDE
  COMMAND [[python3 tests/cases.py tests/mutants]])
ibcoll_suite(compare release SECONDS 120 BESIDE
             TARGETS all
  COMMAND [[all_of "python3 tests/cases.py tests/perf/test_"{compare,guidelines,instructions,regret,results}.py]])
ibcoll_suite(vm_bed release SECONDS 120 BESIDE
  COMMAND [[python3 tests/cases.py tests/vm/test_bed.py NotBooted Steps]])
ibcoll_suite(headers release SECONDS 60 TARGETS ibcoll_headers
  COMMAND [[echo "1 passed, 0 failed"]])
ibcoll_suite(abi release SECONDS 60 BESIDE TARGETS ibcoll_abi
  COMMAND [[python3 tests/cases.py tests/abi]])
ibcoll_suite(tidy release SECONDS 60 TARGETS ibcoll_tidy
  COMMAND [[echo "1 passed, 0 failed"]])
ibcoll_suite(hooked release SECONDS 120 BESIDE TARGETS ibcoll_hooked_tests
  COMMAND [[$build/bin/ibcoll_hooked_tests]])
ibcoll_suite(docs release SECONDS 60 BESIDE
             TARGETS ibcoll_run ibcoll_perf ibcoll_info ibcoll_sim ibcoll_trace ibcoll_tune ibcoll_tables
  COMMAND [[python3 tests/cases.py tests/docs]])
ibcoll_suite(remote release SECONDS 200 BESIDE TARGETS all ibcoll_remote_tests
  COMMAND [[$build/bin/ibcoll_remote_tests]])
ibcoll_suite(tools release SECONDS 240 BESIDE TARGETS all
  COMMAND [[python3 tests/cases.py tests/tools]])
ibcoll_suite(api release SECONDS 500 TARGETS all ibcoll_api_ranks
  COMMAND [[all_of "python3 tests/cases.py tests/multiprocess/test_api.py --part "{1,2}/2]])
ibcoll_suite(collectives release SECONDS 400 TARGETS all ibcoll_api_ranks
  COMMAND [[python3 tests/cases.py tests/multiprocess/test_collectives.py]])
ibcoll_suite(rdma_in_memory release SECONDS 240 BESIDE
             TARGETS all ibcoll_conformance_tests ibcoll_rdma_in_memory_tests
  COMMAND [[all_of "$in_memory $build/bin/ibcoll_conformance_tests --gtest_filter=*verbs_*:-*SeenByThoseWhoOnlyListen*" \
    "$in_memory $build/bin/ibcoll_rdma_in_memory_tests" "python3 tests/cases.py tests/rdma_in_memory/test_jobs.py"]])
ibcoll_suite(survivors release SECONDS 300 BESIDE
             TARGETS ibcoll_run ibcoll_ucx ibcoll_verbs ibcoll_rdma_in_memory ibcoll_survivor_ranks ibcoll_heat
  COMMAND [[all_of "python3 tests/cases.py tests/multiprocess/test_"{survivors,lost_host}.py]])
ibcoll_suite(no_memory release SECONDS 240 BESIDE TARGETS ibcoll_ucx ibcoll_refused_memory_tests
  COMMAND [[all_of "$half="{0,1}" $build/bin/ibcoll_refused_memory_tests"]])
ibcoll_suite(apps release SECONDS 180 TARGETS all
  COMMAND [[all_of "python3 tests/cases.py tests/multiprocess/test_"{apps,radix}.py]])
ibcoll_suite(bootstraps release SECONDS 240 BESIDE TARGETS all ibcoll_bootstrap_programs
  COMMAND [[python3 tests/cases.py tests/bootstraps]])
ibcoll_suite(mpi release SECONDS 450 BESIDE TARGETS all ibcoll_under_mpi_programs
  COMMAND [[python3 tests/cases.py tests/under_mpi]])
ibcoll_suite(installed release SECONDS 120 BESIDE TARGETS all
  COMMAND [[tests/installed/run $build]])
ibcoll_suite(cluster release SECONDS 450 TARGETS all ibcoll_under_mpi_programs
  COMMAND [[python3 tests/cases.py tests/perf/test_cluster.py]])
ibcoll_suite(clusters release SECONDS 100 BESIDE TARGETS ibcoll_run ibcoll_ucx ibcoll_info
  COMMAND [[python3 tests/cases.py tests/clusters]])
ibcoll_suite(vm release SECONDS 600 ALONE LOCKS vm TARGETS all ibcoll_conformance_tests ibcoll_api_ranks
  COMMAND [[tests/vm/steps brief]])

ibcoll_suite(threads tsan SECONDS 300 BESIDE TARGETS ibcoll_run ibcoll_api_ranks ibcoll_unit_tests
  COMMAND [[all_of $build/bin/ibcoll_unit_tests \
    "python3 tests/cases.py tests/multiprocess/test_api.py Api.test_{threads_3x1,same_shorthand_3x1,in_flight_3x1} \
     Api.test_{progress_4x1,wait_timeout_4x1}"]])
ibcoll_suite(unit asan SECONDS 240 BESIDE TARGETS ibcoll_unit_tests
  COMMAND [[$build/bin/ibcoll_unit_tests]])
ibcoll_suite(fake_verbs asan SECONDS 450 BESIDE TARGETS ibcoll_fake_verbs_tests
  COMMAND [[$build/bin/ibcoll_fake_verbs_tests]])
ibcoll_suite(simulated asan SECONDS 450 TARGETS ibcoll_simulated_tests
  COMMAND [[all_of "$half="{0,1}" $build/bin/ibcoll_simulated_tests"]])
ibcoll_suite(conformance asan SECONDS 450 TARGETS ibcoll_conformance_tests
  COMMAND [[$build/bin/ibcoll_conformance_tests]])
ibcoll_suite(launcher asan SECONDS 400 BESIDE
             TARGETS ibcoll_run ibcoll_ucx ibcoll_trace_module ibcoll_launcher_tests ibcoll_launcher_probe
  COMMAND [[all_of $build/bin/ibcoll_launcher_tests "python3 tests/cases.py tests/launcher --part "{1,2}/2]])
ibcoll_suite(failures asan SECONDS 400 BESIDE TARGETS ibcoll_run ibcoll_ucx ibcoll_trace_module ibcoll_failures_tests
  COMMAND [[all_of "$half="{0,1}" $build/bin/ibcoll_failures_tests"]])

# The sweeps.
ibcoll_suite(sweep_parts release ALL SECONDS 600
             TARGETS ibcoll_unit_tests ibcoll_conformance_tests ibcoll_fake_verbs_tests ibcoll_simulated_tests
  COMMAND [[export IBCOLL_TEST_SWEEP=all
    all_of "$half="{0,1}" $build/bin/ibcoll_simulated_tests" $build/bin/ibcoll_{unit,conformance,fake_verbs}_tests]])
ibcoll_suite(sweep_processes release ALL SECONDS 600 BESIDE
             TARGETS all ibcoll_failures_tests ibcoll_launcher_tests ibcoll_launcher_probe
  COMMAND [[all_of $build/bin/ibcoll_{failures,launcher}_tests "python3 tests/cases.py tests/launcher --part "{1,2}/2]])
ibcoll_suite(sweep_rdma_in_memory release ALL SECONDS 400 BESIDE TARGETS all ibcoll_conformance_tests
  COMMAND [[all_of "$in_memory $build/bin/ibcoll_conformance_tests --gtest_filter=*ucx_rdma:*SeenByThoseWhoOnlyListen/verbs*" \
    "python3 tests/cases.py tests/rdma_in_memory/test_open_mpi.py"]])
ibcoll_suite(sweep_api release ALL SECONDS 900 TARGETS all ibcoll_api_ranks
  COMMAND [[export IBCOLL_TEST_SWEEP=all
    all_of "python3 tests/cases.py tests/multiprocess/test_api.py --part "{1,2}/2]])
ibcoll_suite(sweep_survivors release ALL SECONDS 1500 BESIDE
             TARGETS ibcoll_run ibcoll_ucx ibcoll_verbs ibcoll_rdma_in_memory ibcoll_survivor_ranks ibcoll_heat
  COMMAND [[IBCOLL_TEST_SWEEP=all python3 tests/cases.py tests/multiprocess/test_survivors.py]])
ibcoll_suite(sweep_mpi release ALL SECONDS 1500 TARGETS all ibcoll_under_mpi_programs
  COMMAND [[IBCOLL_TEST_SWEEP=all python3 tests/cases.py tests/under_mpi/test_{pmpi,openmpi,packages}.py]])
ibcoll_suite(slurm release ALL SECONDS 400 BESIDE TARGETS all ibcoll_bootstrap_programs
  COMMAND [[python3 tests/cases.py tests/slurm]])
ibcoll_suite(sweep_collectives release ALL SECONDS 900 TARGETS all ibcoll_api_ranks
  COMMAND [[IBCOLL_TEST_SWEEP=all python3 tests/cases.py tests/multiprocess/test_collectives.py]])
ibcoll_suite(sweep_vm release ALL SECONDS 1600 ALONE LOCKS vm TARGETS all ibcoll_conformance_tests ibcoll_api_ranks
  COMMAND [[each_of "python3 tests/cases.py tests/vm/test_bed.py Booted" \
    "seconds=1200 tests/vm/steps one_machine,two_machines"]])
ibcoll_suite(packages release ALL SECONDS 2700
  COMMAND [[python3 tests/cases.py tests/packages]])
ibcoll_suite(browser release ALL SECONDS 300 BESIDE TARGETS ibcoll_run ibcoll_perf ibcoll_sim ibcoll_trace ibcoll_trace_module
  COMMAND [[/usr/bin/python3 tests/cases.py tests/browser]])
ibcoll_suite(simgrid release ALL SECONDS 120 BESIDE TARGETS ibcoll_sim ibcoll_trace
  COMMAND [[python3 tests/cases.py tests/simgrid]])
ibcoll_suite(bare_debian release ALL SECONDS 3400
  COMMAND [[python3 tests/cases.py tests/bare]])
ibcoll_suite(clang clang ALL SECONDS 900
             TARGETS all ibcoll_headers ibcoll_unit_tests ibcoll_simulated_tests ibcoll_conformance_tests
                     ibcoll_hooked_tests ibcoll_fake_verbs_tests ibcoll_rdma_in_memory_tests ibcoll_launcher_tests
                     ibcoll_launcher_probe ibcoll_api_ranks ibcoll_survivor_ranks ibcoll_failures_tests
                     ibcoll_remote_tests ibcoll_refused_memory_tests ibcoll_bootstrap_programs ibcoll_under_mpi_programs
  COMMAND [[all_of $build/bin/ibcoll_unit_tests "$half="{0,1}" $build/bin/ibcoll_simulated_tests" \
    $build/bin/ibcoll_conformance_tests]])
ibcoll_suite(asan_api asan ALL SECONDS 600 TARGETS ibcoll_run ibcoll_ucx ibcoll_api_ranks
  COMMAND [[$no_leaks IBCOLL_TEST_LAYOUTS=one python3 tests/cases.py tests/multiprocess/test_api.py Jobs]])
ibcoll_suite(asan_collectives asan ALL SECONDS 600 TARGETS ibcoll_run ibcoll_ucx ibcoll_perf ibcoll_api_ranks
  COMMAND [[$no_leaks python3 tests/cases.py tests/multiprocess/test_collectives.py]])
ibcoll_suite(asan_tools asan ALL SECONDS 300 TARGETS ibcoll_run ibcoll_ucx ibcoll_trace ibcoll_bootstrap_programs
  COMMAND [[all_of "$no_leaks python3 tests/cases.py tests/bootstraps WithoutMpi LateUse PmixModule Pmi" \
    "python3 tests/cases.py tests/tools/test_trace.py Analysis BadInput InNode ServedOrder"]])
ibcoll_suite(asan_vm asan ALL SECONDS 300 LOCKS vm TARGETS ibcoll_conformance_tests
  COMMAND [[tests/vm/steps sanitized]])
