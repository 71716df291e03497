# SPDX-License-Identifier: BSD-3-Clause
"""Faults of what the routes into an MPI share, and of the interposition library."""

from .fault import PMPI, Fault

CORE, ROUTE = "bootstrap/under_mpi/core/", "bootstrap/under_mpi/pmpi/"


def both(*cases):
    return " ".join(f"{mpi}.{case}" for mpi in ("OpenMpi", "Mpich") for case in cases)


RESULTS = both("test_results_are_those_of_the_mpi")
FAULTS = [
    Fault("mpi_permuted_types_are_one_run", CORE + "type_layout.cc",
          "  if (all.start + all.bytes != next.start) return false;\n", "",
          PMPI, RESULTS),
    Fault("mpi_gaps_between_elements_are_data", CORE + "datatype.h",
          "(count <= 1 || extent == size)", "(count <= 1 || extent >= size)",
          PMPI, RESULTS),
    Fault("mpi_vectors_of_any_stride_are_one_run", CORE + "type_layout.cc",
          "  if (stride != run->bytes) return", "  if (stride < run->bytes) return",
          PMPI, RESULTS),
    Fault("mpi_own_block_is_not_packed", CORE + "builder.cc",
          "  if (input.count > 0) pack(", "  if (input.count > 0 && input.offset > 0) pack(",
          PMPI, RESULTS),
    Fault("mpi_blocks_below_the_buffer", CORE + "builder_v.cc",
          "blocks.lowest = blocks.bytes > 0 ? lowest : 0;", "blocks.lowest = blocks.bytes > 0 ? std::max<int64_t>(lowest, 0) : 0;",
          PMPI, both("test_blocks_that_overlap_and_lie_below_the_buffer")),
    Fault("mpi_root_unpacks_its_bcast", CORE + "requests.cc",
          "    prepared_->unpack_all();\n", "",
          PMPI, both("test_results_of_nonblocking_ones_are_those_of_the_mpi")),
    Fault("mpi_every_operation_commutes", CORE + "operation.cc",
          "op_of_program(commutative != 0)", "op_of_program(true)",
          PMPI, RESULTS),
    Fault("mpi_packed_operands_of_one_part_only", CORE + "operation.cc",
          "unpack(in + done * type.size,", "unpack(in,",
          PMPI, RESULTS),
    Fault("mpi_exscan_unpacks_on_the_first_rank", CORE + "builder_reduce.cc",
          "call_.collective == Collective::kExscan && rank_ == 0", "call_.collective == Collective::kScan && rank_ < 0",
          PMPI, RESULTS),
    Fault("mpi_does_not_progress", ROUTE + "process.cc",
          "  IBCOLL_NEXT(Request_get_status)(endless, &complete, MPI_STATUS_IGNORE);\n", "  static_cast<void>(complete);\n",
          PMPI, both("test_a_message_needs_its_sender_in_a_barrier")),
    Fault("mpi_last_communicator_after_its_end", ROUTE + "process.cc",
          "  ended_communicators.fetch_add(1);\n", "",
          PMPI, both("test_many_communicators_one_after_the_other", "test_kinds_of_communicators")),
    Fault("mpi_freed_types_are_freed_at_once", ROUTE + "lifetimes.cc",
          "  if (type == nullptr || !types().defer(key_of(*type))) return", "  return",
          PMPI, both("test_types_and_operations_freed_in_flight")),
    Fault("mpi_off_counts_for_its_rank_only", CORE + "job.cc",
          "  if (least[0] == 0) return Reason::kOff;", "  if (!own.on) return Reason::kOff;",
          PMPI, both("test_off")),
    Fault("mpi_lists_count_for_their_rank_only", CORE + "job.cc",
          "static_cast<uint32_t>(least[3 + i]) << i", "(own.collectives >> i & 1) << i",
          PMPI, both("test_a_list_of_collectives")),
    Fault("mpi_thread_does_not_advance", ROUTE + "advancer.cc",
          "ibcoll_progress_events(of_job, &events);", "static_cast<void>(events);",
          PMPI, "Mpich.test_a_nonblocking_collective_needs_its_rank_in_other_calls"),
    Fault("mpi_waits_do_not_complete", ROUTE + "waits.cc",
          "    const bool moved = progress() > 0;", "    const bool moved = false;",
          PMPI, "Mpich.test_results_of_nonblocking_ones_are_those_of_the_mpi"),
    Fault("mpi_team_ids_repeat", CORE + "members.cc",
          "return (++count << kRankBits) | rank;", "return (count << kRankBits) | rank;",
          PMPI, both("test_threads")),
    Fault("mpi_equal_buffers_are_not_copied", CORE + "builder.h",
          "    return call_.send.buffer == call_.recv.buffer &&", "    return false && call_.send.buffer == call_.recv.buffer &&",
          PMPI, "OpenMpi.test_equal_send_and_receive_buffers"),
]
