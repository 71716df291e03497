// SPDX-License-Identifier: BSD-3-Clause
// Settings: IBCOLL_* variables and a configuration file. One table (config.cc) holds every setting with its default,
// its kind and its meaning; ibcoll_info -c prints that table, and a malformed value is an error that quotes it.
//
// Order: environment, then the file (IBCOLL_CONFIG_FILE, else ~/.config/ibcoll.conf, else /etc/ibcoll.conf; lines
// `NAME = value`, # starts a comment), then the default. An IBCOLL_* variable that no setting has is a warning that
// names the nearest setting.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "runtime/status.h"

namespace ibcoll {

struct Setting {
  enum class Kind { kText, kChoice, kInteger, kBytes, kSeconds, kBoolean, kAlgorithm };
  const char* name;      // "IBCOLL_TIMEOUT"
  Kind kind;
  const char* fallback;  // default, as a user would write it
  const char* allowed;   // choices separated by '|', or a range "1..64" / "1K..1M"; "" where the kind says it all
  const char* meaning;   // one line
};

class IBCOLL_MODULE_API Config {
 public:
  struct Value {
    std::string text;
    std::string origin;  // "default", "environment", or the file's path with the line
  };

  // Every setting, in the order ibcoll_info prints them.
  static std::span<const Setting> settings();
  // Reads environment and file and checks every value. CONFIG: names the setting, the value, its origin and what is
  // allowed.
  static Result<Config> load();

  const Value& value(std::string_view name) const;  // the name must be a setting's
  const std::string& text(std::string_view name) const { return value(name).text; }
  int64_t integer(std::string_view name) const;
  uint64_t bytes(std::string_view name) const;   // accepts suffixes K, M, G (powers of 1024)
  double seconds(std::string_view name) const;   // infinity for "inf"
  bool boolean(std::string_view name) const;     // yes|no, on|off, true|false, 1|0

 private:
  std::map<std::string, Value, std::less<>> values_;
};

// "64K" -> 65536; INVALID_ARGUMENT on anything else than digits and one suffix K, M or G. Also for the tools' options.
IBCOLL_MODULE_API Result<uint64_t> parse_bytes(std::string_view text);

}  // namespace ibcoll
