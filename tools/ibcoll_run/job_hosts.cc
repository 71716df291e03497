// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/job_hosts.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "bootstrap/rendezvous_protocol.h"
#include "tools/ibcoll_run/allocation.h"
#include "tools/ibcoll_run/before_start.h"
#include "tools/ibcoll_run/core_binding.h"

namespace ibcoll::run {
namespace {

std::string own_host_name() {
  char name[HOST_NAME_MAX + 1] = "localhost";
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

// If one of two names has no domain, the first parts count: node lists of batch systems and gethostname() differ
// so.
bool same_name(std::string one, std::string other) {
  one = without_case(std::move(one));
  other = without_case(std::move(other));
  if (one == other) return true;
  const bool numeric = one.find_first_not_of("0123456789.:") == std::string::npos;
  const size_t dot = one.find('.');
  const size_t other_dot = other.find('.');
  if (numeric || (dot == std::string::npos) == (other_dot == std::string::npos)) return false;
  return one.substr(0, dot) == other.substr(0, other_dot);
}

// As --host, --hostfile or the batch system name them; empty: this machine alone.
Result<std::vector<HostEntry>> named_hosts(const Options& options) {
  if (!options.hosts.empty()) return parse_host_list(options.hosts);
  if (!options.hostfile.empty()) {
    const Result<std::string> text = read_text_file(options.hostfile);
    if (!text.ok()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "--hostfile {}", text.status().text());
    return parse_hostfile(text.value(), options.hostfile);
  }
  if (options.nodes > 0) return std::vector<HostEntry>();
  Result<std::optional<Allocation>> found = allocation_here();
  if (!found.ok()) return found.status();
  if (!found.value()) return std::vector<HostEntry>();
  Allocation& allocation = *found.value();
  std::fprintf(stderr, "ibcoll_run: hosts of the %s: %s\n", allocation.source.c_str(),
               host_list(allocation.hosts).c_str());
  return std::move(allocation.hosts);
}

// Without a number of ranks: one for each core, or for each --cpus-per-rank cores, and at least one for each emulated
// node.
int default_ranks(const Options& options) {
  return std::max({1, CoreBinding::core_count() / options.cpus_per_rank.value_or(1), options.nodes});
}

}  // namespace

bool is_this_machine(const std::string& host) {
  return without_case(host) == "localhost" || host == "127.0.0.1" || host == "::1" || same_name(host, own_host_name());
}

Result<std::vector<HostRanks>> place_job(const Options& options) {
  Result<std::vector<HostEntry>> hosts = named_hosts(options);
  if (!hosts.ok()) return hosts.status();
  PlacementRules rules{options.ranks(), options.per_node, options.map_by == "node", options.oversubscribe};
  if (!hosts->empty()) return place_on_hosts(hosts.value(), rules);
  if (options.nodes > 0 && options.per_node) {
    const int64_t ranks = int64_t{options.nodes} * *options.per_node;
    if (ranks > rendezvous::kMaxRanks || rules.ranks.value_or(static_cast<int>(ranks)) != ranks) {
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "--nodes {} with {} ranks each (-N) are {} ranks; leave -n out",
                   options.nodes, *options.per_node, ranks);
    }
    rules.ranks = static_cast<int>(ranks);
    rules.per_host.reset();
  }
  if (!rules.ranks && !rules.per_host) rules.ranks = default_ranks(options);
  return place_on_hosts({{own_host_name(), {}, {}}}, rules);
}

}  // namespace ibcoll::run
