// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_info/selection.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace ibcoll::info {
namespace {

constexpr const char* kNameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789_";

ibcoll_collective_args_t arguments(ibcoll_collective_t collective, uint64_t bytes) {
  ibcoll_collective_args_t args{};
  args.struct_size = sizeof args;
  args.collective = collective;
  if (collective == IBCOLL_ALLREDUCE) {
    const bool doubles = bytes % sizeof(double) == 0;
    args.type = doubles ? IBCOLL_DOUBLE : IBCOLL_UINT8;
    args.count = doubles ? bytes / sizeof(double) : bytes;
    args.op = IBCOLL_SUM;
  } else if (collective != IBCOLL_BARRIER) {
    args.bytes = bytes;
  }
  return args;
}

Choice ask(ibcoll_team_t team, ibcoll_collective_t collective, uint64_t bytes) {
  const ibcoll_collective_args_t args = arguments(collective, bytes);
  char text[4096] = "";
  const ibcoll_status_t status = ibcoll_explain(team, &args, text, sizeof text);
  if (status != IBCOLL_OK) return {bytes, "", ibcoll_last_error()};
  const std::string_view answer = text;
  const size_t end = answer.find_first_not_of(kNameCharacters);
  // "name: reason"; anything else says why none would run.
  const bool named = end != std::string_view::npos && answer[end] == ':';
  return {bytes, named ? std::string(answer.substr(0, end)) : "", std::string(answer)};
}

std::string without_name(const Choice& choice) {
  if (choice.algorithm.empty()) return choice.reason;
  return choice.reason.substr(choice.reason.find_first_not_of(": ", choice.algorithm.size()));
}

}  // namespace

std::vector<Choice> choices(ibcoll_team_t team, ibcoll_collective_t collective, uint64_t min, uint64_t max) {
  if (collective == IBCOLL_BARRIER) return {ask(team, collective, 0)};
  std::vector<Choice> result;
  for (uint64_t bytes = min;; bytes = bytes == 0 ? 1 : bytes * 2) {
    result.push_back(ask(team, collective, bytes));
    if (bytes >= max || bytes > max / 2) break;
  }
  return result;
}

std::string size_text(uint64_t bytes) {
  constexpr const char* kSuffixes[] = {"", "K", "M", "G"};
  size_t suffix = 0;
  while (bytes > 0 && bytes % 1024 == 0 && suffix < 3) {
    bytes /= 1024;
    ++suffix;
  }
  return fmt::format("{}{}", bytes, kSuffixes[suffix]);
}

std::string selection_text(const std::vector<Choice>& choices) {
  std::string text;
  for (size_t i = 0; i < choices.size();) {
    size_t end = i + 1;
    while (end < choices.size() && choices[end].algorithm == choices[i].algorithm) ++end;
    const Choice &first = choices[i], &last = choices[end - 1];
    if (end - i == 1) {
      text += fmt::format("    {:<14} {}\n", size_text(first.bytes), first.reason);
    } else {
      text += fmt::format("    {:<14} {}\n", size_text(first.bytes) + " to " + size_text(last.bytes), first.algorithm);
      text += fmt::format("      at {}: {}\n      at {}: {}\n", size_text(first.bytes), without_name(first),
                          size_text(last.bytes), without_name(last));
    }
    i = end;
  }
  return text;
}

nlohmann::json selection_json(const std::vector<Choice>& choices) {
  auto list = nlohmann::json::array();
  for (const Choice& choice : choices) {
    list.push_back({{"bytes", choice.bytes}, {"algorithm", choice.algorithm}, {"reason", choice.reason}});
  }
  return list;
}

std::string algorithms_text(ibcoll_collective_t collective) {
  std::string text;
  for (int i = 0; const char* name = ibcoll_algorithm_name(collective, i); ++i) {
    text += fmt::format("  {:<20} {}\n", name, ibcoll_algorithm_about(collective, name));
  }
  return text;
}

nlohmann::json algorithms_json(ibcoll_collective_t collective) {
  auto list = nlohmann::json::array();
  for (int i = 0; const char* name = ibcoll_algorithm_name(collective, i); ++i) {
    list.push_back({{"name", name}, {"about", ibcoll_algorithm_about(collective, name)}});
  }
  return list;
}

}  // namespace ibcoll::info
