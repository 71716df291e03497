# SPDX-License-Identifier: BSD-3-Clause
"""What ibcoll does above UCX: credit, puts in pieces, the death of peers, who may connect."""

from .fault import CONFORMANCE, NO_MEMORY, Fault

UCX = "*ucx*"
DOORS, DEVICES = "UcxDoors*", "UcxDevices*"

FAULTS = [
    Fault("rt_ucx_the_other_of_two_ranks_waits", "runtime/ucx/connection.cc",
          "  end_connections(peer);\n", "",
          NO_MEMORY, "*2_ranks_2_nodes"),
    Fault("rt_ucx_given_up_puts_keep_their_source", "runtime/ucx/put.cc",
          "    LargePut& put = LargePut::in(whole);\n    put.all_posted = true;\n    if",
          "    LargePut& put = LargePut::in(whole);\n    if",
          CONFORMANCE, "*DeathTest*ucx*"),
    Fault("rt_ucx_sender_of_the_size", "runtime/ucx/receive.cc",
          "sender >= static_cast<uint32_t>(size_)", "sender > static_cast<uint32_t>(size_)",
          CONFORMANCE, "*ConnectionTest*ucx*",
          same="no such peer is made either; the message is dropped without a warning"),
    Fault("rt_ucx_refused_put_has_come", "runtime/ucx/receive.cc",
          "entry.refused ? Entry::State::kDropped : Entry::State::kReady", "Entry::State::kReady",
          CONFORMANCE, "*DroppedPut*ucx*"),
    Fault("rt_ucx_writes_while_concealed", "runtime/ucx/receive.cc",
          "exposure != nullptr && within && !exposure->concealing", "exposure != nullptr && within",
          CONFORMANCE, "*RegionTest*ucx*"),
    Fault("rt_ucx_deserter_is_not_reported", "runtime/ucx/send.cc",
          "  if (peer->state == Peer::State::kFailed && peer->left) report_failure(*peer, {});\n", "",
          CONFORMANCE, "*DeathTest*ucx*:*LeavingTest*ucx*"),
    Fault("rt_ucx_control_in_flight_for_ever", "runtime/ucx/send.cc",
          "  if (buffer.use == Buffer::Use::kControl) peer.control_in_flight = false;\n", "",
          CONFORMANCE, "*CreditTest*ucx*:*TrafficTest*ucx*"),
    Fault("rt_ucx_failures_come_twice", "runtime/ucx/connection.cc",
          "  if (!peer.failure.empty()) return;\n", "",
          CONFORMANCE, "*LeavingTest*ucx*"),
    Fault("rt_ucx_exact_size_is_too_large", "runtime/ucx/buffer_pool.cc",
          "if (bytes > kClasses[i]) continue;", "if (bytes >= kClasses[i]) continue;",
          CONFORMANCE, "UcxPool*"),
    Fault("rt_ucx_filter_jumps_too_far", "runtime/ucx/workarounds/tcp_sockets.cc",
          "static_cast<uint8_t>(2 * (words - 1 - word))", "static_cast<uint8_t>(2 * (words - word))",
          CONFORMANCE, DOORS),
    Fault("rt_ucx_interface_that_is_down", "runtime/ucx/devices.cc",
          '    if (!interface.up) return "is down";\n', "",
          CONFORMANCE, DEVICES),
    Fault("rt_ucx_door_beyond_its_bytes", "runtime/ucx/workarounds/socket_filter.cc",
          "hosts <= kMostHosts && bytes <= serialized.size() ? bytes : 0", "hosts <= kMostHosts ? bytes : 0",
          CONFORMANCE, DOORS),
]
