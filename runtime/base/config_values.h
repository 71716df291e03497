// SPDX-License-Identifier: BSD-3-Clause
// Text to value and back: what a setting accepts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/config.h"

namespace ibcoll {

Result<int64_t> parse_integer(std::string_view text);
Result<double> parse_seconds(std::string_view text);  // >= 0; "inf"
Result<bool> parse_boolean(std::string_view text);

// The values that this setting may have, in words: "one of auto, ucx, verbs, shm", "bytes from 4K to 4M, ...".
std::string allowed_text(const Setting& setting);
bool accepts(const Setting& setting, std::string_view text);
// The same text for the same value, however that was written ("8K" and "8192"). The setting accepts `text`.
std::string normal_form(const Setting& setting, std::string_view text);

// The setting whose name needs the fewest edits to become `name`.
const Setting& nearest_setting(std::string_view name);

}  // namespace ibcoll
