// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/base/config.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "runtime/base/byte_order_mark.h"
#include "runtime/base/config_values.h"
#include "runtime/base/log.h"
#include "runtime/base/start_folder.h"

namespace ibcoll {
namespace {

constexpr std::string_view kPrefix = "IBCOLL_";
constexpr std::string_view kLauncherPrefix = "IBCOLL_RUN_";
constexpr std::string_view kFileSetting = "IBCOLL_CONFIG_FILE";
constexpr std::string_view kMpiPrefix = "IBCOLL_MPI";  // of libraries that read the environment alone

const Setting* find_setting(std::string_view name) {
  for (const Setting& setting : Config::settings()) {
    if (name == setting.name) return &setting;
  }
  return nullptr;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string_view variable(const char* const* environment, std::string_view name) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

LogLevel log_level(std::string_view name) {
  if (name == "error") return LogLevel::kError;
  if (name == "info") return LogLevel::kInfo;
  if (name == "debug") return LogLevel::kDebug;
  return LogLevel::kWarning;
}

}  // namespace

class ConfigLoader {
 public:
  explicit ConfigLoader(const char* const* environment) : environment_(environment) {}

  Result<Config> run() {
    if (Status status = read_file(); !status.ok()) return status;
    if (Status status = read_environment(); !status.ok()) return status;
    return std::move(config_);
  }

 private:
  Status read_file() {
    if (const std::string path(variable(environment_, kFileSetting)); !path.empty()) {
      std::ifstream file(from_start_folder(path));
      if (!file) {
        return error(IBCOLL_ERR_CONFIG, "{}={}: {}; name a readable file or unset the variable", kFileSetting, path,
                     std::strerror(errno));
      }
      return read_lines(file, path);
    }
    const std::string home(variable(environment_, "HOME"));
    for (const std::string& path :
         {home.empty() ? "" : home + "/.config/ibcoll.conf", std::string("/etc/ibcoll.conf")}) {
      if (path.empty() || ::access(path.c_str(), F_OK) != 0) continue;
      std::ifstream file(path);
      if (!file) return error(IBCOLL_ERR_CONFIG, "{}: {}; make the file readable", path, std::strerror(errno));
      return read_lines(file, path);
    }
    return {};
  }

  Status read_lines(std::ifstream& file, const std::string& path) {
    int number = 0;
    for (std::string line; std::getline(file, line);) {
      const std::string origin = fmt::format("{}:{}", path, ++number);
      const std::string_view text = number == 1 ? without_byte_order_mark(line) : line;
      const std::string_view content = trim(text.substr(0, text.find('#')));
      if (content.empty()) continue;
      const size_t equals = content.find('=');
      if (equals == std::string_view::npos) {
        return error(IBCOLL_ERR_CONFIG, "{}: '{}' is not of the form NAME = value", origin, content);
      }
      const std::string_view name = trim(content.substr(0, equals));
      if (name == kFileSetting || name.starts_with(kMpiPrefix)) {
        return error(IBCOLL_ERR_CONFIG, "{}: {} counts in the environment only; remove the line", origin, name);
      }
      if (Status status = apply(name, trim(content.substr(equals + 1)), origin); !status.ok()) return status;
    }
    if (file.bad()) return error(IBCOLL_ERR_CONFIG, "{}: cannot be read: {}", path, std::strerror(errno));
    return {};
  }

  Status read_environment() {
    for (const char* const* entry = environment_; *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      const size_t equals = text.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view name = text.substr(0, equals);
      if (!name.starts_with(kPrefix) || name.starts_with(kLauncherPrefix)) continue;
      if (Status status = apply(name, text.substr(equals + 1), "environment"); !status.ok()) return status;
    }
    return {};
  }

  Status apply(std::string_view name, std::string_view text, const std::string& origin) {
    const Setting* setting = find_setting(name);
    if (setting == nullptr) {
      config_.warnings_.push_back(
          fmt::format("{}: {} is not a setting and has no effect; {} is the nearest (ibcoll_info -c lists all)", origin,
                      name, nearest_setting(name).name));
      return {};
    }
    if (text.empty()) return {};
    if (!accepts(*setting, text)) {
      return error(IBCOLL_ERR_CONFIG, "{}={} ({}): not a valid value; allowed: {}", name, text, origin,
                   allowed_text(*setting));
    }
    config_.values_.insert_or_assign(std::string(name), Config::Value{std::string(text), origin});
    return {};
  }

  const char* const* environment_;
  Config config_;
};

Config::Config() {
  for (const Setting& setting : settings()) values_[setting.name] = Value{setting.fallback, "default"};
}

Result<Config> Config::load_from(const char* const* environment) { return ConfigLoader(environment).run(); }

Result<Config> Config::load() {
  Result<Config> config = load_from(environ);
  if (config.ok()) set_log_level(log_level(config->text("IBCOLL_LOG")));
  return config;
}

const Config::Value& Config::value(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    log(LogLevel::kError, "{} is looked up, but settings.cc has no such row: a fault of ibcoll", name);
    std::abort();
  }
  return found->second;
}

// Every text was accepted for its kind when it was loaded, so that these cannot fail; a lookup with the wrong kind is a
// fault of the caller.
int64_t Config::integer(std::string_view name) const { return parse_integer(text(name)).value(); }
uint64_t Config::bytes(std::string_view name) const { return parse_bytes(text(name)).value(); }
double Config::seconds(std::string_view name) const { return parse_seconds(text(name)).value(); }
bool Config::boolean(std::string_view name) const { return parse_boolean(text(name)).value(); }

}  // namespace ibcoll
