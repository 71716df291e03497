// SPDX-License-Identifier: BSD-3-Clause
// The calls that a page draws.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/traces/trace.h"

namespace ibcoll::tracing {

using Writer = std::function<void(std::string_view)>;

struct PageCall {
  const Call* call = nullptr;
  bool messages = false;  // with what its ranks sent to each other
};

// A browser draws this many bars and lines at a time without delay.
constexpr size_t kMostBars = 100'000, kMostMessages = 200'000;

// The calls whose ranks arrived furthest apart, in the order in which they were made: at most kMostBars bars (a rank of
// a call each), with kMostMessages messages.
std::vector<PageCall> page_calls(const TracedJob& job);
// Says what page_calls() left out, and how to see it; "": nothing.
std::string left_out(const TracedJob& job, const std::vector<PageCall>& shown);
// As one JSON text that may stand in a script. `least_us`: how long its time line is at least.
void write_calls(const TracedJob& job, const std::vector<PageCall>& shown, double least_us, const Writer& write);

}  // namespace ibcoll::tracing
