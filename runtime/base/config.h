// SPDX-License-Identifier: BSD-3-Clause
// Settings: IBCOLL_* variables and a configuration file. One table (settings.cc) holds every setting with its default,
// its kind and its meaning; ibcoll_info -c prints that table, and a malformed value is an error that quotes it.
//
// Order: environment, then the file (IBCOLL_CONFIG_FILE, else ~/.config/ibcoll.conf, else /etc/ibcoll.conf; lines
// `NAME = value`, # starts a comment), then the default. A variable that is set but empty counts as not set. An
// IBCOLL_* variable that no setting has is a warning that names the nearest setting; IBCOLL_RUN_* is the launcher's.
//
// Values are looked up by name at creation of a context, never while a collective runs.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace ibcoll {

class Json;
struct Collective;

struct Setting {
  enum class Kind { kText, kChoice, kInteger, kBytes, kSeconds, kBoolean, kAlgorithm, kGid, kTransports };
  const char* name;  // "IBCOLL_TIMEOUT"
  Kind kind;
  const char* fallback;  // default, as a user would write it
  const char* allowed;   // choices separated by '|', or a range "1..64" / "1K..1M" / "0.1..inf"; "": kind says it all
  const char* meaning;   // one line
  enum class Ranks { kAgree, kMayDiffer };
  Ranks ranks = Ranks::kAgree;  // whether all ranks of a job must have the same value; joining checks it
};

class IBCOLL_MODULE_API Config {
 public:
  struct Value {
    std::string text;
    std::string origin;  // "default", "environment", or the file's path with the line
  };

  Config();  // all defaults

  // Every setting, in the order ibcoll_info prints them.
  static std::span<const Setting> settings();
  // Reads environment and file and checks every value; the log level (IBCOLL_LOG) is in force from here on. CONFIG:
  // names the setting, the value, its origin and what is allowed. An algorithm's name is checked by the registry.
  static Result<Config> load();
  // The same from an environment given as in environ(7), without touching the log level.
  static Result<Config> load_from(const char* const* environment);

  // Lines to log once in a job: variables that no setting has.
  const std::vector<std::string>& warnings() const { return warnings_; }

  const Value& value(std::string_view name) const;  // the name must be a setting's
  const std::string& text(std::string_view name) const { return value(name).text; }
  int64_t integer(std::string_view name) const;
  uint64_t bytes(std::string_view name) const;  // accepts suffixes K, M, G (powers of 1024)
  double seconds(std::string_view name) const;  // infinity for "inf"
  bool boolean(std::string_view name) const;    // yes|no, on|off, true|false, 1|0

 private:
  friend class ConfigLoader;
  std::map<std::string, Value, std::less<>> values_;
  std::vector<std::string> warnings_;
};

// IBCOLL_<COLLECTIVE>, the setting that forces its algorithm.
std::string algorithm_setting(const Collective& collective);

// One object for each setting: name, kind, default, allowed, value, origin, meaning.
Json settings_json(const Config& config);

// "64K" -> 65536. Digits and at most one suffix K, M or G, in either case; anything else is INVALID_ARGUMENT. The
// tools' options use it, too.
IBCOLL_MODULE_API Result<uint64_t> parse_bytes(std::string_view text);

}  // namespace ibcoll
