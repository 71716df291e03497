// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace ibcoll {

// Some editors write it at the beginning of a text in UTF-8. It is no part of the text.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

constexpr std::string_view without_byte_order_mark(std::string_view text) noexcept {
  return text.substr(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
}

}  // namespace ibcoll
