// SPDX-License-Identifier: BSD-3-Clause
// State as JSON, for ibcoll_info: a value of nlohmann-json behind the few functions that describe state. Only json.cc,
// and context/tuning.cc, which reads a file, see the library: each source that includes it takes seconds more to
// compile.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace ibcoll {

class IBCOLL_MODULE_API Json {
 public:
  struct Member;

  Json() = default;  // null
  // An object: {{"name", "shm"}, {"ranks", 4}}
  Json(std::initializer_list<Member> members);
  Json(bool value);
  Json(double value);
  Json(const char* value) : Json(std::string_view(value)) {}
  Json(const std::string& value) : Json(std::string_view(value)) {}
  Json(std::string_view value);
  Json(std::signed_integral auto value) { assign(static_cast<int64_t>(value)); }
  Json(std::unsigned_integral auto value) { assign(static_cast<uint64_t>(value)); }
  Json(const std::vector<std::string>& values);  // a list
  static Json list();                            // an empty one

  // Sets a member of an object, or of null, which becomes an object.
  void set(std::string_view name, const Json& value);
  bool contains(std::string_view name) const;
  // A member that is a text, or else its JSON; "" when there is none.
  std::string text(std::string_view name) const;
  void push_back(const Json& value);  // of a list

  // On one line. Texts need not be UTF-8: what is not is replaced.
  std::string dump() const;

 private:
  void assign(int64_t value);
  void assign(uint64_t value);
  const nlohmann::json& value() const;
  nlohmann::json& own_value();

  std::shared_ptr<nlohmann::json> value_;  // copied when one of several owners changes it; nullptr: null
};

struct Json::Member {
  std::string_view name;
  Json value;
};

}  // namespace ibcoll
