// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/gather/root_side.h"

#include <fmt/format.h>

namespace ibcoll::gather {

CubeData RootSide::data_of(int unit) const noexcept {
  CubeData data;
  data.gather_root = static_cast<uint64_t>(unit);
  trees_.units.each_rank(unit, [&](int rank) {
    data.add(rank, blocks_.size(rank));
    if (travels(rank)) data.root_bytes += blocks_.size(rank);
  });
  return data;
}

// As the units of the cube have built it; finds those that leave the tree.
CubeData RootSide::carried(Cube cube, int level) noexcept {
  Cube lower, upper;
  if (level > 0) lower = Cube::of(cube.from, level - 1, p_), upper = Cube::beside(cube.from, level - 1, p_);
  CubeData data;
  if (level == 0)
    data = data_of(cube.from);
  else if (upper.empty())
    return carried(lower, level - 1);
  else
    data = join(carried(lower, level - 1), carried(upper, level - 1));
  if (data.bytes() > trees_.threshold) {
    carry(static_cast<int>(data.gather_root), cube);
    data.leave_tree();
  }
  return data;
}

bool RootSide::add(int level, const CubeData* report) noexcept {
  const Cube cube = Cube::beside(trees_.root, level, p_);
  for (int unit = cube.from; unit < cube.to; ++unit) carrier_[unit] = -1;
  count_ = 0;
  if (trees_.sizes != Sizes::kEqual && !agrees(cube, *report)) return false;
  if (trees_.built()) {
    const CubeData left = report->all_bytes > trees_.threshold ? carried(cube, level) : *report;
    if (left.bytes() > 0) carry(static_cast<int>(left.gather_root), cube);
    return true;
  }
  const int straight = trees_.sizes == Sizes::kEqual ? trees_.straight_level() : level;
  const int each = std::min(level, straight);
  for (int from = cube.from; from < cube.to; from = Cube::of(from, each, p_).to) carry(from, Cube::of(from, each, p_));
  return true;
}

void RootSide::carry(int carrier, Cube cube) noexcept {
  RootMessage message{cube, 0, nullptr};
  for (int unit = cube.from; unit < cube.to; ++unit)
    if (carrier_[unit] < 0) {
      carrier_[unit] = carrier;
      message.bytes += data_of(unit).bytes();
    }
  if (message.bytes == 0) return;
  messages_[carrier] = message;
  added_[count_++] = carrier;
}

// A single rank that disagrees is found by the two differences: its own one, and that one times the rank's weight.
bool RootSide::agrees(Cube cube, const CubeData& report) noexcept {
  CubeData mine;
  for (int unit = cube.from; unit < cube.to; ++unit)
    trees_.units.each_rank(unit, [&](int rank) { mine.add(rank, blocks_.size(rank)); });
  if (mine.all_bytes == report.all_bytes && mine.weighted == report.weighted) return true;
  const uint64_t more = report.all_bytes - mine.all_bytes, weighted = report.weighted - mine.weighted;
  int odd = -1, first = -1;
  for (int unit = cube.from; unit < cube.to; ++unit)
    trees_.units.each_rank(unit, [&](int rank) {
      if (first < 0) first = rank;
      if (more != 0 && more * weight_of(rank) == weighted) odd = rank;
    });
  if (odd >= 0)
    team_.mismatch(odd, blocks_.size(odd) + more, blocks_.size(odd), "bytes of its block");
  else
    team_.mismatch(first, report.all_bytes, mine.all_bytes, "bytes of its block and others that came with it");
  return false;
}

}  // namespace ibcoll::gather
