// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/network_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/context/network_library.h"

namespace ibcoll {
namespace {

size_t index_of(const NetworkModule& module) { return static_cast<size_t>(&module - kNetworkModules); }

// The first rank that has not opened an early module; all.size(): none.
size_t first_without(const NetworkModule& module, const std::vector<OpenNodeMessage>& all) {
  const auto found = std::find_if(all.begin(), all.end(), [i = index_of(module)](const OpenNodeMessage& message) {
    return message.networks[i].opened == 0;
  });
  return static_cast<size_t>(found - all.begin());
}

}  // namespace

Status NetworkChoice::open_early(const NetworkParams& params, OpenNodeMessage& message) {
  for (size_t i = 0; i < kEarlyNetworkModules; ++i) {
    const NetworkModule& module = kNetworkModules[i];
    if (!permits(module)) continue;
    Result<std::unique_ptr<NetworkTransport>> opened = open_network(module, params);
    OpenNodeMessage::Network& mine = message.networks[i];
    mine.opened = opened.ok();
    mine.expected = opened.status().code() != IBCOLL_ERR_UNSUPPORTED;
    if (opened.ok()) {
      early_[i] = std::move(*opened);
      continue;
    }
    copy_text(opened.status().text(), mine.why_not);
    if (wanted_ == module.name)
      return error(opened.status().code(), "IBCOLL_NET={}: {}", wanted_, opened.status().text());
  }
  return {};
}

void NetworkChoice::decide(const std::vector<OpenNodeMessage>& all) noexcept {
  for (const NetworkModule& module : kNetworkModules) {
    if (!permits(module)) continue;
    if (!opens_early(module) || first_without(module, all) == all.size()) {
      chosen_ = &module;
      return;
    }
    for (const OpenNodeMessage& message : all)
      expected_better_ = expected_better_ || message.networks[index_of(module)].expected != 0;
  }
}

void NetworkChoice::explain(const std::vector<OpenNodeMessage>& all) {
  if (chosen_ == nullptr) return;
  if (wanted_ == chosen_->name) {
    reason_ = "demanded by IBCOLL_NET";
    return;
  }
  reason_ = chosen_->reason;
  for (const NetworkModule* better = chosen_; better-- > kNetworkModules;) {
    const size_t rank = first_without(*better, all);
    reason_ =
        fmt::format("{} is not used: rank {}: {}{}{}", better->name, rank,
                    read_text(all[rank].networks[index_of(*better)].why_not), reason_.empty() ? "" : "; ", reason_);
  }
}

Result<std::unique_ptr<NetworkTransport>> NetworkChoice::open(const NetworkParams& params, int nodes) {
  if (chosen_ == nullptr)
    return error(IBCOLL_ERR_CONFIG, "IBCOLL_NET={}, but the job has {} nodes; use IBCOLL_NET=auto", wanted_, nodes);
  std::unique_ptr<NetworkTransport> network;
  for (size_t i = 0; i < kEarlyNetworkModules; ++i) {
    if (&kNetworkModules[i] == chosen_) network = std::move(early_[i]);
    early_[i].reset();
  }
  if (network == nullptr) {
    Result<std::unique_ptr<NetworkTransport>> opened = open_network(*chosen_, params);
    if (opened.status().code() == IBCOLL_ERR_UNSUPPORTED)
      return error(IBCOLL_ERR_UNSUPPORTED,
                   "the job has {} nodes and needs the transport {}: {}; its module belongs beside libibcoll.so, and "
                   "needs {}",
                   nodes, chosen_->name, opened.status().text(), chosen_->packages);
    if (!opened.ok()) return opened.status();
    network = std::move(*opened);
  }
  // Where a better one was to be expected, users want to know.
  log(expected_better_ && params.rank == 0 ? LogLevel::kWarning : LogLevel::kInfo, "{} is used between nodes: {}",
      chosen_->name, reason_);
  return network;
}

}  // namespace ibcoll
