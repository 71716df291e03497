# SPDX-License-Identifier: BSD-3-Clause
"""What only a kernel shows: the soft-RoCE device, limits of locked memory, two hosts, links that lose packets."""

from .fault import FAKE_VERBS, RDMA_IN_MEMORY_JOBS, VM, Fault

# Steps of tests/vm/inside/brief.
CONFORMANCE, CONNECTIONS, COPIED = "conformance*", "*for?connections", "*they?are?copied"
LOSS, NOTHING_COMES, CABLE, OUT_OF_REACH, GREETING = "loss*", "no?packet*", "*cable*", "*out?of?reach*", "*ranks?greet"

FAULTS = [
    # ---- the device
    Fault("rxe_first_packet_of_ones_own", "runtime/verbs/connector.cc",
          "attributes.rq_psn = theirs.first_packet;",
          "attributes.rq_psn = peer.connection.handshake.mine.first_packet;", VM, CONFORMANCE),
    Fault("rxe_windows_taken_for_good", "runtime/verbs/devices.cc",
          "attributes.vendor_id != kSoftRoceVendor", "attributes.vendor_id == kSoftRoceVendor", VM, CONFORMANCE),
    Fault("rxe_taken_for_an_adapter", "runtime/verbs/devices.cc",
          "attributes.vendor_id == kSoftRoceVendor", "false",
          FAKE_VERBS, "FaultTest.WhatIsNotTimedFollowsFromTheKindOfDevice"),
    Fault("rxe_region_without_remote_write", "runtime/verbs/exposures.cc",
          "adapter.opens_windows() ? IBV_ACCESS_MW_BIND : IBV_ACCESS_REMOTE_WRITE",
          "adapter.opens_windows() ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_MW_BIND", VM, CONFORMANCE),
    Fault("rxe_path_without_key_index", "runtime/verbs/greetings.cc",
          "attributes.grh.sgid_index = gid_index;", "attributes.grh.sgid_index = 0;", VM, CONFORMANCE),
    # ---- the kernel's connection manager
    Fault("rdmacm_waits_for_events", "runtime/verbs/rdmacm.cc", "F_SETFL, flags | O_NONBLOCK", "F_SETFL, flags",
          VM, CONFORMANCE),
    Fault("rdmacm_port_as_on_the_wire", "runtime/verbs/rdmacm.cc",
          "ntohs(rdma_get_src_port(listener_.get()))", "rdma_get_src_port(listener_.get())", VM, CONFORMANCE),
    Fault("rdmacm_never_establishes", "runtime/verbs/rdmacm_events.cc",
          "call.state = Call::State::kAnswered;", "call.state = Call::State::kDone;", VM, CONFORMANCE,
          same="the first message of the rank that called tells the other one that the connection is there"),
    Fault("rdmacm_greeting_read_late", "runtime/verbs/rdmacm_events.cc",
          "  event.param.conn.private_data = greeted ? &greeting : nullptr;\n", "", VM, CONFORMANCE),
    Fault("rdmacm_bytes_of_another_address", "runtime/verbs/rdmacm.cc",
          "std::memcpy(&address.ip4.sin_addr, ip.data() + 12, 4);",
          "std::memcpy(&address.ip4.sin_addr, ip.data() + 8, 4);", VM, CONFORMANCE),
    # ---- locked memory
    Fault("memlock_is_not_mentioned", "runtime/verbs/objects.cc",
          "if (memlock_limit() != kNoMemlock &&", "if (memlock_limit() == kNoMemlock &&", VM, CONNECTIONS),
    Fault("memlock_of_all_is_not_asked_for", "runtime/verbs/adapter.cc",
          'if (needed <= limit || config.text("IBCOLL_NET") != "auto") return {};',
          'if (needed <= limit || config.text("IBCOLL_NET") == "auto") return {};', VM, CONNECTIONS),
    Fault("memlock_right_to_exceed_taken_for_granted", "runtime/registration_cache/memlock.cc",
          "(data[0].effective & (1U << CAP_IPC_LOCK)) != 0", "(data[0].permitted | (1U << CAP_IPC_LOCK)) != 0",
          VM, CONNECTIONS),
    Fault("memlock_bounces_ask_for_no_completion", "runtime/verbs/put.cc",
          "const bool signaled = bounce != kBounces || sge.length == kLongestWrite;",
          "const bool signaled = sge.length == kLongestWrite;", VM, COPIED),
    # ---- processes that end
    Fault("rxe_own_process_is_watched", "runtime/verbs/local.h",
          "addresses_[static_cast<size_t>(rank)].process", "addresses_[static_cast<size_t>(own_rank_)].process",
          RDMA_IN_MEMORY_JOBS, "Jobs.test_a_rank_that_is_killed"),
    Fault("other_host_has_the_same_pids", "runtime/machine/process_watch.cc",
          "if (own_.machine == 0 || id.machine != own_.machine) return;", "if (own_.machine == 0) return;", VM, LOSS),
    # ---- links
    Fault("pair_port_is_down_for_a_look", "runtime/verbs/liveness_monitor.cc",
          "was_down ? port_down_for_ + std::min(", "was_down ? std::min(", VM, CABLE),
    Fault("pair_greets_through_a_port_that_is_down", "runtime/verbs/liveness_monitor.cc",
          "else if (!peer->liveness.has_deadline() && port_stays_down())",
          "else if (peer->liveness.has_deadline() && port_stays_down())", VM, CABLE),
    Fault("pair_lost_packets_lose_the_peer", "runtime/verbs/completions.cc",
          "if (done.status == IBV_WC_RETRY_EXC_ERR && recovery_.try_again(peer)) return;",
          "if (done.status == IBV_WC_RNR_RETRY_EXC_ERR && recovery_.try_again(peer)) return;", VM, NOTHING_COMES),
    Fault("pair_retries_are_the_timeout", "runtime/verbs/connector.cc",
          "attributes.timeout = local_.settings.timeout;", "attributes.timeout = local_.settings.retries;", FAKE_VERBS,
          "FaultTest.TheDeviceRepeatsAsTheSettingsSay"),
    Fault("pair_mtu_of_the_larger", "runtime/verbs/greetings.cc",
          "std::min<uint8_t>(theirs.mtu,", "std::max<uint8_t>(theirs.mtu,", VM, LOSS),
    Fault("pair_mtu_of_ones_own_is_ignored", "runtime/verbs/rdmacm.cc",
          "std::min({found.path_mtu, mtu_, ", "std::min({found.path_mtu, ", VM, LOSS),
    Fault("pair_greetings_stay_stopped", "runtime/verbs/greetings.cc",
          "attributes.qp_state = IBV_QPS_RESET;", "attributes.qp_state = IBV_QPS_ERR;", VM, GREETING),
    Fault("pair_no_address_needs_no_advice", "runtime/verbs/rdmacm_events.cc",
          '"rdma_resolve_addr", event.status < 0 ? -event.status : EHOSTUNREACH',
          '"rdma_resolve_addr", event.status < 0 ? event.status : EHOSTUNREACH', VM, OUT_OF_REACH),
]
