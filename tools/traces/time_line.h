// SPDX-License-Identifier: BSD-3-Clause
// A page with a time line that needs nothing else: a row for each rank, a bar for each call, and a script that draws them.
#pragma once

#include <string>
#include <vector>

#include "tools/traces/page_calls.h"
#include "tools/traces/trace.h"

namespace ibcoll::tracing {

// A page is page_head(), what else it has, and a time line, which ends it.
std::string page_head();
// `shown`: as of page_calls(). `least_us`: the line is at least so long.
void write_time_line(const TracedJob& job, const std::vector<PageCall>& shown, double least_us, const Writer& write);
// A text that may stand between elements, and as an attribute.
std::string html_text(const std::string& text);

}  // namespace ibcoll::tracing
