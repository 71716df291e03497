# SPDX-License-Identifier: BSD-3-Clause
"""The algorithms."""

from .fault import ARRIVALS, Fault, SEEDS, SIMULATED

COLLECTIVES = "runtime/collectives/"


def every(collective, algorithm):
    return f"*EveryAlgorithm*{collective}*_{algorithm}*"


FAULTS = [
    Fault("pap_direct_fixed_order", COLLECTIVES + "alltoall/pap_direct.cc",
          "    const int to = co_await c.next_arrival();\n",
          "    const int to = c.peer(i);\n"
          "    co_await c.ready(to, a.send.size(to));\n",
          SIMULATED, f"{ARRIVALS}:Direct*"),
    Fault("pap_direct_allgather_fixed_order", COLLECTIVES + "allgather/pap_direct.cc",
          "    const int to = co_await c.next_arrival();\n",
          "    const int to = c.peer(i);\n"
          "    co_await c.ready(to, own.size());\n",
          SIMULATED, f"{ARRIVALS}:Direct*"),
    Fault("pap_shm_direct_rows_in_fixed_order", COLLECTIVES + "alltoallv/pap_shm_direct.cc",
          "      if (k > 0) from = co_await c.next_landing();",
          "      if (k > 0) {\n"
          "        from = n->nodes.leader_of((n->here + k) % n->nodes.node_count());\n"
          "        co_await c.received_from(from);\n"
          "      }",
          SIMULATED, "*ArrivalAware*"),
    Fault("pap_shm_direct_alltoall_rows_in_fixed_order", COLLECTIVES + "alltoall/shm_direct.cc",
          "        if (k > 0) from = co_await c.next_landing();",
          "        if (k > 0) {\n"
          "          from = nodes.leader_of((here + k) % nodes.node_count());\n"
          "          co_await c.received_from(from);\n"
          "        }",
          SIMULATED, "*ArrivalAware*"),
    Fault("pap_shm_direct_allgather_rows_in_fixed_order", COLLECTIVES + "allgather/shm_direct.cc",
          "        if (k > 0) from = co_await c.next_landing();",
          "        if (k > 0) {\n"
          "          from = nodes.leader_of((here + k) % nodes.node_count());\n"
          "          co_await c.received_from(from);\n"
          "        }",
          SIMULATED, "*ArrivalAware*"),
    Fault("pap_shm_lanes_alltoall_fixed_order", COLLECTIVES + "alltoall/pap_shm_lanes.cc",
          "      room = put_row(",
          "      co_await c.ready(lanes.host(node), 1);\n"
          "      room = put_row(",
          SIMULATED, "*ArrivalAware*:NodeLanes*"),
    Fault("pap_shm_lanes_allgather_fixed_order", COLLECTIVES + "allgather/pap_shm_lanes.cc",
          "      c.put(lanes.host((here + i) % nodes.node_count()), mine);\n",
          "    {\n"
          "      co_await c.ready(lanes.host((here + i) % nodes.node_count()), mine.size());\n"
          "      c.put(lanes.host((here + i) % nodes.node_count()), mine);\n"
          "    }\n",
          SIMULATED, "*ArrivalAware*:NodeLanes*"),
    Fault("pap_shm_lanes_long_blocks_before_rows", COLLECTIVES + "alltoall/pap_shm_lanes.cc",
          " && !lanes.hosts(from))", ")",
          SIMULATED, every("alltoall", "pap_shm_lanes")),
    Fault("allreduce_pap_direct_fixed_order", COLLECTIVES + "allreduce/pap_direct.cc",
          "      const int from = co_await c.next_landing();\n",
          "      const int from = c.peer(i);\n"
          "      co_await c.received_from(from);\n",
          SIMULATED, "Allreduce*"),
    Fault("scatter_linear_fixed_order", COLLECTIVES + "scatter/linear.cc",
          "    const int to = co_await c.next_arrival();\n",
          "    const int to = c.peer(i);\n"
          "    co_await c.ready(to, a.send.size(to));\n",
          SIMULATED, "Scatter*"),
    Fault("ring_allgather_waits_for_nothing", COLLECTIVES + "allgather/ring.cc",
          "    co_await c.received_from(left, coming);\n", "",
          SIMULATED, every("allgather", "ring")),
    Fault("ring_allgather_wrong_block", COLLECTIVES + "allgather/ring.cc",
          "c.put(right, a.recv[c.peer(1 - i)]);",
          "c.put(right, a.recv[c.peer(-i)]);",
          SIMULATED, every("allgather", "ring")),
    Fault("recursive_doubling_allgather_no_wait", COLLECTIVES + "allgather/recursive_doubling.cc",
          "    co_await c.received_from(partner);\n", "",
          SIMULATED, every("allgather", "recursive_doubling")),
    Fault("recursive_doubling_allgather_any_p", COLLECTIVES + "allgather/recursive_doubling.cc",
          "return std::has_single_bit(static_cast<unsigned>(s.p)) ? nullptr : \"the number of ranks is not a "
          "power of two\";",
          "return s.p > 0 ? nullptr : \"\";",
          SIMULATED, every("allgather", "recursive_doubling")),
    Fault("bruck_allgather_last_round", COLLECTIVES + "allgather/bruck.cc",
          "const int count = std::min(distance, p - distance);",
          "const int count = std::min(distance, (p - distance) / 2 * 2);",
          SIMULATED, every("allgather", "bruck")),
    Fault("bruck_allgather_order", COLLECTIVES + "allgather/bruck.cc",
          "const Bytes block = a.recv[c.peer(i)];",
          "const Bytes block = a.recv[c.peer(-i)];",
          SIMULATED, every("allgather", "bruck")),
    Fault("binomial_bcast_root", COLLECTIVES + "bcast/binomial.cc",
          "const int parent = (v - bit + a.root) % p;",
          "const int parent = (v - bit) % p;",
          SIMULATED, every("bcast", "binomial")),
    Fault("binomial_bcast_last_child", COLLECTIVES + "bcast/binomial.cc",
          "    if (v + bit < p) c.put",
          "    if (v + bit < p - 1) c.put",
          SIMULATED, every("bcast", "binomial")),
    Fault("binomial_bcast_forwards_early", COLLECTIVES + "bcast/binomial.cc",
          "    co_await c.received();\n", "",
          SIMULATED, every("bcast", "binomial")),
    Fault("knomial_bcast_child", COLLECTIVES + "bcast/knomial.cc",
          "child < p) c.put",
          "child < p - 1) c.put",
          SIMULATED, every("bcast", "knomial")),
    Fault("dissemination_leaves_early", COLLECTIVES + "barrier/dissemination.cc",
          "distance < c.size(); distance *= 2",
          "2 * distance < c.size(); distance *= 2",
          SIMULATED, "Barrier*"),
    Fault("dissemination_does_not_wait", COLLECTIVES + "barrier/dissemination.cc",
          "    co_await c.received();\n", "",
          SIMULATED, every("barrier", "dissemination")),
    Fault("bruck_alltoall_final_place", COLLECTIVES + "alltoall/bruck.cc",
          "part(a.recv[c.peer(-i)], at, now)",
          "part(a.recv[c.peer(i)], at, now)",
          SIMULATED, every("alltoall", "bruck")),
    Fault("bruck_alltoall_bytes", COLLECTIVES + "alltoall/bruck.cc",
          "std::clamp<int64_t>(rest, 0, weight)",
          "std::clamp<int64_t>(rest, 0, weight - 1)",
          SIMULATED, every("alltoall", "bruck")),
    Fault("pairwise_alltoall_partner", COLLECTIVES + "alltoall/pairwise.cc",
          "const int from = exchange ? to : c.peer(-i);",
          "const int from = exchange ? to : c.peer(i);",
          SIMULATED, every("alltoall", "pairwise")),
    Fault("pairwise_alltoall_own_block", COLLECTIVES + "alltoall/pairwise.cc",
          "  c.copy(a.recv[c.rank()], a.send[c.rank()]);\n", "",
          SIMULATED, every("alltoall", "pairwise")),
    Fault("reduce_scatter_pairwise_not_combined", COLLECTIVES + "reduce_scatter/pairwise.cc",
          "    combine_in_order(reduction, own, work, true);\n",
          "    if (i > 1) combine_in_order(reduction, own, work, true);\n",
          SIMULATED, every("reduce_scatter", "pairwise")),
    Fault("recursive_halving_side", COLLECTIVES + "reduce_scatter/recursive_halving.cc",
          "if (upper) from = middle;",
          "if (!upper) from = middle;",
          SIMULATED, every("reduce_scatter", "recursive_halving")),
    Fault("scan_linear_exclusive", COLLECTIVES + "scan/linear.cc",
          "a.reduction(below.data(), upto.data(), count);",
          "a.reduction(upto.data(), below.data(), count);",
          SIMULATED, every("scan", "linear")),
    Fault("scan_linear_inclusive_gets_exclusive", COLLECTIVES + "scan/linear.cc",
          "    if (inclusive)\n"
          "      c.copy(part(a.buffer(), at, piece), upto);",
          "    if (inclusive && c.rank() == 0)\n"
          "      c.copy(part(a.buffer(), at, piece), upto);",
          SIMULATED, every("scan", "linear")),
    Fault("scan_recursive_doubling_first", COLLECTIVES + "scan/recursive_doubling.cc",
          "    if (distance == 1)\n",
          "    if (distance <= 2)\n",
          SIMULATED, every("scan", "recursive_doubling")),
    Fault("gather_linear_own_block", COLLECTIVES + "gather/linear.cc",
          "if (!a.in_place) c.copy",
          "if (a.in_place) c.copy",
          SIMULATED, every("gather", "linear")),
    Fault("scatter_linear_own_block", COLLECTIVES + "scatter/linear.cc",
          "if (!a.in_place) c.copy",
          "if (a.in_place) c.copy",
          SIMULATED, every("scatter", "linear")),
    Fault("allreduce_recursive_doubling_order", COLLECTIVES + "allreduce/recursive_doubling.cc",
          "work, other < self);",
          "work, other > self);",
          SIMULATED, every("allreduce", "recursive_doubling") + ":Deterministic*"),
    Fault("allreduce_recursive_doubling_no_unfold", COLLECTIVES + "allreduce/recursive_doubling.cc",
          "  co_await unfold(c, a.buffer(), pairs);\n",
          "  if (c.size() > 8) co_await unfold(c, a.buffer(), pairs);\n",
          SIMULATED, every("allreduce", "recursive_doubling")),
    Fault("direct_without_order", COLLECTIVES + "alltoall/direct.cc",
          "    co_await c.ready(to, a.send.size(to));\n", "",
          SIMULATED, f"{ARRIVALS}:Direct*"),
    Fault("pap_shm_direct_part_not_published", COLLECTIVES + "alltoallv/pap_shm_direct.cc",
          "    c.publish_part();\n"
          "    co_await c.all_published();\n",
          "    c.publish_part();\n",
          SIMULATED, every("alltoall", "pap_shm_direct") + f":PapShmDirect*:{SEEDS}"),
]
