// SPDX-License-Identifier: BSD-3-Clause
// A group of a transport that has addresses: every rank opens its own, then all learn those of the others.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <functional>
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
    group->open_ = [config = std::move(*config), size, job, more...](int rank, uint64_t other) {
      return Network::open({rank, size, &config, true, job + other}, more...);
    };
    for (int rank = 0; rank < size; ++rank) {
      Result<std::unique_ptr<Network>> transport = group->open_(rank, 0);
      if (!transport.ok()) return complain(transport.status());
      group->addresses_.push_back((*transport)->address());
      group->transports_.push_back(std::move(*transport));
    }
    for (const auto& transport : group->transports_) {
      if (Status status = transport->set_addresses(group->addresses_); !status.ok()) return complain(status);
    }
    return group;
  }

  std::unique_ptr<Transport> make_stranger() override {
    Result<std::unique_ptr<Network>> stranger = open_(0, 1);
    if (!stranger.ok()) return complain(stranger.status());
    std::vector<std::vector<std::byte>> addresses = addresses_;
    addresses[0] = (*stranger)->address();
    if (Status status = (*stranger)->set_addresses(addresses); !status.ok()) return complain(status);
    return std::move(*stranger);
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
  static std::nullptr_t complain(const Status& status) {
    fprintf(stderr, "%s\n", status.text().c_str());
    return nullptr;
  }
  std::function<Result<std::unique_ptr<Network>>(int rank, uint64_t other_job)> open_;
  std::vector<std::vector<std::byte>> addresses_;
  std::vector<std::unique_ptr<Network>> transports_;
};

}  // namespace ibcoll::conformance
