// SPDX-License-Identifier: BSD-3-Clause
// Which transport between nodes a job uses: the one that IBCOLL_NET demands, else the first of base/network_modules.h
// that all ranks can use.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/network_modules.h"
#include "runtime/context/join_messages.h"
#include "runtime/transport/network_transport.h"

namespace ibcoll {

class NetworkChoice {
 public:
  // `wanted`: IBCOLL_NET.
  explicit NetworkChoice(const std::string& wanted) : wanted_(wanted) {}

  // Opens the modules that open early, and says in the message which. Error: the one that IBCOLL_NET demands does not
  // open.
  Status open_early(const NetworkParams& params, OpenNodeMessage& message);
  // `all`: the messages of all ranks. Decides the same on all of them.
  void decide(const std::vector<OpenNodeMessage>& all) noexcept;
  // After decide(): the reason, in words.
  void explain(const std::vector<OpenNodeMessage>& all);

  // The transport needs to know which addresses join the hosts.
  bool needs_routes() const noexcept { return chosen_ != nullptr && !opens_early(*chosen_); }
  // For a job of several nodes. CONFIG: IBCOLL_NET permits none; else why it does not open.
  Result<std::unique_ptr<NetworkTransport>> open(const NetworkParams& params, int nodes);
  const std::string& reason() const noexcept { return reason_; }

 private:
  bool permits(const NetworkModule& module) const noexcept { return wanted_ == "auto" || wanted_ == module.name; }

  const std::string& wanted_;
  std::array<std::unique_ptr<NetworkTransport>, kEarlyNetworkModules> early_;  // until it is known which one is used
  const NetworkModule* chosen_ = nullptr;
  bool expected_better_ = false;  // some rank has a device for a module that is not used
  std::string reason_;
};

}  // namespace ibcoll
