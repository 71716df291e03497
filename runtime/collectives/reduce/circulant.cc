// SPDX-License-Identifier: BSD-3-Clause
// Reduce, circulant: the vector in n blocks, and the rounds of the round-optimal broadcast (framework/circulant.h) from
// the last one to the first: where a rank gets a block there, it sends it here, combined with what came before. In the
// broadcast every rank but the root gets each block once, so each operand is combined once.
// Source: Traff, "Optimal Broadcast Schedules in Logarithmic Time with Applications to Broadcast, All-Broadcast,
// Reduction and All-Reduction", 2024 (arXiv 2407.18004). Any p; the operation must commute; blocks are combined in a
// fixed order.
// Rounds: n - 1 + q, q = ceil(lg p). Cost: (n - 1 + q) (alpha + (beta + gamma) m / n) for m bytes.
#include <algorithm>
#include <cmath>

#include "runtime/collectives/framework/circulant.h"
#include "runtime/collectives/framework/cost_patterns.h"
#include "runtime/collectives/framework/halving.h"

namespace ibcoll::reduce::circulant {
namespace {

// The vector in blocks of equal length, but the last one. Block b leaves a rank in one of the rounds b to b + 2q - 1 of
// the broadcast, and what is combined with it comes in those too: a rank works on 2q blocks at a time at most.
struct BlocksOf {
  int q;
  uint64_t length;  // bytes
  int64_t n;

  BlocksOf(uint64_t bytes, uint64_t element, uint64_t wanted, int p) noexcept : q(ceil_log2(p)) {
    const uint64_t equal = (bytes / element + wanted - 1) / wanted * element;
    length = std::min(equal, whole_elements(kReductionPiece / (3 * static_cast<uint64_t>(q)), element));
    n = static_cast<int64_t>((bytes + length - 1) / length);
  }
  // Slots for partial results; block b has the slot b mod slots().
  int64_t slots() const noexcept {
    const auto fitting = static_cast<int64_t>(kReductionPiece / length);
    return std::min(n, std::max<int64_t>(2 * q, fitting - q));
  }
  template <typename Byte>
  std::span<Byte> of(std::span<Byte> vector, int64_t b) const noexcept {
    return part(vector, static_cast<uint64_t>(b) * length, length);
  }
};

// This rank's partial result of each block: its operand, until something was combined with it.
class Partials {
 public:
  // `memory`: slots() blocks; nullptr: the result goes to the receive buffer.
  Partials(Args a, BlocksOf blocks, std::byte* memory) noexcept : a_(a), blocks_(blocks), memory_(memory) {
    std::fill(std::begin(combined_), std::end(combined_), -1);
  }

  ConstBytes of(int64_t b) const noexcept {
    return combined_[entry(b)] == b ? ConstBytes(memory_of(b)) : blocks_.of(a_.operand(), b);
  }
  void combine(int64_t b, std::byte* theirs) noexcept {
    const ConstBytes mine = of(b);
    const Bytes into = memory_of(b);
    if (mine.data() == into.data())
      combine_in_order(a_.reduction, into, theirs, false);
    else
      a_.reduction.combine(mine.data(), theirs, into.data(), into.size() / a_.reduction.element_bytes());
    combined_[entry(b)] = b;
  }
  // Its slot holds block b + slots(), which may not have left yet: blocks from `left` on have.
  bool overwrites(int64_t b, int64_t left) const noexcept {
    const int64_t before = b + blocks_.slots();
    return memory_ && before < blocks_.n && before < left && combined_[entry(b)] != b;
  }

 private:
  size_t entry(int64_t b) const noexcept { return static_cast<size_t>(b % (2 * blocks_.q)); }
  Bytes memory_of(int64_t b) const noexcept {
    if (!memory_) return blocks_.of(a_.buffer(), b);
    const auto at = static_cast<uint64_t>(b % blocks_.slots());
    return {memory_ + at * blocks_.length, blocks_.of(a_.operand(), b).size()};
  }

  Args a_;
  BlocksOf blocks_;
  std::byte* memory_;
  int64_t combined_[2 * CirculantTable::kMostRounds];  // by block modulo 2q: the one that something was combined with
};

Task run(Comm& c, Args a) {
  const int p = c.size(), v = c.peer(-a.root);  // v: this rank, counted from the root
  if (p == 1) a.reduction.single(a.recv.base, a.operand().data(), a.count);
  if (p == 1 || a.bytes == 0) co_return;
  const CirculantTable* const table = circulant_table(c);
  if (!table) co_return;
  const BlocksOf blocks(a.bytes, a.reduction.element_bytes(), a.parameter, p);
  const CirculantRounds rounds(*table, blocks.n);
  const auto q = static_cast<uint64_t>(blocks.q), slots = static_cast<uint64_t>(v == 0 ? 0 : blocks.slots());
  // A slot for each of the q ranks that send to this one, then those for partial results.
  std::byte* const landing = c.scratch(blocks.length * (q + slots));
  if (!landing) co_return;
  Partials partials(a, blocks, v == 0 ? nullptr : landing + blocks.length * q);
  const auto announce = [&](const CirculantRound& round) {
    if (const int64_t b = round.sent(v); b >= 0)
      c.announce(c.peer(round.skip),
                 Bytes(landing + blocks.length * static_cast<uint64_t>(round.k), blocks.of(a.operand(), b).size()));
  };
  int64_t left = blocks.n;
  for (int64_t i = rounds.count() - 1, least = std::max<int64_t>(0, rounds.count() - blocks.q); i >= least; --i)
    announce(rounds[i]);
  for (int64_t i = rounds.count() - 1; i >= 0; --i) {
    const CirculantRound round = rounds[i];
    if (const int64_t b = round.received(v); b >= 0) c.put(c.peer(-round.skip), partials.of(b));
    if (const int64_t b = round.sent(v); b >= 0) {
      if (partials.overwrites(b, left)) {
        co_await c.flushed();
        left = i;
      }
      co_await c.received_from(c.peer(round.skip));
      partials.combine(b, landing + blocks.length * static_cast<uint64_t>(round.k));
    }
    if (i >= blocks.q) announce(rounds[i - blocks.q]);
  }
  co_await c.flushed();
}

double cost_us(const Shape& s, const CostModel& m) {
  if (s.bytes == 0 || s.p == 1) return m.message_us(0);
  const BlocksOf blocks(s.bytes, s.element_bytes, std::max<uint64_t>(1, s.parameter), s.p);
  const double n = static_cast<double>(blocks.n), length = static_cast<double>(s.bytes) / n;
  return (n - 1 + blocks.q) * (m.message_us(length) + combine_landed_us(m, length));
}

// One block goes up half of the levels, in the mean; of several all have to go through the late rank.
double late_us(const Shape& s, const CostModel& model) {
  const CostModel m = model_of_late(model);
  if (s.bytes == 0 || s.p == 1) return m.message_us(0);
  const double length = static_cast<double>(s.bytes) / static_cast<double>(std::max<uint64_t>(1, s.parameter));
  return cost_us(s, m) - ceil_log2(s.p) * (m.message_us(length) + combine_landed_us(m, length)) / 2;
}

constexpr Parameter kBlocks = {Parameter::Unit::kCount, "blocks", 1, 65536};

// The minimum of the cost.
uint64_t choose(const Shape& s, const CostModel& m) {
  const double bytes = static_cast<double>(s.bytes);
  const double best =
      std::sqrt((ceil_log2(s.p) - 1) * (m.beta_us * bytes + combine_landed_us(m, bytes)) / m.message_us(0));
  return best > 1 ? static_cast<uint64_t>(std::min(best, static_cast<double>(kBlocks.most))) : 1;
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_REDUCE,
       .name = "circulant",
       .about = "Traff 2024; commutative; (n - 1 + ceil(lg p)) (alpha + (beta + gamma) m / n) in n blocks",
       .parameter = kBlocks,
       .run = run,
       .why_not = needs_commutative,
       .choose = choose,
       .cost_us = cost_us,
       .late_us = late_us}};
  return kRows;
}

}  // namespace ibcoll::reduce::circulant
