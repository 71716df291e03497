// SPDX-License-Identifier: BSD-3-Clause
// Scatter(v) on one node as one step of the node window, for blocks that fit into it.
#pragma once

#include <algorithm>

#include "runtime/collectives/gather/node_cells.h"

namespace ibcoll::scatter {

using gather::NodeCells;

inline void write_others(NodeWindow& w, const Args& a) {
  NodeCells(w, a.parameter).write_others([&](int local) { return a.send[local]; });
}
inline Difference take_own(NodeWindow&, const Args& a) {
  if (!a.in_place) Comm::copy(a.buffer(), a.send[a.root]);
  return {};
}
inline Difference take(NodeWindow& w, const Args& a) {
  const NodeCells::Cell sent = NodeCells(w, a.parameter).find(a.root);
  if (sent.bytes != a.bytes) return {a.root, sent.bytes, a.bytes};
  if (sent.data) Comm::copy(a.buffer(), ConstBytes(sent.data, a.bytes));
  return {};
}

// All others await the root, which awaits nobody. None where a block comes straight from the root.
inline OneStep one_step(const Args& a, const NodeWindow& w) {
  const uint64_t longest = NodeCells::longest_of(w, a.parameter);
  if (w.rank() != a.root) {
    if (a.bytes > longest) return {};
    return {.kind = OneStep::Kind::kOwn,
            .first = a.root,
            .end = a.root + 1,
            .bytes = NodeCells::step_bytes(0),
            .finish = take};
  }
  uint64_t writes = 0;
  for (int i = 0; i < w.size(); ++i)
    if (i != a.root) writes = std::max(writes, a.send.size(i));
  if (writes > longest) return {};
  return {
      .kind = OneStep::Kind::kOwn, .bytes = NodeCells::step_bytes(writes), .write = write_others, .finish = take_own};
}

}  // namespace ibcoll::scatter
