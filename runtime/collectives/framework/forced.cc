// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/forced.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/base/catalog.h"
#include "runtime/base/config.h"
#include "runtime/collectives/framework/registry.h"

namespace ibcoll {
namespace {

constexpr const char* kGrammar = "NAME[:PARAMETER][:FROM..TO][,...], as in ring, knomial:4 or ring:64K..,shm";

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

// "auto, ring, knomial:RADIX"
std::string names(ibcoll_collective_t collective) {
  std::string all = "auto";
  for (const Algorithm* const a : algorithms()) {
    if (a->collective != collective) continue;
    all += fmt::format(", {}", a->name);
    if (a->parameter.unit != Parameter::Unit::kNone) all += fmt::format("[:{}]", a->parameter.name);
  }
  return all;
}

class Parser {
 public:
  Parser(ibcoll_collective_t collective, std::string_view text, std::string_view origin, ibcoll_status_t code)
      : collective_(collective), text_(text), origin_(origin), code_(code) {}

  Result<std::vector<ForcedEntry>> run() {
    for (const std::string_view part : split(text_, ',')) entry(part);
    if (status_.ok()) cover();
    if (!status_.ok()) return status_;
    return std::move(entries_);
  }

 private:
  template <typename... Values>
  void fail(fmt::format_string<Values...> format, Values&&... values) {
    if (status_.ok())
      status_ = error(code_, "{} algorithm '{}', demanded by {}: {}; the form is {}", kCatalog[collective_].name, text_,
                      origin_, fmt::format(format, std::forward<Values>(values)...), kGrammar);
  }

  void entry(std::string_view text) {
    const std::vector<std::string_view> parts = split(text, ':');
    ForcedEntry entry;
    entry.choice.algorithm = find_algorithm(collective_, parts.front());
    if (!entry.choice.algorithm)
      return fail("there is no such algorithm '{}'; there are {}", parts.front(), names(collective_));
    bool ranged = false;
    for (size_t i = 1; i < parts.size(); ++i) {
      const size_t dots = parts[i].find("..");
      if (dots == std::string_view::npos && i == 1) {
        parameter(entry.choice, parts[i]);
      } else if (dots != std::string_view::npos && i + 1 == parts.size()) {
        ranged = true;
        range(entry, parts[i].substr(0, dots), parts[i].substr(dots + 2));
      } else {
        fail("'{}' has a part too many", text);
      }
    }
    if (!ranged && std::exchange(has_rest_, true)) fail("two entries have no range of sizes");
    if (!ranged)
      rest_ = entry;
    else
      entries_.push_back(entry);
  }

  void parameter(Choice& choice, std::string_view text) {
    const Parameter& known = choice.algorithm->parameter;
    if (known.unit == Parameter::Unit::kNone)
      return fail("{} takes no parameter, so not '{}'", choice.algorithm->name, text);
    const Result<uint64_t> value = parse_bytes(text);
    if (!value.ok() || value.value() < known.least || value.value() > known.most)
      return fail("the {} of {} is '{}', it must be from {} to {}", known.name, choice.algorithm->name, text,
                  known.least, known.most);
    choice.parameter = value.value();
  }

  void range(ForcedEntry& entry, std::string_view from, std::string_view to) {
    const auto bound = [&](std::string_view text, uint64_t otherwise) {
      if (text.empty()) return otherwise;
      const Result<uint64_t> value = parse_bytes(text);
      if (!value.ok()) fail("'{}' is no size", text);
      return value.ok() ? value.value() : otherwise;
    };
    entry.from = bound(from, 0);
    entry.to = bound(to, UINT64_MAX);
    if (entry.from >= entry.to) fail("the range {}..{} is empty", from, to);
  }

  // Every size has exactly one entry. The entry without a range fills the gaps; it comes last.
  void cover() {
    std::sort(entries_.begin(), entries_.end(),
              [](const ForcedEntry& a, const ForcedEntry& b) { return a.from < b.from; });
    uint64_t covered = 0;
    for (const ForcedEntry& e : entries_) {
      if (e.from < covered) return fail("sizes from {} to {} have two entries", e.from, covered);
      if (e.from > covered && !has_rest_) return fail("sizes from {} to {} have no entry", covered, e.from);
      covered = e.to;
    }
    if (has_rest_)
      entries_.push_back(rest_);
    else if (covered != UINT64_MAX)
      fail("sizes from {} on have no entry", covered);
  }

  ibcoll_collective_t collective_;
  std::string_view text_;
  std::string_view origin_;
  ibcoll_status_t code_;
  Status status_;
  std::vector<ForcedEntry> entries_;
  ForcedEntry rest_;
  bool has_rest_ = false;
};

}  // namespace

std::string Choice::name() const {
  return parameter == 0 ? algorithm->name : fmt::format("{}:{}", algorithm->name, parameter);
}

Result<std::vector<ForcedEntry>> parse_forced(ibcoll_collective_t collective, std::string_view text,
                                              std::string_view origin, ibcoll_status_t code) {
  if (text.empty() || text == "auto") return std::vector<ForcedEntry>();
  return Parser(collective, text, origin, code).run();
}

const ForcedEntry& entry_for(const std::vector<ForcedEntry>& entries, uint64_t bytes) {
  for (const ForcedEntry& e : entries)
    if (bytes >= e.from && (bytes < e.to || e.to == UINT64_MAX)) return e;
  return entries.back();
}

}  // namespace ibcoll
