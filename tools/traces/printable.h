// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

namespace ibcoll::tracing {

// The text of a trace for terminals and pages: a control character, and a byte that is not part of UTF-8, becomes \x
// and two digits.
std::string printable(std::string_view text);

}  // namespace ibcoll::tracing
