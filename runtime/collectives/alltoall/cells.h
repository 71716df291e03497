// SPDX-License-Identifier: BSD-3-Clause
// The content of the rows of NodeLanes in alltoall(v).
#pragma once

#include <algorithm>
#include <cstring>

#include "runtime/base/catalog.h"
#include "runtime/collectives/framework/args.h"
#include "runtime/collectives/framework/node_lanes.h"

namespace ibcoll::alltoall {

using Size = uint32_t;

inline bool has_sizes(ibcoll_collective_t collective) { return kCatalog[collective].irregular(); }

// Bytes of a block that a step moves. An area has rows for p ranks and the own node, and all that leaves.
inline uint64_t longest_cell(ibcoll_collective_t collective, uint64_t area_bytes, int p, int fewest_local,
                             int most_local) {
  const uint64_t room = NodeLanes::room(area_bytes, p, fewest_local) / static_cast<uint64_t>(2 * p + most_local);
  const uint64_t size = has_sizes(collective) ? sizeof(Size) : 0;
  return room > size ? room - size : 0;
}

// The part of each block that a step moves. A row has those for the ranks of a node side by side, in alltoallv after
// their sizes.
struct Cells {
  Cells(const Comm& c, const Args& a, uint64_t area_bytes)
      : sized(has_sizes(a.collective)),
        bytes(longest_cell(a.collective, area_bytes, c.size(), c.placement().fewest_local(),
                           c.placement().most_local())) {
    if (!sized) bytes = std::min(bytes, a.recv.bytes);
  }
  bool is_long(uint64_t block) const { return sized && block > bytes; }
  template <typename Byte>
  std::span<Byte> now(std::span<Byte> block) const {
    return is_long(block.size()) ? std::span<Byte>() : part(block, at, bytes);
  }
  uint64_t head(size_t ranks) const { return sized ? sizeof(Size) * ranks : 0; }
  uint64_t row(size_t ranks) const { return head(ranks) + bytes * ranks; }

  bool sized;
  uint64_t bytes;
  uint64_t at = 0;  // of the round: from here on each block is moved
};

// The row for these ranks; returns its end.
inline std::byte* pack(const Args& a, const Cells& cells, std::span<const int> ranks, std::byte* row) {
  std::byte* to = row + cells.head(ranks.size());
  for (const int rank : ranks) {
    const ConstBytes block = cells.now(a.send[rank]);
    const auto size = static_cast<Size>(block.size());
    if (cells.sized) std::memcpy(row, &size, sizeof size), row += sizeof size;
    Comm::copy(Bytes(to, block.size()), block);
    to += block.size();
  }
  return to;
}

// Bytes of the first `ranks` blocks of a row that begins with sizes.
inline uint64_t sum_of_sizes(const std::byte* row, size_t ranks) {
  uint64_t bytes = 0;
  for (Size size; ranks > 0; --ranks, row += sizeof size) std::memcpy(&size, row, sizeof size), bytes += size;
  return bytes;
}

}  // namespace ibcoll::alltoall
