// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/base/config_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "runtime/base/subnet.h"

namespace ibcoll {
namespace {

using Kind = Setting::Kind;

template <typename T>
bool parse_whole(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end;
}

// Calls visit(part) for each part of `text` between separators.
template <typename Visit>
void split(std::string_view text, char separator, Visit visit) {
  for (;;) {
    const size_t at = text.find(separator);
    visit(text.substr(0, at));
    if (at == std::string_view::npos) return;
    text.remove_prefix(at + 1);
  }
}

template <typename T>
bool in_range(const char* allowed, T value, Result<T> (*parse)(std::string_view)) {
  const std::string_view range = allowed;
  const size_t dots = range.find("..");
  if (dots == std::string_view::npos) return true;
  const Result<T> low = parse(range.substr(0, dots));
  const Result<T> high = parse(range.substr(dots + 2));
  return low.ok() && high.ok() && low.value() <= value && value <= high.value();
}

template <typename T>
bool accepts_number(const Setting& setting, std::string_view text, Result<T> (*parse)(std::string_view)) {
  const Result<T> value = parse(text);
  return value.ok() && in_range(setting.allowed, value.value(), parse);
}

bool accepts_choice(const Setting& setting, std::string_view text) {
  bool found = false;
  split(setting.allowed, '|', [&](std::string_view choice) { found = found || choice == text; });
  return found;
}

// Names with parameters and ranges; the registry knows the grammar (collectives/framework/forced.h).
bool is_algorithm_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("_:.,KMG").find(c) != std::string_view::npos;
  });
}

// UCX's own marks among them: ^ before what is left out, \\ for exactly this one, : before an alias's kind.
bool is_transport_list(std::string_view text) {
  bool good = true;
  split(text, ',', [&](std::string_view name) {
    good = good && !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
             return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                    std::string_view("_^\\:").find(c) != std::string_view::npos;
           });
  });
  return good;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string range_text(const char* allowed) {
  const std::string_view range = allowed;
  const size_t dots = range.find("..");
  if (dots == std::string_view::npos) return {};
  return fmt::format(" from {} to {}", range.substr(0, dots), range.substr(dots + 2));
}

}  // namespace

Result<uint64_t> parse_bytes(std::string_view text) {
  int shift = 0;
  std::string_view digits = text;
  if (!digits.empty()) {
    const char suffix = digits.back();
    shift = suffix == 'K' || suffix == 'k'   ? 10
            : suffix == 'M' || suffix == 'm' ? 20
            : suffix == 'G' || suffix == 'g' ? 30
                                             : 0;
    if (shift > 0) digits.remove_suffix(1);
  }
  uint64_t value = 0;
  if (!parse_whole(digits, value) || value > std::numeric_limits<uint64_t>::max() >> shift) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT,
                 "'{}' is not a number of bytes: digits and at most one suffix K, M or G are allowed", text);
  }
  return value << shift;
}

Result<int64_t> parse_integer(std::string_view text) {
  int64_t value = 0;
  if (!parse_whole(text, value)) return error(IBCOLL_ERR_INVALID_ARGUMENT, "'{}' is not an integer", text);
  return value;
}

Result<double> parse_seconds(std::string_view text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  double value = 0;
  if (!parse_whole(text, value) || !std::isfinite(value) || value < 0) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "'{}' is not a number of seconds: e.g. 600, 0.5 or inf", text);
  }
  return value;
}

Result<bool> parse_boolean(std::string_view text) {
  for (const char* yes : {"yes", "on", "true", "1"}) {
    if (text == yes) return true;
  }
  for (const char* no : {"no", "off", "false", "0"}) {
    if (text == no) return false;
  }
  return error(IBCOLL_ERR_INVALID_ARGUMENT, "'{}' is neither yes nor no", text);
}

std::string allowed_text(const Setting& setting) {
  switch (setting.kind) {
    case Kind::kText:
      return "any text";
    case Kind::kChoice: {
      std::string list = "one of";
      split(setting.allowed, '|', [&](std::string_view choice) {
        list += list.ends_with("of") ? " " : ", ";
        list += choice;
      });
      return list;
    }
    case Kind::kInteger:
      return "an integer" + range_text(setting.allowed);
    case Kind::kBytes:
      return "bytes" + range_text(setting.allowed) + ", with a suffix K, M or G or none";
    case Kind::kSeconds:
      return "seconds" + range_text(setting.allowed);
    case Kind::kBoolean:
      return "yes or no (also on, off, true, false, 1, 0)";
    case Kind::kAlgorithm:
      return "auto or the name of an algorithm (ibcoll_info -A lists them)";
    case Kind::kGid:
      return "auto, an index" + range_text(setting.allowed) + ", or a subnet such as 10.1.0.0/16 or fd00::/8";
    case Kind::kTransports:
      return "names of UCX transports separated by commas, such as tcp,sm (ucx_info -d lists them)";
  }
  return {};
}

bool accepts(const Setting& setting, std::string_view text) {
  switch (setting.kind) {
    case Kind::kText:
      return true;
    case Kind::kChoice:
      return accepts_choice(setting, text);
    case Kind::kInteger:
      return accepts_number(setting, text, parse_integer);
    case Kind::kBytes:
      return accepts_number(setting, text, parse_bytes);
    case Kind::kSeconds:
      return accepts_number(setting, text, parse_seconds);
    case Kind::kBoolean:
      return parse_boolean(text).ok();
    case Kind::kAlgorithm:
      return is_algorithm_name(text);
    case Kind::kGid:
      return text == "auto" || parse_subnet(text) || accepts_number(setting, text, parse_integer);
    case Kind::kTransports:
      return is_transport_list(text);
  }
  return false;
}

std::string normal_form(const Setting& setting, std::string_view text) {
  switch (setting.kind) {
    case Kind::kInteger:
      return fmt::format("{}", parse_integer(text).value());
    case Kind::kBytes:
      return fmt::format("{}", parse_bytes(text).value());
    case Kind::kSeconds:
      return fmt::format("{}", parse_seconds(text).value());
    case Kind::kBoolean:
      return parse_boolean(text).value() ? "yes" : "no";
    case Kind::kText:
    case Kind::kChoice:
    case Kind::kAlgorithm:
    case Kind::kGid:
    case Kind::kTransports:
      break;
  }
  return std::string(text);
}

const Setting& nearest_setting(std::string_view name) {
  const auto settings = Config::settings();
  return *std::min_element(settings.begin(), settings.end(), [&](const Setting& a, const Setting& b) {
    return edit_distance(name, a.name) < edit_distance(name, b.name);
  });
}

}  // namespace ibcoll
