// SPDX-License-Identifier: BSD-3-Clause
// A call that stands for those of a program: blocks of one size, sums of doubles, root 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ibcoll.h"
#include "runtime/base/catalog.h"

namespace ibcoll {

// All ranks know the sizes of its calls: so the algorithm follows from the call.
inline bool sizes_are_known(const Collective& row) { return !row.irregular() || row.sizes == SizesKnown::kToAll; }

class SampleCall {
 public:
  // `bytes`: of a block, a multiple of 8; 0 in a barrier. `room`: bytes behind the buffers, for with().
  SampleCall(const Collective& row, uint64_t bytes, int ranks, uint64_t room = 0)
      : one_buffer_(row.one_buffer),
        counts_(static_cast<size_t>(ranks), bytes),
        send_(bytes * counts_.size() + room),
        recv_(bytes * counts_.size() + room) {
    for (size_t i = 0; i < counts_.size(); ++i) displacements_.push_back(i * bytes);
    args_.struct_size = sizeof args_;
    args_.collective = row.id;
    if (row.reduces()) args_.type = IBCOLL_DOUBLE, args_.op = IBCOLL_SUM;
    if (row.irregular()) {
      if (row.reduces() || row.recv.extent == Extent::kBlocks) args_.recv_counts = counts_.data();
      if (row.recv.extent == Extent::kBlocks) args_.recv_displacements = displacements_.data();
      if (!row.reduces() && row.send.extent == Extent::kBlocks) {
        args_.send_counts = counts_.data();
        args_.send_displacements = displacements_.data();
      }
      if (row.rooted) args_.bytes = bytes;
    } else if (row.reduces()) {
      args_.count = bytes / sizeof(double);
    } else {
      args_.bytes = bytes;
    }
  }
  // Its arguments with an algorithm; nullptr: ibcoll chooses. Buffers begin at `offset`, within the room. Valid until the
  // next call of with().
  const ibcoll_collective_args_t* with(const char* algorithm, uint64_t offset = 0) {
    args_.algorithm = algorithm;
    if (!one_buffer_) args_.send = send_.data() + offset;
    args_.recv = recv_.data() + offset;
    return &args_;
  }

 private:
  bool one_buffer_;
  std::vector<uint64_t> counts_, displacements_;
  std::vector<std::byte> send_, recv_;
  ibcoll_collective_args_t args_{};
};

}  // namespace ibcoll
