// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatter in place, and its reverse, for a vector in p parts that lie one after the other: rank i's part is
// complete in the end (and with the reverse all are). Both algorithms need an operation that commutes; every part is
// combined by one rank last, so all ranks see the same bits. Used by allreduce and reduce_scatter. `Layout` has parts,
// start(i) in bytes and bytes(i), as Segments has.
#pragma once

#include "runtime/collectives/framework/circulant_skips.h"
#include "runtime/collectives/framework/halving.h"

namespace ibcoll {

// In a ring: part i goes around from rank i + 1 on, and each rank adds its own operand. `work`: as long as the vector.
template <typename Layout>
Task ring_reduce_scatter(Comm& c, Reduction reduction, Bytes vector, Layout layout, std::byte* work) {
  const int p = c.size(), left = c.peer(-1), right = c.peer(1);
  // Parts rank - 2, rank - 3, ... rank come one after the other; each has a slot of `work`, so all are announced at
  // once.
  uint64_t coming = vector.size() - layout.bytes(left);
  for (int i = 2; i <= p; ++i) c.announce(left, layout.of(Bytes(work, vector.size()), c.peer(-i % p)));
  c.put(right, layout.of(vector, left));
  for (int i = 2; i <= p; ++i) {
    const Bytes mine = layout.of(vector, c.peer(-i % p));
    coming -= mine.size();
    co_await c.received_from(left, coming);
    combine_in_order(reduction, mine, layout.of(Bytes(work, vector.size()), c.peer(-i % p)).data(), true);
    if (i < p) c.put(right, mine);
  }
  co_await c.flushed();
}

template <typename Layout>
Task ring_allgather(Comm& c, Bytes vector, Layout layout) {
  const int p = c.size(), left = c.peer(-1), right = c.peer(1);
  uint64_t coming = vector.size() - layout.bytes(c.rank());
  for (int i = 1; i < p; ++i) c.announce(left, layout.of(vector, c.peer(-i)));
  c.put(right, layout.of(vector, c.rank()));
  for (int i = 1; i < p; ++i) {
    const Bytes part = layout.of(vector, c.peer(-i));
    coming -= part.size();
    co_await c.received_from(left, coming);
    if (i + 1 < p) c.put(right, part);
  }
  co_await c.flushed();
}

// Parts `first`, first + 1, ..., `count` of them, of a vector in which part 0 follows part p - 1.
struct PartsInARow {
  Bytes until_end, from_start;

  template <typename Layout>
  PartsInARow(const Layout& layout, Bytes vector, int first, int count) noexcept {
    const int here = std::min(count, layout.parts - first);
    until_end = vector.subspan(layout.start(first), layout.start(first + here) - layout.start(first));
    from_start = vector.first(layout.start(count - here));
  }
};

// On a circulant graph: with R[i] the part of rank r + i, in round k = q - 1, ..., 0 rank r sends R[skip(k)] up to, not
// including, R[skip(k + 1)] to r + skip(k), and adds to R[0], R[1], ... what arrives. Nothing is packed: parts leave as
// they lie, in two messages where they go past the end of the vector. `work`: as long as the vector.
// Source: Traff 2024. Rounds: q = ceil(lg p). Moved: p - 1 parts.
template <typename Layout>
Task circulant_reduce_scatter(Comm& c, Reduction reduction, Bytes vector, Layout layout, std::byte* work) {
  const CirculantSkips skip(c.size());
  for (int k = skip.rounds() - 1; k >= 0; --k) {
    const int to = c.peer(skip[k]), from = c.peer(-skip[k]), count = skip[k + 1] - skip[k];
    const PartsInARow leaving(layout, vector, to, count), mine(layout, vector, c.rank(), count);
    const Bytes first(work, mine.until_end.size());
    const Bytes second(work + first.size(), mine.from_start.size());
    c.announce(from, first);
    c.announce(from, second);
    c.put(to, leaving.until_end);
    c.put(to, leaving.from_start);
    co_await c.received();
    combine_in_order(reduction, mine.until_end, first.data(), true);
    combine_in_order(reduction, mine.from_start, second.data(), true);
  }
  co_await c.flushed();
}

template <typename Layout>
Task circulant_allgather(Comm& c, Bytes vector, Layout layout) {
  const CirculantSkips skip(c.size());
  for (int k = 0; k < skip.rounds(); ++k) {
    const int to = c.peer(-skip[k]), from = c.peer(skip[k]), count = skip[k + 1] - skip[k];
    const PartsInARow leaving(layout, vector, c.rank(), count), coming(layout, vector, from, count);
    c.announce(from, coming.until_end);
    c.announce(from, coming.from_start);
    c.put(to, leaving.until_end);
    c.put(to, leaving.from_start);
    co_await c.received();
  }
  co_await c.flushed();
}

}  // namespace ibcoll
