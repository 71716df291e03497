// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/rank_environment.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace ibcoll::run {
namespace {

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }

void set(std::vector<std::string>& environment, std::string entry) {
  const auto same = [&](const std::string& other) { return name_of(other) == name_of(entry); };
  const auto found = std::find_if(environment.begin(), environment.end(), same);
  if (found != environment.end()) {
    *found = std::move(entry);
  } else {
    environment.push_back(std::move(entry));
  }
}

}  // namespace

std::vector<std::string> base_environment_of_rank(const HostJob& job, const RankProgram& program,
                                                  const SecretLocation& secret) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    // A launcher inside of a rank: nothing of the outer job may reach the inner one.
    if (!std::string_view(*entry).starts_with("IBCOLL_RUN_")) environment.emplace_back(*entry);
  }
  for (const std::string& entry : job.environment) set(environment, entry);
  for (const std::string& entry : program.environment) set(environment, entry);
  if (!program.folder.empty()) set(environment, "PWD=" + program.folder);
  const auto add = [&](const char* name, const auto& value) {
    environment.push_back(fmt::format("{}={}", name, value));
  };
  add(rendezvous::kSizeVariable, job.size);
  add(rendezvous::kHostVariable, job.host);
  add(rendezvous::kLocalVariable, job.local ? 1 : 0);
  add(rendezvous::kLocalRanksVariable, job.ranks.size());
  add(rendezvous::kAddressVariable, job.address);
  add(rendezvous::kSecretVariable, secret.descriptor);
  add(rendezvous::kSecretPathVariable, secret.file);
  return environment;
}

std::vector<std::string> with_rank(std::vector<std::string> base, const HostJob& job, int index) {
  base.push_back(fmt::format("{}={}", rendezvous::kRankVariable, job.ranks[static_cast<size_t>(index)]));
  const std::string node = job.nodes.empty() ? "" : job.nodes[static_cast<size_t>(index)];
  base.push_back(fmt::format("{}={}", rendezvous::kNodeVariable, node));
  return base;
}

std::string search_path(const std::vector<std::string>& environment) {
  for (const std::string& entry : environment) {
    if (name_of(entry) == "PATH") return entry.substr(5);
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

}  // namespace ibcoll::run
