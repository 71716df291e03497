// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/option_values.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "tools/oracle/distributions.h"

namespace ibcoll::simulator {
namespace {

template <typename Number>
bool read_number(const std::string& text, Number least, Number most, Number& number) {
  return !text.empty() && CLI::detail::lexical_cast(text, number) && number >= least && number <= most;
}

}  // namespace

std::vector<std::string> words_of(const std::string& list, char separator) {
  std::vector<std::string> words;
  std::istringstream stream(list);
  for (std::string word; std::getline(stream, word, separator);) words.push_back(word);
  if (list.empty() || list.back() == separator) words.emplace_back();
  return words;
}

Arrival parse_arrival(const std::string& text, int ranks) {
  Arrival arrival;
  const std::vector<std::string> words = words_of(text, ':');
  if (text == "none") return arrival;
  if (words.size() == 3 && words[0] == "late") {
    arrival.kind = Arrival::Kind::kLate;
    const std::vector<std::string> late = words_of(words[1], ',');
    const bool known = std::all_of(late.begin(), late.end(), [&](const std::string& word) {
      return read_number(word, 0, ranks - 1, arrival.late.emplace_back());
    });
    if (known && read_number(words[2], 0.0, kMostUs, arrival.us)) return arrival;
  } else if (words.size() == 2 && words[0] == "random") {
    arrival.kind = Arrival::Kind::kRandom;
    if (read_number(words[1], 0.0, kMostUs, arrival.us)) return arrival;
  }
  throw CLI::ValidationError(
      "--arrival",
      fmt::format("'{}': none, late:RANK[,RANK...]:US or random:US is wanted, with ranks 0 to {} and at most {:.0f} us",
                  text, ranks - 1, kMostUs));
}

uint64_t parse_one_size(const char* option, const std::string& text, uint64_t least, uint64_t most) {
  std::vector<uint64_t> sizes;
  if (text.find(':') == std::string::npos) {
    try {
      sizes = parse_sizes(text, 2);
    } catch (const CLI::ValidationError&) {  // it names another option
      sizes.clear();
    }
  }
  if (sizes.size() == 1 && sizes[0] >= least && sizes[0] <= most) return sizes[0];
  throw CLI::ValidationError(
      option, fmt::format("'{}': a size from {} to {} is wanted, with suffixes K, M", text, least, most));
}

Time Arrival::of(int at) const {
  const double most = us * 1000;
  if (kind == Kind::kNone) return 0;
  if (kind == Kind::kLate) return std::count(late.begin(), late.end(), at) > 0 ? static_cast<Time>(most) : 0;
  const auto share = static_cast<double>(oracle::draw(static_cast<uint64_t>(at)) >> 11) * 0x1p-53;
  return static_cast<Time>(most * share);
}

}  // namespace ibcoll::simulator
