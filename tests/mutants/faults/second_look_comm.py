# SPDX-License-Identifier: BSD-3-Clause
"""Node windows and reductions: what is not reset, and kernels of rare types."""

from .fault import Fault, UNIT

WINDOW = "NodeWindow*:Engine*"
KERNELS = "*Kernels*:*Reduce*:OneOperand*:UserOperations*"

FAULTS = [
    Fault("again_window_left_by_the_team_before", "runtime/comm/window_memory.cc",
          "    control->members[i].failure.store(0, std::memory_order_relaxed);\n", "",
          UNIT, WINDOW),
    Fault("again_window_backed_for_the_team_before", "runtime/comm/window_memory.cc",
          "  control->backed.store(0, std::memory_order_relaxed);\n", "",
          UNIT, WINDOW),
    Fault("again_window_called_off_by_the_team_before", "runtime/comm/window_memory.cc",
          "  control->called_off.store(0, std::memory_order_relaxed);\n", "",
          UNIT, WINDOW),
    Fault("again_window_called_off_by_a_healthy_rank", "runtime/comm/window_presence.cc",
          "  if (failed) control->called_off.store(1);\n", "  if (!failed) control->called_off.store(1);\n",
          UNIT, WINDOW),
    Fault("again_window_backs_more_than_its_areas", "runtime/comm/window_memory.cc",
          "        std::min(area_bytes_, std::max<uint64_t>(4096, std::bit_ceil(std::min(bytes, area_bytes_))));",
          "        std::max<uint64_t>(4096, std::bit_ceil(std::min(bytes, area_bytes_)));",
          UNIT, WINDOW),
    Fault("again_lines_used_without_memory", "runtime/comm/window_memory.cc",
          "state = tag | (trouble_.ok() ? WindowControl::kUsed : WindowControl::kUnused);",
          "state = tag | WindowControl::kUsed;",
          UNIT, WINDOW),
    Fault("again_last_bank_not_backed", "runtime/comm/window_memory.cc",
          "bank < kBanks; ++bank)", "bank < kBanks - 1; ++bank)",
          UNIT, WINDOW),
    Fault("again_lines_of_the_team_before", "runtime/comm/window_memory.cc",
          "  if (!memory_->zeros(offset_)) std::memset(static_cast<void*>(lines_), 0, bytes);\n", "",
          UNIT, WINDOW),
    Fault("again_first_node_is_always_new", "runtime/comm/placement.cc",
          "    if (node < 0) {\n", "    if (node <= 0) {\n",
          UNIT, "TeamPlacement*"),
    Fault("again_short_int_is_int_int", "runtime/comm/reduce/types.cc",
          "sizeof(Pair<short>)", "sizeof(short) + sizeof(int)",
          UNIT, KERNELS),
    Fault("again_lxor_of_one_rank", "runtime/comm/reduce/reduction.cc",
          " || op.index == kLor || op.index == kLxor;", " || op.index == kLor;",
          UNIT, KERNELS),
    Fault("again_long_double_lxor_of_values", "runtime/comm/reduce/scalar_kernels.cc",
          "return (a != 0) != (b != 0);", "return a != b;",
          UNIT, KERNELS),
    Fault("again_bfloat16_is_not_replaced", "runtime/comm/reduce/scalar_kernels.cc",
          "IBCOLL_UINT16, IBCOLL_FLOAT16, IBCOLL_BFLOAT16}) t", "IBCOLL_UINT16, IBCOLL_FLOAT16}) t",
          UNIT, KERNELS),
]
