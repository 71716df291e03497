// SPDX-License-Identifier: BSD-3-Clause
// Verbs on the first active RDMA port of the machine, with either way of noticing messages.
#include <unistd.h>

#include <string>
#include <thread>

#include "runtime/config.h"
#include "runtime/verbs/verbs_transport.h"
#include "tests/conformance/group.h"

namespace ibcoll::conformance {
namespace {

class VerbsGroup : public Group {
 public:
  static std::unique_ptr<Group> make(int size, uint64_t job, const char* notify) {
    const std::string setting = std::string("IBCOLL_VERBS_NOTIFY=") + notify;
    const char* environment[] = {setting.c_str(), nullptr};
    Result<Config> config = Config::load_from(environment);
    if (!config.ok()) return complain(config.status());
    auto group = std::make_unique<VerbsGroup>();
    std::vector<std::vector<std::byte>> addresses;
    for (int rank = 0; rank < size; ++rank) {
      Result<std::unique_ptr<VerbsTransport>> transport = VerbsTransport::open({rank, size, &*config, job});
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
  ~VerbsGroup() override {
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
  std::vector<std::unique_ptr<VerbsTransport>> transports_;
};

}  // namespace

bool machine_has_rdma() {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  if (list) ibv_free_device_list(list);
  return count > 0;
}

void add_verbs_makers(std::vector<Maker>& makers) {
  if (!machine_has_rdma()) return;
  makers.push_back({"verbs_imm", [](int size, uint64_t seed) { return VerbsGroup::make(size, seed, "imm"); }});
  makers.push_back({"verbs_memory", [](int size, uint64_t seed) { return VerbsGroup::make(size, seed, "memory"); }});
}

}  // namespace ibcoll::conformance
