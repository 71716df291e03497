// SPDX-License-Identifier: BSD-3-Clause
// The answer that ibcoll_info prints.
#pragma once

#include <cstdint>
#include <string>

#include "ibcoll.h"

namespace ibcoll::info {

// The question that is asked.
struct Options {
  bool version = false, settings = false, devices = false, algorithms = false, as_json = false;
  std::string collective;  // empty: all
  uint64_t min_bytes = 1, max_bytes = 4 << 20;
};

// Collective. What was asked for, as rank 0 sees it; "" on other ranks. `failure` says what is missing, and why. With
// nullptr: what is known without a job.
std::string answer(const Options& options, ibcoll_context_t context, std::string& failure);

}  // namespace ibcoll::info
