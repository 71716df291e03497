// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <string>

namespace ibcoll {

// Beside CLI::Range: NaN compares false, so that it is in every range.
inline CLI::Validator not_nan() {
  return CLI::Validator(
      [](const std::string& text) {
        double value = 0;
        const bool wrong = CLI::detail::lexical_cast(text, value) && std::isnan(value);
        return wrong ? fmt::format("'{}' is not a number", text) : std::string();
      },
      "");
}

}  // namespace ibcoll
