// SPDX-License-Identifier: BSD-3-Clause
// The layout of the blocks of a collective in the buffers of one rank, and the arguments that say so: from the
// collective's row in base/catalog.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/catalog.h"
#include "runtime/include/ibcoll.h"

namespace ibcoll::oracle {

// The same on all ranks.
struct CallParams {
  ibcoll_collective_t collective = IBCOLL_BARRIER;
  int p = 1;
  uint64_t bytes = 0;            // of a block, where sizes are regular and nothing is reduced
  std::vector<uint64_t> counts;  // irregular, in bytes: p; kToPairs: p x p, from source i to destination j at i * p + j
  // Instead of `counts`, where p x p of them would be too many: of rank i (`other` is 0), or from i to `other`.
  std::function<uint64_t(int i, int other)> sizes;
  bool in_place = false;  // on the ranks that may
  int root = 0;
  uint64_t count = 0;  // elements of a block (regular reductions)
  ibcoll_type_t type = IBCOLL_UINT32;
  ibcoll_op_t op = nullptr;
  uint64_t opaque_bytes = 0;  // of an element of IBCOLL_OPAQUE
  ibcoll_scheme_t scheme = IBCOLL_SCHEME_AUTO;
  const char* algorithm = nullptr;  // nullptr: the setting's
  uint64_t seed = 1;                // of data and layout
  // 0: irregular blocks are packed in rank order. Else they lie in random order, with gaps of at most `gaps` bytes.
  uint64_t gaps = 0;
  uint64_t misaligned = 0;  // bytes from a multiple of 64 to the beginning of a buffer

  const Collective& row() const { return kCatalog[collective]; }
  uint64_t element_bytes() const;
  // Bytes of what `source` sends `destination`; of one operand, for reductions of one block.
  uint64_t block_bytes(int source, int destination) const;
  // The arguments of a rank, but for its buffers and, of irregular collectives, the lists of sizes.
  ibcoll_collective_args_t bare_args(int rank) const;
  std::string describe() const;
};

// One buffer of a rank.
struct BufferLayout {
  struct Block {
    uint64_t offset;
    uint64_t bytes;
    int index;  // of the peer; of this rank where it is the only block
  };
  std::vector<Block> blocks;
  std::vector<uint64_t> counts, displacements;  // of the blocks
  uint64_t extent = 0;                          // bytes from the first to the last
  bool significant = false;                     // the call may use it
};

class CallLayout {
 public:
  CallLayout(CallParams params, int rank);

  const CallParams& params() const { return params_; }
  const Collective& row() const { return params_.row(); }
  int rank() const { return rank_; }
  const BufferLayout& send() const { return send_; }
  const BufferLayout& recv() const { return recv_; }
  // This rank gives IBCOLL_IN_PLACE.
  bool in_place() const { return params_.in_place && row().may_be_in_place(rank_, params_.root); }
  // reduce_scatter in place: the receive buffer holds all blocks of the operand, and the result replaces the
  // first.
  bool result_in_operand() const { return in_place() && row().reduces() && row().send.extent == Extent::kBlocks; }

  // The arguments of a caller with these buffers. What is not significant on this rank has a value that must not be
  // used. Arrays belong to this object.
  ibcoll_collective_args_t args(std::byte* send, std::byte* recv) const;

 private:
  void lay_out(BufferLayout& layout, const Buffer& buffer, bool sends);
  void arrange(BufferLayout& layout, uint64_t stream) const;

  CallParams params_;
  int rank_;
  BufferLayout send_, recv_;
};

}  // namespace ibcoll::oracle
