// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/network_end.h"

namespace ibcoll {

std::atomic<bool> NetworkEnd::come_{false};

void NetworkEnd::come() noexcept { come_.store(true, std::memory_order_relaxed); }

}  // namespace ibcoll
