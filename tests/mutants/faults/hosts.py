# SPDX-License-Identifier: BSD-3-Clause
"""Host mode, teams by their members, operations on elements of many kinds."""

from .fault import API, FAILURES, UNIT, Fault

FAULTS = [
    Fault("host_turn_that_moved_waits_for_its_slice", "runtime/machine/wait_loop.cc",
          "now_ns() + (moved ? 0 : host_factor() * kHostSliceNs)", "now_ns() + host_factor() * kHostSliceNs",
          UNIT, "WaitLoop.AHost*"),
    Fault("host_that_moves_nothing_keeps_ranks_awake", "runtime/machine/wait_loop.cc",
          "if (moved) fresh();", "fresh();",
          UNIT, "WaitLoop.*Host*:AsleepForARing.*Host*"),
    Fault("host_leaves_with_the_lock", "runtime/context/context.cc",
          "  guard.unlock();  // a host may call ibcoll_progress meanwhile\n"
          "  Status parted = or_no_memory([&] { return bootstrap_->allgather(std::span(&mine, 1), parted_); });\n"
          "  guard.lock();\n",
          "  Status parted = or_no_memory([&] { return bootstrap_->allgather(std::span(&mine, 1), parted_); });\n",
          UNIT, "HostMode.*"),
    Fault("host_deadline_though_the_user_set_one", "runtime/context/context.cc",
          "if (!in_host() || config_.value(\"IBCOLL_TIMEOUT\").origin != \"default\") return;",
          "if (!in_host()) return;",
          UNIT, "HostMode.*"),
    Fault("host_signal_is_taken", "runtime/api/api.cc",
          "if (!(*context)->context->in_host()) report_on_signal(", "report_on_signal(",
          UNIT, "HostMode.*"),
    Fault("host_shares_a_node_without_turns", "runtime/shm/handover.cc",
          "if (meanwhile) moved = meanwhile();", "moved = false;",
          FAILURES, "Nodes/HostJob.MessagesOfTheHost*"),
    Fault("a_look_at_a_request_advances_it", "runtime/api/collectives.cc",
          "if (advances && r.in_flight()) context.progress();", "if (!advances || r.in_flight()) context.progress();",
          FAILURES, "Nodes/HostJob.ALook*"),
    Fault("host_loses_its_calls_of_ucx", "runtime/ucx/worker.cc",
          "const bool alone = !params.in_host;", "const bool alone = true;",
          FAILURES, "HostMode.*"),
    Fault("members_of_any_team_agree", "runtime/context/teams.cc",
          "digest.add(epoch);", "digest.add(epoch & 0);",
          API, "Api.test_bad_members_4x1"),
    Fault("members_who_got_nothing_disagree", "runtime/context/teams.cc",
          "mine.members && offers[i].members != 0)", "mine.members)",
          API, "Api.test_bad_members_4x1"),
    Fault("members_element_is_a_byte", "runtime/comm/reduce/reduction.h",
          "inout, count, element_bytes_, type", "inout, count * element_bytes_, 1, type",
          UNIT, "UserOperations.*"),
    Fault("backed_pages_of_another_part", "runtime/shm/segment_heap.cc",
          "while (page < last && pages_backed_[page]) ++page;", "page = last;",
          UNIT, "Segment*"),
]
