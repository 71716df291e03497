// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/base/json.h"

#include <nlohmann/json.hpp>

namespace ibcoll {
namespace {

std::string to_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Json::Json(std::initializer_list<Member> members)
    : value_(std::make_shared<nlohmann::json>(nlohmann::json::value_t::object)) {
  for (const Member& member : members) set(member.name, member.value);
}

Json::Json(bool value) : value_(std::make_shared<nlohmann::json>(value)) {}

Json::Json(double value) : value_(std::make_shared<nlohmann::json>(value)) {}

Json::Json(std::string_view value) : value_(std::make_shared<nlohmann::json>(value)) {}

Json::Json(const std::vector<std::string>& values) : value_(std::make_shared<nlohmann::json>(values)) {}

Json Json::list() { return std::vector<std::string>(); }

void Json::assign(int64_t value) { own_value() = value; }

void Json::assign(uint64_t value) { own_value() = value; }

void Json::set(std::string_view name, const Json& value) { own_value()[std::string(name)] = value.value(); }

bool Json::contains(std::string_view name) const { return value().contains(name); }

std::string Json::text(std::string_view name) const {
  const auto found = value().find(name);
  if (found == value().end()) return {};
  return found->is_string() ? found->get<std::string>() : to_text(*found);
}

void Json::push_back(const Json& value) { own_value().push_back(value.value()); }

std::string Json::dump() const { return to_text(value()); }

const nlohmann::json& Json::value() const {
  static const auto& null = *new nlohmann::json;
  return value_ ? *value_ : null;
}

nlohmann::json& Json::own_value() {
  if (value_.use_count() != 1) value_ = std::make_shared<nlohmann::json>(value());
  return *value_;
}

}  // namespace ibcoll
