// SPDX-License-Identifier: BSD-3-Clause
// UCX over TCP on loopback, over its own shared memory, and over the RDMA device of the machine.
#include "runtime/ucx/transport.h"
#include "tests/conformance/group_network.h"

namespace ibcoll::conformance {

void add_ucx_makers(std::vector<Maker>& makers) {
  using UcxGroup = NetworkGroup<ucx::Transport>;
  makers.push_back(
      {"ucx_tcp", [](int size, uint64_t seed) { return UcxGroup::make(size, seed, {"IBCOLL_UCX_TLS=tcp"}); }});
  makers.push_back({"ucx_tcp_rendezvous", [](int size, uint64_t seed) {
                      return UcxGroup::make(size, seed, {"IBCOLL_UCX_TLS=tcp"}, ucx::Transport::LargePuts::kRendezvous);
                    }});
  makers.push_back({"ucx_shared_memory",
                    [](int size, uint64_t seed) { return UcxGroup::make(size, seed, {"IBCOLL_UCX_TLS=sm,self"}); }});
  if (!machine_has_rdma()) return;
  makers.push_back(
      {"ucx_rdma", [](int size, uint64_t seed) { return UcxGroup::make(size, seed, {"IBCOLL_UCX_TLS=rc,ud"}); }});
}

}  // namespace ibcoll::conformance
