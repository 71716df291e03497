// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

namespace ibcoll {

// A value above 0, and `most` at most. CLI::Range and CLI::PositiveNumber let "nan" pass.
inline CLI::Validator positive_number(double most) {
  return CLI::Validator(
      [most](const std::string& text) {
        double value = 0;
        const bool is_number = CLI::detail::lexical_cast(text, value);
        return is_number && value > 0 && value <= most ? ""
                                                       : fmt::format("{}: a number up to {:g} is wanted", text, most);
      },
      fmt::format("NUMBER up to {:g}", most));
}

}  // namespace ibcoll
