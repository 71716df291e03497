// SPDX-License-Identifier: BSD-3-Clause
// A group of a transport that has addresses: every rank opens its own, then all learn those of the others.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>

#include "runtime/transport/network_transport.h"
#include "tests/conformance/group.h"

namespace ibcoll::conformance {

template <typename Network>
class NetworkGroup : public Group {
 public:
  // `settings`: "NAME=VALUE"; `more`: what Network::open() takes beside the parameters.
  template <typename... More>
  static std::unique_ptr<Group> make(int size, uint64_t job, std::vector<const char*> settings, More... more) {
    settings.push_back(nullptr);
    Result<Config> config = Config::load_from(settings.data());
    if (!config.ok()) return complain(config.status());
    auto group = std::make_unique<NetworkGroup>();
    std::vector<std::vector<std::byte>> addresses;
    for (int rank = 0; rank < size; ++rank) {
      Result<std::unique_ptr<Network>> transport = Network::open({rank, size, &*config, true, job}, more...);
      if (!transport.ok()) return complain(transport.status());
      addresses.push_back((*transport)->address());
      group->transports_.push_back(std::move(*transport));
    }
    for (const auto& transport : group->transports_) {
      if (Status status = transport->set_addresses(addresses); !status.ok()) return complain(status);
    }
    return group;
  }

  // All leave at once, as ranks do: the end of a transport waits a while for its peers' answers.
  ~NetworkGroup() override {
    std::vector<std::thread> ends;
    for (auto& transport : transports_) ends.emplace_back([&transport] { transport.reset(); });
    for (std::thread& end : ends) end.join();
  }

  int size() const override { return static_cast<int>(transports_.size()); }
  Transport& at(int rank) override { return *transports_[static_cast<size_t>(rank)]; }
  void idle() override { ::usleep(20); }
  bool leave(int rank) override {
    transports_[static_cast<size_t>(rank)].reset();
    return true;
  }

 private:
  static std::unique_ptr<Group> complain(const Status& status) {
    fprintf(stderr, "%s\n", status.text().c_str());
    return nullptr;
  }
  std::vector<std::unique_ptr<Network>> transports_;
};

}  // namespace ibcoll::conformance
