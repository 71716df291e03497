# SPDX-License-Identifier: BSD-3-Clause
"""The context: how ranks join, teams, requests; and the C interface above it."""

from .fault import API, FAILURES, SIMULATED, UNIT, Fault

API_UNIT, LINK = "Api*", "*LinkTrial*"

FAULTS = [
    Fault("rt_context_rank_of_the_size", "runtime/context/split.cc",
          "ranks[i] >= parent_size)", "ranks[i] > parent_size)",
          UNIT, API_UNIT),
    Fault("rt_context_signal_of_the_program", "runtime/context/signal_report.cc",
          "nullptr, &old) != 0 || old.sa_handler != SIG_DFL) return;", "nullptr, &old) != 0) return;",
          UNIT, API_UNIT + ":SignalReport*"),
    Fault("rt_context_signal_stays", "runtime/context/signal_report.cc",
          "old.sa_handler == on_signal) std::signal", "old.sa_handler != on_signal) std::signal",
          UNIT, API_UNIT + ":SignalReport*"),
    Fault("rt_context_link_by_its_slowest", "runtime/context/link_trial.cc",
          "took = std::min(took, marks_[i] - marks_[i - 2]);", "took = std::max(took + 1, marks_[i] - marks_[i - 2]);",
          SIMULATED, LINK),
    Fault("rt_context_link_that_is_assumed", "runtime/context/link_trial.cc",
          "model.beta == LinkModel::Beta::kReported && ", "",
          SIMULATED, LINK),
    Fault("rt_context_link_left_while_asked", "runtime/context/link_trial.cc",
          "end_sent_ && done_ && requested_ == 0", "end_sent_ && requested_ == 0",
          SIMULATED, LINK),
    Fault("rt_context_link_of_any_rank", "runtime/context/link_trial.cc",
          "event.note.kind == kData && event.peer == from_", "event.note.kind == kData",
          SIMULATED, LINK, same="no other rank sends data to this one"),
    Fault("rt_context_window_of_no_team_is_kept", "runtime/context/teams.cc",
          "    if (offer.offset != kNoWindow)\n", "    if (offer.offset == 0)\n",
          API, "Api.test_lists_differ_4x1"),
    Fault("rt_context_eager_is_less_than_a_slot", "runtime/context/join.cc",
          "if (t && eager > t->slot_bytes())", "if (t && eager >= t->slot_bytes())",
          API, "Api.test_rings_too_small_2x1"),
    Fault("rt_context_socket_named_by_the_job", "runtime/context/join.cc",
          "segment_id_ = all->back().nonce;", "segment_id_ = all->front().nonce;",
          UNIT, "Join*"),
    Fault("rt_context_peers_of_the_call_before", "runtime/context/trace_file.cc",
          "next < buffer.peers_kept() && ahead() <= 0;", "next < buffer.peers_kept() && ahead() < 0;",
          UNIT, API_UNIT + ":TraceFile*"),
    Fault("rt_context_trace_over_a_device", "runtime/context/trace_file.cc",
          "  if (exists && !S_ISREG(there.st_mode)) return setting;\n", "",
          UNIT, API_UNIT + ":TraceFile*"),

    Fault("rt_api_signal_for_a_context_that_is_gone", "runtime/api/api.cc",
          "    report_on_signal_no_more(&c);\n", "",
          UNIT, API_UNIT + ":SignalReport*"),
    Fault("rt_api_refused_team_is_left_as_it_was", "runtime/api/api.cc",
          "    *team = nullptr;\n    TeamHandle& from = *handle(parent);\n    Guard guard = from.context->enter();\n"
          "    Result<TeamHandle*> made = create_team(",
          "    TeamHandle& from = *handle(parent);\n    Guard guard = from.context->enter();\n"
          "    Result<TeamHandle*> made = create_team(",
          UNIT, API_UNIT),
    Fault("rt_api_world_is_freed", "runtime/api/api.cc",
          "    if (&t == &t.context->world())\n"
          '      return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_team_free: the world team belongs to its context");\n',
          "",
          UNIT, API_UNIT),
    Fault("rt_api_refused_request_is_left_as_it_was", "runtime/api/collectives.cc",
          "    *request = nullptr;\n    const auto known = taken_args(*args);\n    if (!known.ok()) return report(known.status());\n"
          "    args = ", "    const auto known = taken_args(*args);\n    if (!known.ok()) return report(known.status());\n    args = ",
          UNIT, API_UNIT),
    Fault("rt_api_tests_never_time_out", "runtime/api/collectives.cc",
          "return overdue.ok() ? IBCOLL_IN_PROGRESS : report(overdue);", "return IBCOLL_IN_PROGRESS;",
          FAILURES, "*StoppedInATransfer*"),
    Fault("rt_api_gatherv_without_displacements", "runtime/api/collectives.cc",
          "IBCOLL_GATHERV, send, recv, bytes);\n  args.recv_counts = recv_counts;\n"
          "  args.recv_displacements = recv_displacements;\n",
          "IBCOLL_GATHERV, send, recv, bytes);\n  args.recv_counts = recv_counts;\n"
          "  args.send_displacements = recv_displacements;\n",
          UNIT, API_UNIT),
    Fault("rt_api_only_one_is_true", "runtime/api/api.cc",
          "commutative != 0", "commutative == 1",
          UNIT, API_UNIT),
    Fault("rt_api_context_that_is_not_made", "runtime/api/api.cc",
          "    *context = nullptr;\n", "",
          UNIT, API_UNIT),
    Fault("rt_api_algorithms_of_all_collectives", "runtime/api/info.cc",
          "a->collective == collective && index-- == 0", "index-- == 0 && a->collective == collective",
          UNIT, API_UNIT),
]
