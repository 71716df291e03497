// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "tools/ibcoll_run/host.h"

namespace ibcoll::run {

// The RDMA device of --rdma-in-memory (tools/rdma_in_memory): a file without a name, which ends with the last process
// that has it open. Ranks find it by this process's descriptor.
class RdmaInMemory {
 public:
  // Makes the device and lets the ranks of these jobs use it. INVALID_ARGUMENT: not all are on this machine.
  // UNSUPPORTED: this build has no device. SYSTEM: the kernel gives no memory for it.
  Status open(std::vector<HostJob>& jobs);

 private:
  UniqueFd file_;
};

}  // namespace ibcoll::run
