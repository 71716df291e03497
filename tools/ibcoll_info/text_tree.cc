// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_info/text_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ibcoll::info {
namespace {

using nlohmann::json;

std::string scalar(const json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().empty() ? "none" : value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_null()) return "unknown";
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.dump();
}

// 0,1,2,3,8 -> "0-3,8"
std::string runs(const json& list) {
  std::string text;
  for (size_t i = 0; i < list.size();) {
    size_t end = i + 1;
    while (end < list.size() && list[end].get<int64_t>() == list[end - 1].get<int64_t>() + 1) ++end;
    if (!text.empty()) text += ',';
    text += list[i].dump();
    if (end - i > 2) {
      text += '-' + list[end - 1].dump();
    } else if (end - i == 2) {
      text += ',' + list[end - 1].dump();
    }
    i = end;
  }
  return text;
}

// "" when the list is no list of plain values.
std::string flat_list(const json& list) {
  if (std::any_of(list.begin(), list.end(), [](const json& entry) { return entry.is_structured(); })) return {};
  if (std::all_of(list.begin(), list.end(), [](const json& entry) { return entry.is_number_integer(); })) {
    return runs(list);
  }
  std::string text;
  for (const json& entry : list) text += (text.empty() ? "" : ", ") + scalar(entry);
  return text;
}

void append(const std::string& name, const json& value, int indent, std::string& text) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  if (value.is_structured() && value.empty()) {
    text += fmt::format("{}{}: none\n", margin, name);
  } else if (!value.is_structured()) {
    text += fmt::format("{}{}: {}\n", margin, name, scalar(value));
  } else if (const std::string flat = value.is_array() ? flat_list(value) : ""; !flat.empty()) {
    text += fmt::format("{}{}: {}\n", margin, name, flat);
  } else {
    text += fmt::format("{}{}:\n", margin, name) + text_tree(value, indent + 2);
  }
}

// The name of an entry of a list: its own name, where it has one.
std::string entry_name(const json& entry, size_t index) {
  if (entry.is_object() && entry.contains("name") && entry["name"].is_string()) return entry["name"].get<std::string>();
  return std::to_string(index);
}

}  // namespace

std::string text_tree(const json& value, int indent) {
  std::string text;
  if (value.is_object()) {
    for (const auto& [name, entry] : value.items()) append(name, entry, indent, text);
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      json entry = value[i];
      const std::string name = entry_name(entry, i);
      if (entry.is_object() && entry.size() > 1) entry.erase("name");
      append(name, entry, indent, text);
    }
  } else {
    text = std::string(static_cast<size_t>(indent), ' ') + scalar(value) + '\n';
  }
  return text;
}

}  // namespace ibcoll::info
