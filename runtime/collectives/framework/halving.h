// SPDX-License-Identifier: BSD-3-Clause
// Recursive halving of a vector that all ranks of a Comm have, for reductions of any p (allreduce, reduce and others).
#pragma once

#include <array>
#include <bit>
#include <cmath>

#include "runtime/collectives/framework/algorithm.h"
#include "runtime/collectives/framework/pieces.h"

namespace ibcoll {

// For algorithms whose core needs a power of two: the first 2 (p - core) ranks pair up, and one of each pair acts for
// both. Pairs are neighbours, so virtual ranks are in the order of the ranks.
class PowerOfTwo {
 public:
  // `acts`: a rank that shall act; -1: any.
  explicit PowerOfTwo(int p, int acts = -1) noexcept
      : core_(static_cast<int>(std::bit_floor(static_cast<unsigned>(p)))), pairs_(p - core_), acts_(acts) {}

  int core() const noexcept { return core_; }    // virtual ranks
  int pairs() const noexcept { return pairs_; }  // that act as one
  bool in_pair(int rank) const noexcept { return rank < 2 * pairs_; }
  bool idle(int rank) const noexcept { return in_pair(rank) && rank != rank_of(rank / 2); }
  int virtual_of(int rank) const noexcept { return in_pair(rank) ? rank / 2 : rank - pairs_; }
  // The one that acts.
  int rank_of(int virtual_rank) const noexcept {
    if (virtual_rank >= pairs_) return virtual_rank + pairs_;
    return acts_ / 2 == virtual_rank && acts_ >= 0 ? acts_ : 2 * virtual_rank + 1;
  }

 private:
  int core_, pairs_, acts_;
};

// result = theirs op mine, or mine op theirs when they come from higher ranks. Both partners of an exchange combine in
// that order, also where the operation commutes: which of two NaNs a sum keeps depends on their order. `result` may be
// `mine`.
void combine_in_order(const Reduction& reduction, Bytes result, const std::byte* mine, std::byte* theirs,
                      bool from_lower);
inline void combine_in_order(const Reduction& reduction, Bytes mine, std::byte* theirs, bool from_lower) {
  combine_in_order(reduction, mine, mine.data(), theirs, from_lower);
}

// Long operands travel in pieces, so that one is combined while the next ones come. B; at 100 Gbit/s such a piece takes
// 5 us, and most of the gain is had.
inline constexpr uint64_t kCombinedPiece = 64 << 10;
// Bytes of a piece of an operand of `bytes` bytes; all of them where this rank's processor moves them.
inline uint64_t combined_piece(Comm& c, int peer, uint64_t bytes, uint64_t element) noexcept {
  return bytes <= kCombinedPiece || !c.moves_meanwhile(peer) ? bytes : whole_elements(kCombinedPiece, element);
}
// Puts it to the peer, which announces memory for it as a whole.
void put_operand(Comm& c, int peer, ConstBytes from, uint64_t element) noexcept;
// combine_in_order(), piece by piece as they land, for an operand that was announced to the peer at `theirs`. `later`:
// bytes that were announced to the peer after it. This rank sends none of `result` meanwhile.
Task combine_as_it_lands(Comm& c, Reduction reduction, Bytes result, const std::byte* mine, std::byte* theirs, int peer,
                         uint64_t later, bool from_lower);

// The ranks that act combine the operands of both of their pair; the others are idle until unfold() brings them the
// result. Here and below `work` is as long as the vector.
Task fold(Comm& c, Reduction reduction, Bytes vector, std::byte* work, PowerOfTwo pairs);
Task unfold(Comm& c, Bytes vector, PowerOfTwo pairs);

// A run of elements, and how it is halved.
struct Run {
  uint64_t first = 0, count = 0;
  Run half(bool upper) const noexcept {
    return upper ? Run{first + count / 2, count - count / 2} : Run{first, count / 2};
  }
  template <typename Byte>
  std::span<Byte> of(std::span<Byte> vector, uint64_t element) const noexcept {
    return vector.subspan(first * element, count * element);
  }
  Bytes in(const Args& a) const noexcept { return of(a.buffer(), a.reduction.element_bytes()); }
};

// before[k]: what the partners of round k, at distance 2^k, share before it.
struct Halves {
  std::array<Run, 32> before;
  Run own;  // after the last round
};

// Reduce-scatter among the ranks that act: in round k, ranks at distance 2^k halve what they still share, and each
// combines one half. Neighbours come first, so partial results are those of neighbouring ranks, in rank order, and the
// operation need not commute. A rank of a pair has its operand in a.buffer(), any other in a.operand(), and all have
// their halves of the result in a.buffer().
// kAnnounced: a rank announces each half that it has given away to the same partner at once, for the result. So the
// partner need not wait for that announcement in the allgather.
enum class GivenHalves : uint8_t { kAreGone, kAnnounced };
Task halve(Comm& c, Args a, std::byte* work, PowerOfTwo pairs, Halves* halves, GivenHalves given);

// All ranks combine m bytes that have just landed with m bytes of their own.
inline double combine_landed_us(const CostModel& m, double bytes) { return m.copies_us(bytes) + m.combines_us(bytes); }
// All ranks send and receive m bytes, and combine them as they land: the shorter of both times counts for the last
// piece only.
inline double move_and_combine_us(const CostModel& m, double bytes) {
  const double moved = m.beta_us * bytes, combined = combine_landed_us(m, bytes);
  const double pieces = m.moves_meanwhile ? std::max(1.0, std::ceil(bytes / static_cast<double>(kCombinedPiece))) : 1;
  return std::max(moved, combined) + std::min(moved, combined) / pieces + (pieces - 1) * m.stream_us(0);
}
// The bytes of the rounds of halve(), of which each has half of those of the one before.
inline double halve_us(const CostModel& m, double bytes, int ranks) {
  double us = 0;
  for (; ranks > 1; ranks /= 2) us += move_and_combine_us(m, bytes /= 2);
  return us;
}

}  // namespace ibcoll
