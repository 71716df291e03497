// SPDX-License-Identifier: BSD-3-Clause
// Alltoall, Bruck to base r: block i of a rank is the one for rank + i. For each digit of i, blocks whose digit there
// is d > 0 move by d times that digit's weight, as one message for each d. Long blocks move in cells, so that scratch
// memory is bounded.
// Source: Bruck et al., "Efficient Algorithms for All-to-All Communications in Multiport Message-Passing Systems",
// 1997, section 3.
// Any p. Rounds: ceil(log_r p), r - 1 messages in each. Cost: ceil(log_r p) (alpha + (r - 1)/r p m beta), and blocks
// are copied in each round.
#include <algorithm>

#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll::alltoall::bruck {
namespace {

// Bytes of all cells of a rank, unless p cells of one byte each need more.
constexpr uint64_t kScratch = uint64_t{1} << 20;

uint64_t longest_cell(uint64_t p) { return std::max<uint64_t>(1, kScratch / p); }

// Moves the blocks of `now` bytes whose digit of this weight is not 0; `cells` holds block i at i * now. Of the packed
// messages the one of digit 1 comes first; what is sent lies at `packed`, what is received after it.
struct Digit {
  int64_t weight;
  int64_t radix;
  int64_t p;
  uint64_t now;
  bool moves(int64_t i, int64_t digit) const { return i / weight % radix == digit; }
  uint64_t bytes(int64_t digit) const {
    const int64_t cycle = weight * radix, rest = p % cycle - digit * weight;
    return now * static_cast<uint64_t>(p / cycle * weight + std::clamp<int64_t>(rest, 0, weight));
  }
  std::byte* pack(std::byte* to, const std::byte* cells, int64_t digit) const {
    for (int64_t i = digit * weight; i < p; i += next(i), to += now)
      Comm::copy(Bytes(to, now), ConstBytes(cells + static_cast<uint64_t>(i) * now, now));
    return to;
  }
  const std::byte* unpack(std::byte* cells, const std::byte* from, int64_t digit) const {
    for (int64_t i = digit * weight; i < p; i += next(i), from += now)
      Comm::copy(Bytes(cells + static_cast<uint64_t>(i) * now, now), ConstBytes(from, now));
    return from;
  }

 private:
  // To the next block with the same digit.
  int64_t next(int64_t i) const { return (i + 1) % weight != 0 ? 1 : 1 + weight * (radix - 1); }
};

Task move(Comm& c, Digit digit, std::byte* cells, std::byte* packed) {
  std::byte* sent = packed;
  std::byte* landing = packed + digit.now * static_cast<uint64_t>(digit.p);
  for (int64_t d = 1; d < digit.radix && d * digit.weight < digit.p; ++d) {
    const int distance = static_cast<int>(d * digit.weight);
    c.announce(c.peer(-distance), Bytes(landing, digit.bytes(d)));
    landing += digit.bytes(d);
    std::byte* const end = digit.pack(sent, cells, d);
    c.put(c.peer(distance), ConstBytes(sent, end));
    sent = end;
  }
  co_await c.received();
  co_await c.flushed();
  const std::byte* landed = packed + digit.now * static_cast<uint64_t>(digit.p);
  for (int64_t d = 1; d < digit.radix && d * digit.weight < digit.p; ++d) landed = digit.unpack(cells, landed, d);
}

Task run(Comm& c, Args a) {
  const int p = c.size();
  const uint64_t cell = std::min(a.recv.bytes, longest_cell(static_cast<uint64_t>(p)));
  std::byte* const cells = c.scratch(3 * cell * static_cast<uint64_t>(p));
  if (!cells) co_return;
  std::byte* const packed = cells + cell * static_cast<uint64_t>(p);
  for (uint64_t at = 0; at < a.recv.bytes; at += cell) {
    const uint64_t now = std::min(cell, a.recv.bytes - at);
    for (int i = 0; i < p; ++i)
      c.copy(Bytes(cells + static_cast<uint64_t>(i) * now, now), part(a.send[c.peer(i)], at, now));
    Digit digit{1, static_cast<int64_t>(a.parameter), p, now};
    for (; digit.weight < p; digit.weight *= digit.radix) co_await move(c, digit, cells, packed);
    for (int i = 0; i < p; ++i)  // block i has come from rank - i
      c.copy(part(a.recv[c.peer(-i)], at, now), ConstBytes(cells + static_cast<uint64_t>(i) * now, now));
  }
}

double cost_us(const Shape& s, const CostModel& m) {
  const auto cell = std::min<uint64_t>(s.bytes, longest_cell(static_cast<uint64_t>(s.p)));
  const double pieces = s.bytes == 0 ? 1 : std::ceil(static_cast<double>(s.bytes) / static_cast<double>(cell));
  const auto all = static_cast<double>(s.bytes) * s.p;
  double cost = m.own_copies_us(2 * all);
  for (Digit digit{1, static_cast<int64_t>(s.parameter), s.p, 1}; digit.weight < s.p; digit.weight *= digit.radix) {
    const double messages =
        static_cast<double>(std::min<int64_t>(digit.radix, (s.p + digit.weight - 1) / digit.weight) - 1);
    double blocks = 0;
    for (int64_t d = 1; d <= static_cast<int64_t>(messages); ++d) blocks += static_cast<double>(digit.bytes(d));
    const double bytes = blocks * static_cast<double>(s.bytes);
    cost +=
        pieces * (m.message_us(0) + (messages - 1) * m.stream_us(0)) + m.beta_us * bytes + m.own_copies_us(2 * bytes);
  }
  return cost;
}

uint64_t choose(const Shape& s, const CostModel& m) { return cheapest_of<cost_us>(s, m, {2, 4, 8}); }

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_ALLTOALL,
       .name = "bruck",
       .about = "Bruck et al. 1997, to base r; ceil(log_r p) (alpha + (r-1)/r p m beta), for very short blocks",
       .parameter = {Parameter::Unit::kCount, "radix", 2, 1024},
       .run = run,
       .choose = choose,
       .cost_us = cost_us}};
  return kRows;
}

}  // namespace ibcoll::alltoall::bruck
