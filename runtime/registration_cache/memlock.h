// SPDX-License-Identifier: BSD-3-Clause
// How much memory this process may pin.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace ibcoll {

constexpr uint64_t kNoMemlock = std::numeric_limits<uint64_t>::max();

// Bytes (ulimit -l); kNoMemlock where no limit binds this process: unlimited, or with CAP_IPC_LOCK.
uint64_t memlock_limit();
// For a limit that binds: how much it is, and how to raise it.
std::string memlock_advice();

}  // namespace ibcoll
