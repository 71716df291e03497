// SPDX-License-Identifier: BSD-3-Clause
// The simulated network, with and without needless refusals.
#include "runtime/sim/network.h"
#include "tests/conformance/group.h"

namespace ibcoll::conformance {
namespace {

class SimGroup : public Group {
 public:
  explicit SimGroup(sim::Params params) : network_(std::move(params)) {}
  int size() const override { return network_.size(); }
  Transport& at(int rank) override { return network_.transport(rank); }
  // At least one event; and all of the next moment, so that wake-ups do not pile up.
  void idle() override {
    network_.advance();
    network_.advance_to(network_.now() + 1000);
  }
  bool threads() const override { return false; }

 private:
  sim::Network network_;
};

std::unique_ptr<Group> make(int size, uint64_t seed, uint32_t refuse_permille) {
  sim::Params params;
  params.ranks = size;
  params.seed = seed;
  params.refuse_permille = refuse_permille;
  return std::make_unique<SimGroup>(std::move(params));
}

}  // namespace

void add_sim_makers(std::vector<Maker>& makers) {
  makers.push_back({"sim", [](int size, uint64_t seed) { return make(size, seed, 0); }});
  makers.push_back({"sim_refusing", [](int size, uint64_t seed) { return make(size, seed, 300); }});
}

}  // namespace ibcoll::conformance
