// SPDX-License-Identifier: BSD-3-Clause
// Alltoallv, two-phase Bruck of radix r, for small blocks. A block moves from rank s to rank s + d in as many messages
// as d has digits that are not 0 in base r: for each digit, lowest first, the blocks with the same value v of it travel
// together to the rank that is v times the digit's weight further on. First go the sizes of these blocks (phase 1),
// then the blocks, packed (phase 2). Before, all ranks agree on the longest block; if there is none, that is all.
// Blocks longer than kLongest take no part: both ends know their size, and they go straight to their ranks at the end.
// Source: Fan, Gilray, Kumar et al., "Optimizing the Bruck Algorithm for Non-uniform All-to-all Communication", HPDC
// 2022; radix: Bruck et al. 1997, and TuNA, HPDC 2025.
// Rounds: ceil(lg p) + 2 ceil(log_r p), of 2 (r - 1) ceil(log_r p) messages. Scratch: p longest blocks.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/collectives/framework/algorithm.h"

namespace ibcoll::alltoallv::two_phase_bruck {
namespace {

constexpr uint64_t kLongest = 2048;

// Blocks by their distance d, 1 to p - 1, on this rank: at first those for rank + d, in the end those from rank - d.
struct Blocks {
  Comm& comm;
  const Args& args;
  int p;
  int64_t radix;
  uint64_t longest;    // agreed
  std::byte* moved;    // p slots for blocks that came here to be sent further
  uint32_t* sizes;     // by distance
  std::byte* packed;   // what goes out in a phase 2, then what comes in
  uint32_t* incoming;  // sizes, in the order of messages
  uint32_t* outgoing;

  static constexpr uint64_t words(int p) { return 3 * static_cast<uint64_t>(p); }

  std::byte* slot(int d) const { return moved + static_cast<uint64_t>(d) * longest; }
  // Its digits below this one are 0: it is still where it was.
  bool untouched(int d, int64_t weight) const { return d % weight == 0; }
  // Its digits above are 0: it ends where it goes now.
  bool last(int d, int64_t weight) const { return d / weight < radix; }
  const std::byte* block(int d, int64_t weight) const {
    return untouched(d, weight) ? args.send[comm.peer(d)].data() : slot(d);
  }
  // Calls visit(d) for the distances with this value of a digit.
  template <typename Visit>
  void each(int64_t value, int64_t weight, Visit visit) const {
    for (int64_t first = value * weight; first < p; first += radix * weight)
      for (int64_t d = first; d < std::min<int64_t>(p, first + weight); ++d) visit(static_cast<int>(d));
  }
  // The ranks at this distance before and after this one.
  int before(int64_t distance) const { return comm.peer(-static_cast<int>(distance)); }
  int after(int64_t distance) const { return comm.peer(static_cast<int>(distance)); }
};

bool is_long(uint64_t bytes) { return bytes > kLongest; }

// Phase 1 for one digit: announces what comes, sends what goes. Sizes of each value lie together.
void exchange_sizes(Blocks& b, int64_t weight) {
  uint64_t at = 0;
  for (int64_t value = 1; value < b.radix && value * weight < b.p; ++value) {
    const uint64_t begin = at;
    b.each(value, weight, [&](int d) { b.outgoing[at++] = b.sizes[d]; });
    const uint64_t bytes = (at - begin) * sizeof(uint32_t);
    b.comm.announce(b.before(value * weight), Bytes(reinterpret_cast<std::byte*>(b.incoming + begin), bytes));
    b.comm.put(b.after(value * weight), ConstBytes(reinterpret_cast<std::byte*>(b.outgoing + begin), bytes));
  }
}

// Phase 2. False: a peer sends what it cannot have; the collective has failed.
bool exchange_blocks(Blocks& b, int64_t weight) {
  std::byte *to = b.packed, *into = b.packed + static_cast<uint64_t>(b.p) * b.longest;
  uint64_t at = 0;
  for (int64_t value = 1; value < b.radix && value * weight < b.p; ++value) {
    const std::byte* const begin = to;
    uint64_t coming = 0;
    const int from = b.before(value * weight);
    bool fits = true;
    b.each(value, weight, [&](int d) {
      b.comm.copy(Bytes(to, b.sizes[d]), ConstBytes(b.block(d, weight), b.sizes[d]));
      to += b.sizes[d];
      fits = fits && b.incoming[at] <= b.longest;
      coming += b.incoming[at++];
    });
    if (!fits) {
      b.comm.mismatch(from, coming, b.longest, "bytes of blocks, against the longest,");
      return false;
    }
    b.comm.announce(from, Bytes(into, coming));
    b.comm.put(b.after(value * weight), ConstBytes(begin, static_cast<size_t>(to - begin)));
    into += coming;
  }
  return true;
}

// What has come goes to its slot, or in the end to the receive buffer. False: the collective has failed.
bool unpack(Blocks& b, int64_t weight) {
  const std::byte* from = b.packed + static_cast<uint64_t>(b.p) * b.longest;
  uint64_t at = 0;
  bool fits = true;
  for (int64_t value = 1; value < b.radix && value * weight < b.p; ++value)
    b.each(value, weight, [&](int d) {
      const uint32_t bytes = b.sizes[d] = b.incoming[at++];
      const bool ends = b.last(d, weight);
      const Bytes block = b.args.recv[b.comm.peer(-d)];
      const uint64_t wanted = is_long(block.size()) ? 0 : block.size();
      if (fits && ends && bytes != wanted) {
        b.comm.mismatch(b.comm.peer(-d), bytes, wanted, "bytes of its block");
        fits = false;
      }
      if (fits) b.comm.copy(Bytes(ends ? block.data() : b.slot(d), bytes), ConstBytes(from, bytes));
      from += bytes;
    });
  return fits;
}

// The largest of all ranks' numbers: by dissemination, as it does no harm to count one twice.
Task agree_on_most(Comm& c, uint64_t* most) {
  for (int distance = 1; distance < c.size(); distance *= 2) {
    uint64_t theirs = 0, mine = *most;
    c.announce(c.peer(-distance), Bytes(reinterpret_cast<std::byte*>(&theirs), sizeof theirs));
    c.put(c.peer(distance), ConstBytes(reinterpret_cast<std::byte*>(&mine), sizeof mine));
    co_await c.received_from(c.peer(-distance));
    co_await c.flushed();
    *most = std::max(*most, theirs);
  }
}

Task move_short_blocks(Comm& c, const Args* a, uint64_t longest) {
  const int p = c.size();
  const uint64_t room = static_cast<uint64_t>(p) * longest;
  std::byte* const memory = c.scratch(3 * room + Blocks::words(p) * sizeof(uint32_t));
  if (!memory) co_return;
  auto* const sizes = reinterpret_cast<uint32_t*>(memory);
  std::byte* const slots = memory + Blocks::words(p) * sizeof(uint32_t);
  Blocks b{
      c,         *a,           p,     static_cast<int64_t>(std::min<uint64_t>(a->parameter, static_cast<uint64_t>(p))),
      longest,   slots,        sizes, slots + room,
      sizes + p, sizes + 2 * p};
  for (int d = 1; d < p; ++d) {
    const uint64_t bytes = a->send.size(c.peer(d));
    sizes[d] = is_long(bytes) ? 0 : static_cast<uint32_t>(bytes);
  }
  for (int64_t weight = 1; weight < p; weight *= b.radix) {
    exchange_sizes(b, weight);
    co_await c.received();
    if (!exchange_blocks(b, weight)) co_return;
    co_await c.received();
    if (!unpack(b, weight)) co_return;
    co_await c.flushed();
  }
}

Task run(Comm& c, Args a) {
  uint64_t longest = 0;
  // The maximum includes expected blocks, so that ranks notice where calls do not match.
  for (int rank = 0; rank < c.size(); ++rank)
    for (const uint64_t bytes : {a.send.size(rank), a.recv.size(rank)})
      if (!is_long(bytes)) longest = std::max(longest, bytes);
  co_await agree_on_most(c, &longest);
  c.copy_when_idle(a.recv[c.rank()], a.send[c.rank()]);
  if (longest > 0) co_await move_short_blocks(c, &a, longest);
  for (int i = 1; i < c.size(); ++i)
    if (is_long(a.recv.size(c.peer(-i)))) c.announce(c.peer(-i), a.recv[c.peer(-i)]);
  for (int i = 1; i < c.size(); ++i)
    if (is_long(a.send.size(c.peer(i)))) c.put(c.peer(i), a.send[c.peer(i)]);
  co_await c.received();
  co_await c.flushed();
}

constexpr Parameter kRadix = {Parameter::Unit::kCount, "radix", 2, 65536};

int digits(int p, uint64_t radix) {
  int count = 0;
  for (uint64_t weight = 1; weight < static_cast<uint64_t>(p); weight *= radix) ++count;
  return count;
}

double cost_us(const Shape& s, const CostModel& m) {
  const auto radix = std::clamp<uint64_t>(s.parameter, 2, static_cast<uint64_t>(std::max(2, s.p)));
  const double count = digits(s.p, radix), r = static_cast<double>(radix);
  const double moved = count * (r - 1) / r * s.p * cost::kUnknownPackedBlock;  // by a rank
  return (ceil_log2(s.p) + 2 * count) * m.message_us(0) + 2 * count * (std::min<double>(r, s.p) - 2) * m.stream_us(0) +
         moved * m.beta_us + m.own_copies_us(3 * moved) + static_cast<double>(s.bytes) * s.p * m.beta_us;
}

// The smallest radix by which p has `count` digits.
uint64_t radix_of(int p, int count) {
  auto radix = static_cast<uint64_t>(std::pow(p, 1.0 / count));
  while (radix > 2 && digits(p, radix - 1) <= count) --radix;  // the power is rounded
  while (digits(p, radix) > count) ++radix;
  return radix;
}

// The smallest of the radixes with equally many digits is the cheapest.
uint64_t choose(const Shape& s, const CostModel& m) {
  Shape with = s;
  with.parameter = 2;
  double lowest = cost_us(with, m);
  uint64_t best = 2;
  for (int count = digits(s.p, 2) - 1; count >= 1; --count) {
    with.parameter = radix_of(s.p, count);
    if (with.parameter > kRadix.most) break;
    const double cost = cost_us(with, m);
    if (cost < lowest) lowest = cost, best = with.parameter;
  }
  return best;
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_ALLTOALLV,
       .name = "two_phase_bruck",
       .about = "Fan et al. 2022, radix r, short blocks; lg p + 2 log_r p rounds; blocks over 2 KB go straight",
       .parameter = kRadix,
       .run = run,
       .choose = choose,
       .cost_us = cost_us}};
  return kRows;
}

}  // namespace ibcoll::alltoallv::two_phase_bruck
