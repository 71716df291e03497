// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/allocation.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>

#include "bootstrap/rendezvous_protocol.h"
#include "tools/ibcoll_run/before_start.h"

namespace ibcoll::run {
namespace {

constexpr size_t kMostHosts = rendezvous::kMaxRanks;

std::optional<int> number_in(std::string_view digits) {
  int number = -1;
  const auto [rest, reason] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (reason != std::errc() || rest != digits.data() + digits.size() || number < 0) return {};
  return number;
}

Status damaged(std::string_view text) {
  return error(IBCOLL_ERR_INVALID_ARGUMENT, "'{}' is damaged", text.substr(0, 80));
}

Status too_many(std::string_view text) {
  return error(IBCOLL_ERR_INVALID_ARGUMENT, "'{}' are more than {} hosts, and no job has more ranks",
               text.substr(0, 80), kMostHosts);
}

// Cuts at commas outside of brackets.
std::vector<std::string_view> pieces(std::string_view list) {
  std::vector<std::string_view> found;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    found.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  return found;
}

// "001-003" or "7", with as many digits.
Status add_range(std::string_view range, std::vector<std::string>& texts) {
  const std::string_view low = range.substr(0, range.find('-'));
  const std::string_view high = low.size() < range.size() ? range.substr(low.size() + 1) : low;
  const std::optional<int> first = number_in(low);
  const std::optional<int> last = number_in(high);
  if (!first || !last || *last < *first) return damaged(range);
  if (static_cast<size_t>(*last - *first) + texts.size() >= kMostHosts) return too_many(range);
  for (int number = *first; number <= *last; ++number) texts.push_back(fmt::format("{:0{}}", number, low.size()));
  return {};
}

// One piece of `list`: "rack[1-2]n[01-04]"; what the first bracket stands for before what the second does.
Status expand(std::string_view list, std::string_view piece, const std::string& before,
              std::vector<std::string>& hosts) {
  const size_t open = piece.find('[');
  if (open == std::string_view::npos) {
    if (hosts.size() >= kMostHosts) return too_many(list);
    hosts.push_back(before + std::string(piece));
    return {};
  }
  const size_t close = piece.find(']', open);
  if (close == std::string_view::npos) return damaged(piece);
  std::vector<std::string> texts;
  for (const std::string_view range : pieces(piece.substr(open + 1, close - open - 1)))
    if (Status status = add_range(range, texts); !status.ok()) return status;
  const std::string_view stem = piece.substr(0, open);
  for (const std::string& text : texts) {
    Status status = expand(list, piece.substr(close + 1), fmt::format("{}{}{}", before, stem, text), hosts);
    if (!status.ok()) return status;
  }
  return {};
}

const char* first_of(std::initializer_list<const char*> variables, const char*& name) {
  for (const char* variable : variables) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    name = variable;
    return value;
  }
  return nullptr;
}

Status in_variable(const char* name, const Status& why) {
  return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: {}; --host or --hostfile names the hosts instead", name, why.text());
}

Result<Allocation> slurm(const char* name, const char* list) {
  const Result<std::vector<std::string>> hosts = slurm_hosts(list);
  if (!hosts.ok()) return in_variable(name, hosts.status());
  std::string text;
  for (const std::string& host : hosts.value()) text += host + "\n";
  Result<std::vector<HostEntry>> entries = parse_hostfile(text, name);
  if (!entries.ok()) return entries.status();
  const char* counts_name = nullptr;
  const char* counts_text = first_of({"SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"}, counts_name);
  if (counts_text != nullptr) {
    const Result<std::vector<int>> counts = slurm_counts(counts_text);
    if (!counts.ok()) return in_variable(counts_name, counts.status());
    const size_t given = counts.value().size();
    if (given != hosts->size()) {
      return in_variable(counts_name,
                         error(IBCOLL_ERR_INVALID_ARGUMENT, "'{}' has numbers for {} hosts, and {} names {}",
                               std::string_view(counts_text).substr(0, 80), given, name, hosts->size()));
    }
    for (size_t i = 0; i < std::min(given, entries->size()); ++i) entries.value()[i].slots = counts.value()[i];
  }
  return Allocation{fmt::format("Slurm allocation ({})", name), std::move(entries.value())};
}

Result<Allocation> pbs(const char* name, const char* path) {
  const Result<std::string> text = read_text_file(path);
  if (!text.ok()) return in_variable(name, text.status());
  Result<std::vector<HostEntry>> hosts = parse_hostfile(text.value(), path);
  if (!hosts.ok()) return in_variable(name, hosts.status());
  return Allocation{fmt::format("PBS allocation ({})", name), std::move(hosts.value())};
}

// "h1 4 h2 4"
Result<Allocation> lsf(const char* name, const char* list) {
  std::istringstream words(list);
  std::string text;
  for (std::string host, slots; words >> host;) {
    if (!(words >> slots)) {
      return in_variable(name, error(IBCOLL_ERR_INVALID_ARGUMENT, "'{}' has no number of slots behind host {}",
                                     std::string_view(list).substr(0, 80), std::string_view(host).substr(0, 80)));
    }
    text += fmt::format("{} slots={}\n", host, slots);
  }
  Result<std::vector<HostEntry>> hosts = parse_hostfile(text, name);
  if (!hosts.ok()) return in_variable(name, hosts.status());
  return Allocation{fmt::format("LSF allocation ({})", name), std::move(hosts.value())};
}

}  // namespace

Result<std::vector<std::string>> slurm_hosts(std::string_view list) {
  std::vector<std::string> hosts;
  for (const std::string_view piece : pieces(list))
    if (Status status = expand(list, piece, "", hosts); !status.ok()) return status;
  return hosts;
}

Result<std::vector<int>> slurm_counts(std::string_view list) {
  std::vector<int> counts;
  for (const std::string_view piece : pieces(list)) {
    const size_t open = piece.find("(x");
    const std::optional<int> count = number_in(piece.substr(0, open));
    std::optional<int> times = 1;
    if (open != std::string_view::npos)
      times = piece.ends_with(')') ? number_in(piece.substr(open + 2, piece.size() - open - 3)) : std::nullopt;
    if (!count || *count < 1 || !times || static_cast<size_t>(*times) > kMostHosts - counts.size())
      return damaged(list);
    counts.insert(counts.end(), static_cast<size_t>(*times), *count);
  }
  return counts;
}

Result<std::optional<Allocation>> allocation_here() {
  const char* name = nullptr;
  const auto found = [](Result<Allocation> allocation) -> Result<std::optional<Allocation>> {
    if (!allocation.ok()) return allocation.status();
    return std::optional<Allocation>(std::move(allocation.value()));
  };
  if (const char* list = first_of({"SLURM_JOB_NODELIST", "SLURM_NODELIST"}, name)) return found(slurm(name, list));
  if (const char* path = first_of({"PBS_NODEFILE"}, name)) return found(pbs(name, path));
  if (const char* list = first_of({"LSB_MCPU_HOSTS"}, name)) return found(lsf(name, list));
  return std::optional<Allocation>();
}

std::string host_list(const std::vector<HostEntry>& hosts) {
  constexpr size_t kMostShown = 16;
  std::string text;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (i == kMostShown) return fmt::format("{} and {} more", text, hosts.size() - i);
    text += (i == 0 ? "" : ",") + hosts[i].name;
    if (hosts[i].slots) text += fmt::format(":{}", *hosts[i].slots);
  }
  return text;
}

}  // namespace ibcoll::run
