// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_info/selection.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "runtime/base/catalog.h"

namespace ibcoll::info {
namespace {

ibcoll_collective_args_t arguments(const Collective& row, uint64_t bytes) {
  ibcoll_collective_args_t args{};
  args.struct_size = sizeof args;
  args.collective = row.id;
  args.bytes = bytes;
  if (row.reduces()) {
    const bool doubles = bytes % sizeof(double) == 0;
    args.type = doubles ? IBCOLL_DOUBLE : IBCOLL_UINT8;
    args.count = doubles ? bytes / sizeof(double) : bytes;
    args.op = IBCOLL_SUM;
  }
  return args;
}

// "lowest predicted cost: shm 3.10 us (late 2.50), ring 9.82 us (late 9.82); not single_copy: the kernel ..."
std::string reason_of(const nlohmann::json& decision) {
  std::string text = decision["reason"];
  if (text.starts_with("demanded")) return text;
  const char* separator = ": ";
  for (const auto& one : decision["candidates"]) {
    text += fmt::format("{}{} {:.2f} us (late {:.2f})", separator, one["algorithm"].get<std::string>(),
                        one["cost_us"].get<double>(), one["late_us"].get<double>());
    separator = ", ";
  }
  for (const auto& one : decision["not_applicable"])
    text += fmt::format("; not {}: {}", one["algorithm"].get<std::string>(), one["why"].get<std::string>());
  return text;
}

Choice ask(ibcoll_team_t team, const Collective& row, uint64_t bytes) {
  const ibcoll_collective_args_t args = arguments(row, bytes);
  char text[16384] = "";
  if (ibcoll_explain(team, &args, text, sizeof text) != IBCOLL_OK) return {bytes, "", ibcoll_last_error()};
  const auto decision = nlohmann::json::parse(text);
  return {bytes, decision["algorithm"], reason_of(decision)};
}

}  // namespace

std::vector<Choice> choices(ibcoll_team_t team, ibcoll_collective_t collective, uint64_t min, uint64_t max) {
  const Collective& row = kCatalog[collective];
  if (!row.moves_data()) return {ask(team, row, 0)};
  std::vector<Choice> result;
  for (uint64_t bytes = min;; bytes = bytes == 0 ? 1 : bytes * 2) {
    result.push_back(ask(team, row, bytes));
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
      const char* const colon = first.algorithm.empty() ? "" : ": ";
      text += fmt::format("    {:<14} {}{}{}\n", size_text(first.bytes), first.algorithm, colon, first.reason);
    } else {
      text += fmt::format("    {:<14} {}\n", size_text(first.bytes) + " to " + size_text(last.bytes), first.algorithm);
      text += fmt::format("      at {}: {}\n      at {}: {}\n", size_text(first.bytes), first.reason,
                          size_text(last.bytes), last.reason);
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
