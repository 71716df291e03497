// SPDX-License-Identifier: BSD-3-Clause
// Gather(v) on one node as one step of the node window, for blocks that fit into it.
#pragma once

#include "runtime/collectives/gather/node_cells.h"

namespace ibcoll::gather {

inline void write_own(NodeWindow& w, const Args& a) {
  NodeCells(w, a.parameter).write(w.rank(), a.own(w.rank()), a.root);
}
inline void write_own_size(NodeWindow& w, const Args& a) {
  NodeCells(w, a.parameter).write_size(w.rank(), a.own(w.rank()).size());
}
inline Difference take_all(NodeWindow& w, const Args& a) {
  const NodeCells cells(w, a.parameter);
  for (int i = 0; i < w.size(); ++i)
    if (i != a.root && cells.size(i) != a.recv.size(i)) return {i, cells.size(i), a.recv.size(i)};
  for (int i = 0; i < w.size(); ++i)
    if (i == a.root)
      Comm::copy(a.recv[i], a.own(i));
    else if (a.recv.size(i) > 0)
      cells.take(i, a.recv[i]);
  return {};
}

// The root awaits all others, which await nobody. None where a block goes straight to the root.
inline OneStep one_step(const Args& a, const NodeWindow& w) {
  const uint64_t longest = NodeCells::longest_of(w, a.parameter);
  if (w.rank() != a.root) {
    const uint64_t own = a.own(w.rank()).size();
    if (own > longest) return {};
    return {.kind = OneStep::Kind::kOwn, .bytes = NodeCells::step_bytes(own), .write = write_own};
  }
  for (int i = 0; i < w.size(); ++i)
    if (a.recv.size(i) > longest) return {};
  return {.kind = OneStep::Kind::kOwn,
          .end = w.size(),
          .bytes = NodeCells::step_bytes(0),
          .write = write_own_size,
          .finish = take_all};
}

}  // namespace ibcoll::gather
