// SPDX-License-Identifier: BSD-3-Clause
// Verbs on the first active RDMA port of the machine, with either way of noticing messages, of making connections, and
// of opening memory to a peer.
#include "runtime/verbs/transport.h"
#include "tests/conformance/group_network.h"

namespace ibcoll::conformance {

void add_verbs_makers(std::vector<Maker>& makers) {
  using VerbsGroup = NetworkGroup<verbs::Transport>;
  if (!machine_has_rdma()) return;
  makers.push_back(
      {"verbs_imm", [](int size, uint64_t seed) { return VerbsGroup::make(size, seed, {"IBCOLL_VERBS_NOTIFY=imm"}); }});
  makers.push_back({"verbs_memory", [](int size, uint64_t seed) {
                      return VerbsGroup::make(size, seed, {"IBCOLL_VERBS_NOTIFY=memory"});
                    }});
  makers.push_back({"verbs_windows",
                    [](int size, uint64_t seed) { return VerbsGroup::make(size, seed, {"IBCOLL_VERBS_WINDOWS=on"}); }});
  if (!machine_has_rdmacm()) return;
  makers.push_back({"verbs_rdmacm", [](int size, uint64_t seed) {
                      return VerbsGroup::make(size, seed, {"IBCOLL_VERBS_CONNECT=rdmacm"});
                    }});
}

}  // namespace ibcoll::conformance
