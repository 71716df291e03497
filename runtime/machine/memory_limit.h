// SPDX-License-Identifier: BSD-3-Clause
// How much memory the control groups of this process still allow. The kernel kills a process that takes more, without
// an error before.
#pragma once

#include <cstdint>
#include <string>

namespace ibcoll {

// Bytes; UINT64_MAX where nothing limits them or it cannot be found out; 0 where there is no memory to find out. A few
// system calls.
uint64_t memory_left() noexcept;

// The same for the group `path` ("/job/step") of a hierarchy that is mounted at `root`, version 2 or 1: of it and of
// all groups around it, the one that has the least left. Pages that hold files and were not used for long count as
// free.
uint64_t memory_left_in(const std::string& root, const std::string& path, bool version_2);

// Bytes that `ulimit -v` still allows this process to map; UINT64_MAX where there is no limit.
uint64_t address_space_left();

}  // namespace ibcoll
