// SPDX-License-Identifier: BSD-3-Clause
// Shared memory, with and without puts by a single copy.
#include <cstdio>
#include <numeric>

#include "runtime/shm/segment.h"
#include "runtime/shm/transport.h"
#include "tests/conformance/group.h"

namespace ibcoll::conformance {
namespace {

class ShmGroup : public Group {
 public:
  static std::unique_ptr<Group> make(int size, uint64_t ring_bytes, bool single_copy) {
    Result<std::unique_ptr<shm::Segment>> segment = shm::Segment::create(size, ring_bytes);
    if (!segment.ok()) {
      std::fprintf(stderr, "%s\n", segment.status().text().c_str());
      return nullptr;
    }
    auto group = std::make_unique<ShmGroup>();
    const std::shared_ptr<shm::Segment> shared = std::move(*segment);
    std::vector<int> jobs(static_cast<size_t>(size));
    std::iota(jobs.begin(), jobs.end(), 0);
    for (int rank = 0; rank < size; ++rank) {
      group->transports_.push_back(std::make_unique<shm::Transport>(shared, jobs, rank, single_copy));
    }
    for (auto& transport : group->transports_) {
      if (Status status = transport->node().probe(); !status.ok()) {
        std::fprintf(stderr, "%s\n", status.text().c_str());
        return nullptr;
      }
    }
    return group;
  }
  int size() const override { return static_cast<int>(transports_.size()); }
  Transport& at(int rank) override { return *transports_[static_cast<size_t>(rank)]; }
  void idle() override {}

 private:
  std::vector<std::unique_ptr<shm::Transport>> transports_;
};

}  // namespace

void add_shm_makers(std::vector<Maker>& makers) {
  makers.push_back({"shm", [](int size, uint64_t) { return ShmGroup::make(size, 64 * 1024, true); }});
  makers.push_back({"shm_copy", [](int size, uint64_t) { return ShmGroup::make(size, 16 * 1024, false); }});
}

}  // namespace ibcoll::conformance
