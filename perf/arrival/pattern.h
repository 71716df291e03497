// SPDX-License-Identifier: BSD-3-Clause
// Arrival patterns: the delays of every rank in every call. ibcoll_perf and the programs it is compared with share
// it, so that the same pattern gives the same delays in each library.
//
// Source: Qian, Afsahi, "Process arrival pattern aware alltoall and allgather", section 3: after a barrier a rank
// computes for at most MIF times T, T being the time of one message of the collective's size.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/hash.h"

namespace ibcoll::perf {

struct ArrivalPattern {
  enum class Kind { kNone, kRandom, kLate, kFile };
  Kind kind = Kind::kNone;
  double mif = 0;                          // delays are at most mif times T
  double percent = 0;                      // kLate: of the ranks
  std::string path;                        // kFile
  std::vector<std::vector<double>> calls;  // kFile: microseconds of each rank, call by call
};

namespace arrival {

inline constexpr const char* kForms = "none, random:MIF, late:PERCENT:MIF or file:TRACE, for example random:32";

// A finite number from `least` to `most` that fills the text.
inline bool number(std::string_view text, double least, double most, double& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && value >= least && value <= most;  // NaN compares false
}

// Every call and draw has its own value, in any order.
inline uint64_t mixed(uint64_t x) noexcept { return scramble(x + kGoldenRatio); }
inline double uniform(uint64_t call, uint64_t draw) noexcept {  // in [0, 1)
  return static_cast<double>(mixed(mixed(call) + draw) >> 11) * 0x1p-53;
}

}  // namespace arrival

// Reads what --arrival has. "" or what is wrong. A file is not opened yet: load_arrivals().
inline std::string parse_arrival(const std::string& text, ArrivalPattern& pattern) {
  constexpr double kMost = 1e9;
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (text == "none") {
    pattern.kind = ArrivalPattern::Kind::kNone;
    return {};
  }
  if (name == "random") {
    pattern.kind = ArrivalPattern::Kind::kRandom;
    if (arrival::number(rest, 0, kMost, pattern.mif)) return {};
    return "'" + text + "': random:MIF needs a number from 0 to 1e9; try random:32";
  }
  if (name == "late") {
    pattern.kind = ArrivalPattern::Kind::kLate;
    const size_t second = rest.find(':');
    if (second != std::string::npos && arrival::number(rest.substr(0, second), 0, 100, pattern.percent) &&
        arrival::number(rest.substr(second + 1), 0, kMost, pattern.mif))
      return {};
    return "'" + text +
           "': late:PERCENT:MIF needs a percentage from 0 to 100 and a number from 0 to 1e9; try late:25:128";
  }
  if (name == "file") {
    pattern.kind = ArrivalPattern::Kind::kFile;
    pattern.path = rest;
    return rest.empty() ? "'" + text + "': a file name is missing; try file:arrivals.txt" : "";
  }
  return "'" + text + "': there is no such pattern; try " + arrival::kForms;
}

// Reads the lines of an arrival file: "# ibcoll arrivals 1 ranks P", then P delays in microseconds for each call. "" or
// what is wrong.
inline std::string read_arrivals(std::istream& input, const std::string& name, int ranks, ArrivalPattern& pattern) {
  constexpr double kMostDelay = 60e6;  // no call of a measurement waits for more than a minute
  const auto at = [&name](size_t line) { return name + ", line " + std::to_string(line) + ": "; };
  std::string text, rest;
  std::getline(input, text);
  int stated = 0;
  if (std::sscanf(text.c_str(), "# ibcoll arrivals 1 ranks %d", &stated) != 1 || stated < 1)
    return at(1) + "'# ibcoll arrivals 1 ranks P' is expected; write the file with ibcoll_trace --arrivals FILE";
  if (stated != ranks)
    return at(1) + "the arrivals are of " + std::to_string(stated) + " ranks and the job has " + std::to_string(ranks) +
           "; start as many ranks as the trace has";
  for (size_t line = 2; std::getline(input, text); ++line) {
    std::istringstream words(text);
    std::vector<double> delays;
    for (std::string word; words >> word;) {
      double delay = 0;
      if (!arrival::number(word, 0, kMostDelay, delay))
        return at(line) + "'" + word + "' is no delay from 0 to 6e7 microseconds; correct it or write the file anew";
      delays.push_back(delay);
    }
    if (delays.size() != static_cast<size_t>(ranks))
      return at(line) + std::to_string(delays.size()) + " delays, where " + std::to_string(ranks) +
             " are expected, one for each rank; correct it or write the file anew";
    pattern.calls.push_back(std::move(delays));
  }
  if (input.bad()) return name + ": cannot be read to its end; try another copy";
  return pattern.calls.empty() ? at(2) + "there is no call in it; trace a program that makes collective calls" : "";
}

inline std::string load_arrivals(ArrivalPattern& pattern, int ranks) {
  if (pattern.kind != ArrivalPattern::Kind::kFile) return {};
  std::ifstream input(pattern.path);
  if (!input) return pattern.path + ": cannot be opened; check the name, and that every node can read it";
  return read_arrivals(input, pattern.path, ranks, pattern);
}

// How long `rank` stays away in a call, in microseconds. `message_us`: T.
inline double arrival_delay(const ArrivalPattern& pattern, uint64_t call, int rank, int ranks, double message_us) {
  const auto me = static_cast<uint64_t>(rank);
  switch (pattern.kind) {
    case ArrivalPattern::Kind::kNone:
      return 0;
    case ArrivalPattern::Kind::kRandom:
      return arrival::uniform(call, me) * pattern.mif * message_us;
    case ArrivalPattern::Kind::kFile:
      return pattern.calls[call % pattern.calls.size()][me];
    case ArrivalPattern::Kind::kLate:
      break;
  }
  // The ranks with the lowest draws are late: at least one, and at least one is not.
  const double share = std::round(pattern.percent / 100 * ranks);
  const int late = std::min(std::max(static_cast<int>(share), 1), std::max(ranks - 1, 1));
  int lower = 0;
  const double mine = arrival::uniform(call, me);
  for (int other = 0; other < ranks; ++other)
    lower += arrival::uniform(call, static_cast<uint64_t>(other)) < mine ? 1 : 0;
  return lower < late ? pattern.mif * message_us : 0;
}

}  // namespace ibcoll::perf
