// SPDX-License-Identifier: BSD-3-Clause
// UCX over TCP on loopback, and over its own shared memory.
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "runtime/config.h"
#include "runtime/ucx/ucx_transport.h"
#include "tests/conformance/group.h"

namespace ibcoll::conformance {
namespace {

class UcxGroup : public Group {
 public:
  using LargePuts = UcxTransport::LargePuts;
  static std::unique_ptr<Group> make(int size, uint64_t job, const char* tls, LargePuts large = LargePuts::kAuto) {
    const std::string setting = std::string("IBCOLL_UCX_TLS=") + tls;
    const char* environment[] = {setting.c_str(), nullptr};
    Result<Config> config = Config::load_from(environment);
    if (!config.ok()) return complain(config.status());
    auto group = std::make_unique<UcxGroup>();
    std::vector<std::vector<std::byte>> addresses;
    for (int rank = 0; rank < size; ++rank) {
      Result<std::unique_ptr<UcxTransport>> transport = UcxTransport::open({rank, size, &*config, true, job}, large);
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
  ~UcxGroup() override {
    std::vector<std::thread> ends;
    for (auto& transport : transports_) ends.emplace_back([&transport] { transport.reset(); });
    for (std::thread& end : ends) end.join();
  }

  int size() const override { return static_cast<int>(transports_.size()); }
  Transport& at(int rank) override { return *transports_[static_cast<size_t>(rank)]; }
  void idle() override { ::usleep(20); }

 private:
  static std::unique_ptr<Group> complain(const Status& status) {
    fprintf(stderr, "%s\n", status.text().c_str());
    return nullptr;
  }
  std::vector<std::unique_ptr<UcxTransport>> transports_;
};

}  // namespace

void add_ucx_makers(std::vector<Maker>& makers) {
  makers.push_back({"ucx_tcp", [](int size, uint64_t seed) { return UcxGroup::make(size, seed, "tcp"); }});
  makers.push_back({"ucx_tcp_rendezvous", [](int size, uint64_t seed) {
                      return UcxGroup::make(size, seed, "tcp", UcxTransport::LargePuts::kRendezvous);
                    }});
  makers.push_back(
      {"ucx_shared_memory", [](int size, uint64_t seed) { return UcxGroup::make(size, seed, "sm,self"); }});
}

}  // namespace ibcoll::conformance
