// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/tuning.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "runtime/base/hash.h"
#include "runtime/base/unique_fd.h"
#include "runtime/collectives/framework/registry.h"

namespace ibcoll {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;  // which tools/ibcoll_tune/tuning_file.cc writes

Status damaged(const std::string& why) { return error(IBCOLL_ERR_CONFIG, "is damaged: {}", why); }

// Throws what the library throws when a member is missing or of another type, or std::invalid_argument.
Tuning::Entry entry_of(const json& from) {
  Tuning::Entry entry;
  const std::vector<int> team = from.at("team").get<std::vector<int>>();
  if (team.size() != 5) throw std::invalid_argument("a team has 5 numbers");
  entry.team = {team[0], team[1], team[2], team[3], team[4] != 0};
  const std::string name = from.at("collective");
  bool known = false;
  for (const Collective& row : kCatalog)
    if (name == row.name) entry.calls.collective = row.id, known = true;
  if (!known) throw std::invalid_argument(fmt::format("'{}' is not a collective", name));
  const int scheme = from.at("scheme");
  if (scheme < IBCOLL_SCHEME_AUTO || scheme > IBCOLL_SCHEME_ZERO_COPY) throw std::invalid_argument("no such scheme");
  entry.calls.scheme = static_cast<ibcoll_scheme_t>(scheme);
  entry.calls.type = from.at("type");
  entry.calls.operation = from.at("operation");
  entry.calls.commutative = from.at("commutative");
  entry.calls.element_bytes = from.at("element_bytes");
  entry.calls.longest = from.at("longest");
  entry.calls.total = from.at("total");
  entry.algorithm = from.at("algorithm");
  entry.trials = from.at("trials");
  entry.us = from.at("us");
  if (!find_algorithm(entry.calls.collective, entry.algorithm))
    throw std::invalid_argument(fmt::format("'{}' is not an algorithm of {}", entry.algorithm, name));
  return entry;
}

// Ok, or which member is another one.
Status compare(const json& whole, const Tuning::Identity& mine) {
  const std::pair<const char*, const std::string&> members[] = {
      {"version", mine.version}, {"hardware", mine.hardware}, {"transport", mine.transport}, {"layout", mine.layout}};
  for (const auto& [name, here] : members) {
    const std::string its = whole.at(name);
    if (its != here) return error(IBCOLL_ERR_CONFIG, "is of another {}: '{}', here '{}'", name, its, here);
  }
  return {};
}

Status failed(const char* what, const std::string& path) {
  return error(IBCOLL_ERR_SYSTEM, "{} {}: {}", what, path, std::strerror(errno));
}

}  // namespace

TeamLayout layout_of(const Shape& team) noexcept {
  return {team.p, team.nodes, team.fewest_local, team.most_local, team.nodes_in_rank_order};
}

Result<Tuning> Tuning::parse(std::string_view text, const Identity* mine) {
  Tuning tuning;
  try {
    const json whole = json::parse(text);
    if (whole.at("ibcoll_tuning") != kFormat) return damaged("it has another format");
    if (mine)
      if (Status same = compare(whole, *mine); !same.ok()) return same;
    for (const json& entry : whole.at("choices")) tuning.entries_.push_back(entry_of(entry));
  } catch (const json::parse_error& wrong) {
    return damaged(fmt::format("it is no JSON from byte {} on", wrong.byte));
  } catch (const json::out_of_range&) {
    return damaged("a member is missing");
  } catch (const json::exception&) {
    return damaged("a member has another type than it should have");
  } catch (const std::invalid_argument& wrong) {
    return damaged(wrong.what());
  }
  return tuning;
}

Json Tuning::Identity::json() const {
  return {{"version", version}, {"hardware", hardware}, {"transport", transport}, {"layout", layout}};
}

Json Tuning::key(const TeamLayout& team, const CallClass& calls) {
  Json layout = Json::list();
  for (const int number : {team.ranks, team.nodes, team.fewest_local, team.most_local, team.in_rank_order ? 1 : 0})
    layout.push_back(number);
  return {{"team", layout},
          {"collective", kCatalog[calls.collective].name},
          {"scheme", static_cast<int>(calls.scheme)},
          {"type", calls.type},
          {"operation", calls.operation},
          {"commutative", calls.commutative},
          {"element_bytes", calls.element_bytes},
          {"longest", calls.longest},
          {"total", calls.total}};
}

const Tuning::Entry* Tuning::find(const TeamLayout& team, const CallClass& calls) const noexcept {
  for (const Entry& entry : entries_)
    if (entry.calls == calls && entry.team == team) return &entry;
  return nullptr;
}

// ---------------------------------------------------------------- the file

std::string hardware_identity() {
  std::ifstream file("/proc/cpuinfo");
  std::string model = "unknown processor";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name") && !line.starts_with("CPU part")) continue;
    const size_t value = line.find_first_not_of(" \t:", line.find(':'));
    if (value != std::string::npos) model = line.substr(value);
    break;
  }
  return fmt::format("{}, {} CPUs", model, std::thread::hardware_concurrency());
}

std::string tuning_path(std::string_view setting, const Tuning::Identity& mine) {
  if (setting == "off") return "";
  if (!setting.empty()) return std::string(setting);
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::string folder;
  if (cache && *cache == '/')  // the specification ignores others
    folder = cache;
  else if (home && *home == '/')
    folder = std::string(home) + "/.cache";
  else
    return "";
  Digest digest;
  digest.add(mine.version).add(mine.hardware).add(mine.transport).add(mine.layout);
  return fmt::format("{}/ibcoll/tuning-{:016x}.json", folder, digest.value());
}

Result<std::string> read_tuning(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno == ENOENT) return std::string();
  if (!file) return failed("cannot open", path);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return failed("cannot look at", path);
  if (!S_ISREG(info.st_mode)) return error(IBCOLL_ERR_SYSTEM, "{} is not a file", path);
  std::string text(Tuning::kMostBytes + 1, '\0');
  size_t length = 0;
  while (length < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("cannot read", path);
    if (got == 0) break;
    length += static_cast<size_t>(got);
  }
  if (length > Tuning::kMostBytes)
    return error(IBCOLL_ERR_SYSTEM, "{} is longer than {} bytes", path, Tuning::kMostBytes);
  text.resize(length);
  return text;
}

}  // namespace ibcoll
