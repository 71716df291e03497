// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/late_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace ibcoll::run {
namespace {

constexpr size_t kMostNamed = 16;

std::string named(const std::set<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  size_t count = 0;
  for (const int rank : ranks) {
    if (count == kMostNamed) return text + fmt::format(" and {} more", ranks.size() - count);
    text += fmt::format("{}{}", count++ == 0 ? "" : ",", rank);
  }
  return text;
}

}  // namespace

void LateRanks::read(std::string_view lines) {
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    read_line(std::string(lines.substr(at, end - at)));
    at = end + 1;
  }
}

void LateRanks::read_line(const std::string& line) {
  constexpr std::string_view kBegin = "[call of team ";
  const size_t begin = line.rfind(kBegin);
  const size_t prefix = line.find("ibcoll rank ");
  if (begin == std::string::npos || prefix == std::string::npos || prefix > begin || line.back() != ']') return;
  const size_t number = line.find(" #", begin);
  if (number == std::string::npos) return;
  const std::string team = line.substr(begin + kBegin.size(), number - begin - kBegin.size());
  uint32_t op = 0;
  int rank = -1, length = 0;
  double seconds = 0;
  if (std::sscanf(line.c_str() + number, " #%" SCNu32 " by rank %d for %lf s, awaits %n", &op, &rank, &seconds,
                  &length) < 3 ||
      length == 0)
    return;
  Call& call = calls_[{team, op}];
  const size_t name = line.find(": ", prefix), name_end = line.find(" #", prefix);
  if (name < name_end && name_end < begin) call.name = line.substr(name + 2, name_end - name - 2);
  call.seconds = std::max(call.seconds, seconds);
  call.inside.insert(rank);
  for (const char* at = line.c_str() + number + length; *at && *at != ']';) {
    char* after = nullptr;
    const long awaited = std::strtol(at, &after, 10);
    if (after == at) break;
    call.awaited.insert(static_cast<int>(awaited));
    at = *after == ',' ? after + 1 : after;
  }
}

std::vector<std::string> LateRanks::summary() const {
  std::vector<std::string> lines;
  for (const auto& [key, call] : calls_) {
    std::set<int> late;
    std::set_difference(call.awaited.begin(), call.awaited.end(), call.inside.begin(), call.inside.end(),
                        std::inserter(late, late.end()));
    if (late.empty()) continue;
    lines.push_back(fmt::format("{} {} late for {} #{}: {} {} for {} since {:.1f} s", named(late),
                                late.size() == 1 ? "is" : "are", call.name, key.second, named(call.inside),
                                call.inside.size() == 1 ? "waits" : "wait", late.size() == 1 ? "it" : "them",
                                call.seconds));
  }
  return lines;
}

}  // namespace ibcoll::run
