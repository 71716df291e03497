// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/hosts.h"

#include <algorithm>
#include <charconv>

#include "bootstrap/rendezvous_protocol.h"

namespace ibcoll::run {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

Result<int> parse_slots(std::string_view text) {
  int slots = 0;
  const auto [rest, reason] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (reason != std::errc() || rest != text.data() + text.size() || slots < 1 ||
      slots > static_cast<int>(rendezvous::kMaxRanks)) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "'{}' is not a number of ranks", text);
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
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "'{}' is not a host name", name);
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
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "'{}' is not of the form [ADDRESS]:RANKS", text);
    }
    name = text.substr(1, close - 1);
    if (!tail.empty()) slots = tail.substr(1);
  } else if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    if (text.find(':', colon + 1) != std::string_view::npos) {
      return error(IBCOLL_ERR_INVALID_ARGUMENT,
                   "'{}' has more than one colon; write an IPv6 address as [ADDRESS]:RANKS", text);
    }
    name = text.substr(0, colon);
    slots = text.substr(colon + 1);
  }
  if (Status status = check_name(name); !status.ok()) return status;
  entry.name = name;
  if (slots) {
    const Result<int> number = parse_slots(*slots);
    if (!number.ok()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "host {}: {}", name, number.status().text());
    entry.slots = number.value();
  }
  return entry;
}

// "h1 slots=4" as well.
Result<HostEntry> parse_line(std::string_view line) {
  const size_t blank = line.find_first_of(kBlank);
  Result<HostEntry> entry = parse_entry(line.substr(0, blank));
  if (!entry.ok() || blank == std::string_view::npos) return entry;
  const std::string_view rest = trim(line.substr(blank));
  constexpr std::string_view kSlots = "slots=";
  if (!rest.starts_with(kSlots) || entry->slots) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "'{}': expected HOST, HOST:RANKS or HOST slots=RANKS", line);
  }
  const Result<int> number = parse_slots(rest.substr(kSlots.size()));
  if (!number.ok()) return number.status();
  entry->slots = number.value();
  return entry;
}

Status add(std::vector<HostEntry>& hosts, HostEntry entry) {
  if (std::any_of(hosts.begin(), hosts.end(), [&](const HostEntry& other) { return other.name == entry.name; })) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "host {} is listed twice; add its ranks up in one entry", entry.name);
  }
  hosts.push_back(std::move(entry));
  return {};
}

}  // namespace

Result<std::vector<HostEntry>> parse_host_list(std::string_view text) {
  std::vector<HostEntry> hosts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    Result<HostEntry> entry = parse_entry(trim(text.substr(begin, end - begin)));
    Status status = entry.ok() ? add(hosts, std::move(entry.value())) : entry.status();
    if (!status.ok()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "--host {}: {}", text, status.text());
    begin = end + 1;
  }
  return hosts;
}

Result<std::vector<HostEntry>> parse_hostfile(std::string_view content, std::string_view path) {
  std::vector<HostEntry> hosts;
  int number = 0;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    std::string_view line = content.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    Result<HostEntry> entry = parse_line(line);
    Status status = entry.ok() ? add(hosts, std::move(entry.value())) : entry.status();
    if (!status.ok()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}:{}: {}", path, number, status.text());
  }
  if (hosts.empty()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: no host in it", path);
  return hosts;
}

}  // namespace ibcoll::run
