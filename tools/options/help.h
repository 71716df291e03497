// SPDX-License-Identifier: BSD-3-Clause
// --help of the tools: what it is, examples, then the options, within 80 columns. And the option that a mistake meant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace ibcoll {

// `examples`: lines of at most 80 columns, each with its newline.
void give_help(CLI::App& app, std::string examples);

// Words of `text` in lines that end at 80 columns, from the second on after `indent` blanks. Newlines of the text stay.
std::string fill(std::string_view text, size_t indent = 0);

// "; did you mean --bytes?", or "" where no option of `app` is close to `word` (two letters, or a beginning).
std::string did_you_mean(const CLI::App& app, std::string_view word);

}  // namespace ibcoll
