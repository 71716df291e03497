// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <filesystem>

#include "tests/conformance/group.h"

namespace ibcoll::conformance {

bool machine_has_rdmacm() {
  std::error_code ignored;  // no such folder
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", ignored);
  return devices != end(devices);
}

// The device of ibcoll_run --rdma-in-memory is no device of the kernel.
bool machine_has_rdma() { return machine_has_rdmacm() || std::getenv("RDMA_IN_MEMORY") != nullptr; }

const std::vector<Maker>& makers() {
  static const std::vector<Maker> all = [] {
    std::vector<Maker> found;
#ifdef IBCOLL_TEST_UCX
    add_ucx_makers(found);
#endif
#ifdef IBCOLL_TEST_VERBS
    add_verbs_makers(found);
#endif
    add_shm_makers(found);
    add_sim_makers(found);
    return found;
  }();
  return all;
}

}  // namespace ibcoll::conformance
