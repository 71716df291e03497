# SPDX-License-Identifier: BSD-3-Clause
"""Shared memory of a node: its segment, the heap in it, the rings."""

from .fault import API, CONFORMANCE, UNIT, Fault

SHM = "*/shm:ShmTurns*"

FAULTS = [
    Fault("rt_shm_a_signal_ends_the_handover", "runtime/shm/handover.cc",
          "    if (count < 0 && errno != EINTR) return false;", "    if (count < 0) return false;",
          UNIT, "Handover*"),
    Fault("rt_shm_name_without_its_end", "runtime/shm/handover.cc",
          "offsetof(sockaddr_un, sun_path) + 1 + bytes", "offsetof(sockaddr_un, sun_path) + bytes",
          UNIT, "Handover*"),
    Fault("rt_shm_answer_to_the_caller_before", "runtime/shm/handover.cc",
          "if (entries[i + 1].revents != 0)", "if (entries[i].revents != 0)",
          UNIT, "Handover*"),
    Fault("rt_shm_units_are_never_filled", "runtime/shm/heap.cc",
          "into + bytes > unit_", "into + bytes >= unit_",
          UNIT, "HeapTest*"),
    Fault("rt_shm_first_sender_first", "runtime/shm/receiver.cc",
          "Incoming& in = incoming_[next_incoming_++];", "Incoming& in = incoming_[i];",
          CONFORMANCE, SHM),
    Fault("rt_shm_units_as_large_as_ever", "runtime/shm/segment.cc",
          "std::clamp(std::bit_floor(address_space_left() / kPart), kLeastUnit, kUnit)",
          "std::clamp(std::bit_floor(address_space_left() / kPart), kUnit, kUnit)",
          UNIT, "Segment*"),
    Fault("rt_shm_files_may_be_short", "runtime/shm/segment.cc",
          "limit.rlim_cur < segment->heap_start_ + kHeapBytes;", "limit.rlim_cur < segment->heap_start_ + kLeastHeap;",
          UNIT, "Segment*"),
    Fault("rt_shm_last_chunk_is_not_backed", "runtime/shm/segment_heap.cc",
          "  for (uint64_t number = offset / kChunk; number * kChunk < offset + bytes; ++number)\n"
          "    if (!allocate_chunk(number).ok()) return false;",
          "  for (uint64_t number = offset / kChunk; (number + 1) * kChunk < offset + bytes; ++number)\n"
          "    if (!allocate_chunk(number).ok()) return false;",
          UNIT, "Segment*:NodeWindow*"),
    Fault("rt_shm_end_of_the_heap_is_out_of_it", "runtime/shm/segment_heap.cc",
          "bytes > heap_size_ - offset)", "bytes >= heap_size_ - offset)",
          UNIT, "Segment*"),
    Fault("rt_shm_upper_middle", "runtime/shm/memory_trial.cc",
          "static_cast<std::ptrdiff_t>((timed.size() - 1) / 2)", "static_cast<std::ptrdiff_t>(timed.size() / 2)",
          UNIT, "MemoryTrial*"),
    Fault("rt_shm_any_word_is_the_probe", "runtime/shm/single_copy.cc",
          "bytes).ok() && word == kProbeValue &&", "bytes).ok() &&",
          UNIT, "SingleCopy*"),
    Fault("rt_shm_memory_that_is_not_moved_fails_the_team", "runtime/shm/node_memory.cc",
          '  return error(IBCOLL_ERR_UNSUPPORTED, "{}", status.text());\n', "  return status;\n",
          API, "Api.test_secret_buffers_4x1"),
    Fault("rt_shm_memory_that_is_not_moved_fails_the_peer", "runtime/shm/sender.cc",
          " || (status.code() == IBCOLL_ERR_SYSTEM && ranks_.alive(to)))", ")",
          API, "Api.test_secret_buffers_4x1"),
    Fault("rt_shm_room_at_the_end_counts_for_nothing", "runtime/shm/sender.cc",
          "bytes <= to_end ? bytes : to_end + bytes", "bytes",
          CONFORMANCE, SHM),
]
