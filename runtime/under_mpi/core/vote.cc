// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/vote.h"

#include <cstdio>

#include "runtime/under_mpi/core/route.h"

namespace ibcoll::under_mpi {

bool agree(const Communicator& comm, bool fine, const std::string& error, std::vector<int64_t>* least) {
  constexpr int64_t kNobody = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> values = {fine ? kNobody : comm.rank()};
  if (least != nullptr) values.insert(values.end(), least->begin(), least->end());
  if (route().allreduce_min(comm, values.data(), static_cast<int>(values.size())) != MPI_SUCCESS) return false;
  if (least != nullptr) least->assign(values.begin() + 1, values.end());
  if (values[0] == comm.rank() && !error.empty()) std::fprintf(stderr, "%s\n", error.c_str());
  return values[0] == kNobody;
}

}  // namespace ibcoll::under_mpi
