// SPDX-License-Identifier: BSD-3-Clause
// The root's knowledge of the tree of a gather(v) or scatter(v). It has all sizes, so it can compute which unit carries
// which blocks, and whether the sizes that the others report agree with its list.
#pragma once

#include <span>

#include "runtime/collectives/gather/tree.h"

namespace ibcoll::gather {

// The message between the root and one unit: the blocks of those units of a cube that it carries, in rank order.
struct RootMessage {
  Cube cube;
  uint64_t bytes = 0;
  std::byte* landing = nullptr;  // gather: where it lands when it cannot land in place
};

class RootSide {
 public:
  // `team`: where ranks are those of `blocks`. Takes scratch memory; false(): there is none.
  RootSide(Comm& team, Trees trees, ConstBlocks blocks, int p) noexcept
      : team_(team), trees_(trees), blocks_(blocks), p_(p) {
    const auto units = static_cast<uint64_t>(p);
    carrier_ = team.scratch_array<int>(2 * units);
    messages_ = team.scratch_array<RootMessage>(units);
    added_ = carrier_ + units;
  }
  explicit operator bool() const noexcept { return carrier_ && messages_; }

  // Finds the units that carry the blocks of the root's neighbour cube of a level. `report`: of that cube (not kEqual).
  // False: its sizes are not those of the root's list, and the collective has failed.
  bool add(int level, const CubeData* report) noexcept;
  // The units that the last add() found; each carries something.
  std::span<const int> added() const noexcept { return {added_, static_cast<size_t>(count_)}; }
  RootMessage& message(int unit) noexcept { return messages_[unit]; }

  // The blocks of a unit's message that are not empty.
  template <typename Each>
  void each_block(int carrier, Each each) const noexcept {
    const Cube cube = messages_[carrier].cube;
    for (int unit = cube.from; unit < cube.to; ++unit)
      if (carrier_[unit] == carrier)
        trees_.units.each_rank(unit, [&](int rank) {
          if (travels(rank)) each(rank);
        });
  }
  // The stretches of the caller's buffer that make the message.
  template <typename Each>
  void each_stretch(int carrier, Each each) const noexcept {
    each_stretch_of(
        blocks_, [&](auto visit) { each_block(carrier, visit); }, each);
  }

 private:
  bool travels(int rank) const noexcept { return blocks_.size(rank) > 0 && blocks_.size(rank) <= trees_.units.longest; }
  CubeData data_of(int unit) const noexcept;
  CubeData carried(Cube cube, int level) noexcept;
  bool agrees(Cube cube, const CubeData& report) noexcept;
  void carry(int carrier, Cube cube) noexcept;

  Comm& team_;
  Trees trees_;
  ConstBlocks blocks_;
  int p_;
  int count_ = 0;
  int* carrier_;  // of the blocks of each unit; -1: none so far
  int* added_;
  RootMessage* messages_;  // by carrier
};

}  // namespace ibcoll::gather
