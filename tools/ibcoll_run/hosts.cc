// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/hosts.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "bootstrap/rendezvous_protocol.h"

namespace ibcoll::run {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// For messages: a file that is no host file may be one line of many megabytes.
std::string_view beginning(std::string_view text) { return text.substr(0, 80); }

Result<int> parse_slots(std::string_view text, int least) {
  int slots = 0;
  const auto [rest, reason] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (reason != std::errc() || rest != text.data() + text.size() || slots < least ||
      slots > static_cast<int>(rendezvous::kMaxRanks)) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "'{}' is not a number of ranks", beginning(text));
  }
  return slots;
}

// The name becomes an argument of the remote shell command: nothing that could be an option or shell syntax.
Status check_name(std::string_view name) {
  if (name.empty()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "a host name is missing");
  const auto allowed = [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("._-@:%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (name.front() == '-' || !std::all_of(name.begin(), name.end(), allowed)) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "'{}' is not a host name", beginning(name));
  }
  return {};
}

// "h1", "h1:4", "[fd00::1]", "[fd00::1]:4"
Result<HostEntry> parse_entry(std::string_view text) {
  HostEntry entry;
  std::string_view name = text;
  std::optional<std::string_view> slots;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    const std::string_view tail = close == std::string_view::npos ? "?" : text.substr(close + 1);
    if (!tail.empty() && tail.front() != ':') {
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "'{}' is not of the form [ADDRESS]:RANKS", beginning(text));
    }
    name = text.substr(1, close - 1);
    if (!tail.empty()) slots = tail.substr(1);
  } else if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    if (text.find(':', colon + 1) != std::string_view::npos) {
      return error(IBCOLL_ERR_INVALID_ARGUMENT,
                   "'{}' has more than one colon; write an IPv6 address as [ADDRESS]:RANKS", beginning(text));
    }
    name = text.substr(0, colon);
    slots = text.substr(colon + 1);
  }
  if (Status status = check_name(name); !status.ok()) return status;
  entry.name = name;
  if (slots) {
    const Result<int> number = parse_slots(*slots, 0);
    if (!number.ok()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "host {}: {}", name, number.status().text());
    entry.slots = number.value();
  }
  return entry;
}

// "h1 slots=4 max_slots=8" as well.
Result<HostEntry> parse_line(std::string_view line) {
  const size_t blank = line.find_first_of(kBlank);
  Result<HostEntry> entry = parse_entry(line.substr(0, blank));
  if (!entry.ok() || blank == std::string_view::npos) return entry;
  const auto malformed = [&] {
    return error(IBCOLL_ERR_INVALID_ARGUMENT,
                 "'{}': expected HOST, HOST:RANKS, HOST slots=RANKS or HOST slots=RANKS max_slots=RANKS",
                 beginning(line));
  };
  std::string_view rest = trim(line.substr(blank));
  while (!rest.empty()) {
    const size_t end = std::min(rest.find_first_of(kBlank), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest = trim(rest.substr(end));
    const size_t equals = std::min(word.find('='), word.size() - 1);
    const std::string_view name = word.substr(0, equals);
    std::optional<int>* field = nullptr;
    if (name == "slots") field = &entry->slots;
    if (name == "max_slots" || name == "max-slots") field = &entry->max_slots;
    if (field == nullptr || field->has_value()) return malformed();
    const Result<int> number = parse_slots(word.substr(equals + 1), field == &entry->slots ? 0 : 1);
    if (!number.ok()) return number.status();
    *field = number.value();
  }
  if (entry->max_slots && *entry->max_slots < entry->slots.value_or(1)) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "host {}: max_slots={} is below slots={}", entry->name, *entry->max_slots,
                 *entry->slots);
  }
  return entry;
}

// Hosts as they are mentioned, each perhaps several times.
class Mentions {
 public:
  void add(const HostEntry& entry) {
    const auto [place, is_new] = places_.try_emplace(without_case(entry.name), hosts_.size());
    if (is_new) {
      hosts_.push_back({entry.name, {}, {}});
      bare_.push_back(0);
    }
    repeated_ = repeated_ || !is_new;
    HostEntry& host = hosts_[place->second];
    bare_[place->second] += entry.slots ? 0 : 1;
    for (const auto& [sum, more] : {std::pair(&host.slots, entry.slots), std::pair(&host.max_slots, entry.max_slots)})
      if (more) *sum = static_cast<int>(std::min<int64_t>(int64_t{sum->value_or(0)} + *more, rendezvous::kMaxRanks));
  }

  // Where one host stands there several times, as in the node file of PBS, every mention without a number is a slot.
  // A host with 0 slots takes no rank, however many there are.
  std::vector<HostEntry> hosts() {
    for (size_t i = 0; repeated_ && i < hosts_.size(); ++i)
      if (bare_[i] > 0) hosts_[i].slots = hosts_[i].slots.value_or(0) + bare_[i];
    for (HostEntry& host : hosts_)
      if (host.max_slots && host.slots) host.max_slots = std::max(*host.max_slots, *host.slots);
    std::erase_if(hosts_, [](const HostEntry& host) { return host.slots == 0; });
    return std::move(hosts_);
  }

 private:
  std::vector<HostEntry> hosts_;
  std::vector<int> bare_;  // mentions without a number
  std::unordered_map<std::string, size_t> places_;
  bool repeated_ = false;
};

}  // namespace

std::string without_case(std::string name) {
  const size_t at = name.find('@');
  for (size_t i = at == std::string::npos ? 0 : at; i < name.size(); ++i)
    if (name[i] >= 'A' && name[i] <= 'Z') name[i] = static_cast<char>(name[i] - 'A' + 'a');
  return name;
}

Result<std::vector<HostEntry>> parse_host_list(std::string_view text) {
  Mentions mentions;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    Result<HostEntry> entry = parse_entry(trim(text.substr(begin, end - begin)));
    if (!entry.ok()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "--host {}: {}", text, entry.status().text());
    mentions.add(entry.value());
    begin = end + 1;
  }
  std::vector<HostEntry> hosts = mentions.hosts();
  if (hosts.empty()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "--host {}: no host has a slot", text);
  return hosts;
}

Result<std::vector<HostEntry>> parse_hostfile(std::string_view content, std::string_view path) {
  Mentions mentions;
  int number = 0, number_of_hosts = 0;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    std::string_view line = content.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    Result<HostEntry> entry = parse_line(line);
    if (!entry.ok()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}:{}: {}", path, number, entry.status().text());
    mentions.add(entry.value());
    ++number_of_hosts;
  }
  std::vector<HostEntry> hosts = mentions.hosts();
  if (hosts.empty())
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: no host {}", path, number_of_hosts == 0 ? "in it" : "has a slot");
  return hosts;
}

}  // namespace ibcoll::run
