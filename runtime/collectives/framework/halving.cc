// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/halving.h"

namespace ibcoll {

void combine_in_order(const Reduction& reduction, Bytes result, const std::byte* mine, std::byte* theirs,
                      bool from_lower) {
  if (result.empty()) return;
  const uint64_t count = result.size() / reduction.element_bytes();
  if (from_lower) {
    reduction.combine(theirs, mine, result.data(), count);
  } else if (result.data() != mine || reduction.result_may_replace_lower()) {
    reduction.combine(mine, theirs, result.data(), count);
  } else if (reduction.op->commutative) {  // as the user says
    reduction(theirs, result.data(), count);
  } else {
    reduction(mine, theirs, count);
    Comm::copy(result, ConstBytes(theirs, result.size()));
  }
}

void put_operand(Comm& c, int peer, ConstBytes from, uint64_t element) noexcept {
  const uint64_t piece = combined_piece(c, peer, from.size(), element);
  for (uint64_t at = 0; at < from.size(); at += piece) c.put_piece(peer, part(from, at, piece), from.size());
}

Task combine_as_it_lands(Comm& c, Reduction reduction, Bytes result, const std::byte* mine, std::byte* theirs, int peer,
                         uint64_t later, bool from_lower) {
  const uint64_t piece = combined_piece(c, peer, result.size(), reduction.element_bytes());
  for (uint64_t at = 0; at < result.size(); at += piece) {
    const Bytes now = part(result, at, piece);
    co_await c.received_from(peer, result.size() - at - now.size() + later);
    combine_in_order(reduction, now, mine + at, theirs + at, from_lower);
  }
}

Task fold(Comm& c, Reduction reduction, Bytes vector, std::byte* work, PowerOfTwo pairs) {
  if (!pairs.in_pair(c.rank())) co_return;
  const int other = c.rank() ^ 1;
  if (pairs.idle(c.rank())) {
    put_operand(c, other, vector, reduction.element_bytes());
  } else {
    c.announce(other, Bytes(work, vector.size()));
    co_await combine_as_it_lands(c, reduction, vector, vector.data(), work, other, 0, other < c.rank());
  }
  co_await c.flushed();
}

Task unfold(Comm& c, Bytes vector, PowerOfTwo pairs) {
  if (!pairs.in_pair(c.rank())) co_return;
  if (pairs.idle(c.rank()))
    c.announce(c.rank() ^ 1, vector);
  else
    c.put(c.rank() ^ 1, vector);
  co_await c.received();
  co_await c.flushed();
}

Task halve(Comm& c, Args a, std::byte* work, PowerOfTwo pairs, Halves* halves, GivenHalves given) {
  const uint64_t element = a.reduction.element_bytes();
  const bool announces = given == GivenHalves::kAnnounced;
  const int self = pairs.virtual_of(c.rank());
  ConstBytes operand = pairs.in_pair(c.rank()) ? a.buffer() : a.operand();
  Run own{0, a.count};
  size_t round = 0;
  for (int distance = 1; distance < pairs.core(); distance *= 2, ++round) {
    const bool upper = (self & distance) != 0;
    const int partner = pairs.rank_of(self ^ distance);
    const Run gives = own.half(!upper);
    halves->before[round] = own;
    own = own.half(upper);
    // Where the operand lies elsewhere, nothing that is sent lies where results land.
    const bool apart = operand.data() != a.buffer().data();
    const uint64_t later = announces && apart ? gives.in(a).size() : 0;  // bytes of the result
    c.announce(partner, Bytes(work, own.in(a).size()));
    put_operand(c, partner, gives.of(operand, element), element);
    if (later > 0) c.announce(partner, gives.in(a));
    const Bytes result = own.in(a);
    const std::byte* const mine = own.of(operand, element).data();
    const uint64_t piece = combined_piece(c, partner, result.size(), element);
    const uint64_t before = result.empty() ? 0 : (result.size() - 1) / piece * piece, last = result.size() - before;
    if (before > 0)
      co_await combine_as_it_lands(c, a.reduction, result.first(before), mine, work, partner, last + later, upper);
    co_await c.received_from(partner, later);
    if (!apart) co_await c.flushed();
    if (announces && !apart) c.announce(partner, gives.in(a));
    combine_in_order(a.reduction, result.subspan(before), mine + before, work + before, upper);
    operand = a.buffer();
  }
  halves->own = own;
}

}  // namespace ibcoll
