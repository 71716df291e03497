// SPDX-License-Identifier: BSD-3-Clause
// Allreduce, PAP_Direct: every rank owns a segment of the vector and gets all others' operands of it, which it combines
// as they come, in a tree of fixed order; it sends the result to everybody. While one rank is late, the others
// reduce-scatter among themselves: when it comes, each owner has ceil(lg p) operations of n / p left.
// Source: Qian, Afsahi, PAP_Direct, carried to a reduction; what the late rank finds done is what StragglAR 2025 (arXiv
// 2505.23523) asks for, without knowing beforehand which rank is late.
// Messages: 2 (p - 1) per rank. Cost: 2 alpha + 2 (p-1)/p n beta + (p-1)/p n gamma.
#include "runtime/collectives/allreduce/allreduce.h"
#include "runtime/collectives/framework/operand_tree.h"

namespace ibcoll::allreduce::pap_direct {

// The operands of this rank's segment: its own where the result goes, those of others in `work`.
class Operands {
 public:
  Operands(const Comm& c, const Reduction& reduction, Bytes own, std::byte* work)
      : p_(c.size()),
        self_(c.rank()),
        here_(c.rank()),
        reduction_(reduction),
        own_(own),
        work_(work),
        tree_(
            {reinterpret_cast<uint8_t*>(work + own.size() * static_cast<uint64_t>(p_ - 1)), static_cast<size_t>(p_)}) {}

  // The memory where the rank's operand is, or lands.
  Bytes of(int rank) const noexcept {
    if (rank == here_) return own_;
    return {work_ + own_.size() * static_cast<uint64_t>((rank - self_ + p_) % p_ - 1), own_.size()};
  }
  // Has landed: combines it with the operands beside it in the tree, as far as these are there.
  void take(int rank) {
    tree_.take(rank, [this](int lower, int upper) { combine(lower, upper); });
  }

 private:
  void combine(int lower, int upper) {
    if (lower != here_) return reduction_(of(lower).data(), of(upper).data(), own_.size() / reduction_.element_bytes());
    combine_in_order(reduction_, own_, of(upper).data(), false);
    here_ = upper;
  }

  int p_, self_;
  int here_;  // whose operand, or result with it, is where the whole result goes
  Reduction reduction_;
  Bytes own_;
  std::byte* work_;
  OperandTree tree_;
};

Task among(Comm& c, Args a, std::byte* work) {
  const int p = c.size();
  const Segments segments{a.count, a.reduction.element_bytes(), p};
  const Bytes own = segments.of(a.buffer(), c.rank());
  c.copy(a.buffer(), a.operand());
  Operands operands(c, a.reduction, own, work);
  for (int i = 1; i < p; ++i) c.announce(c.peer(i), operands.of(c.peer(i)));  // the arrival notice
  // A put to a rank that is not there waits in a queue of its own.
  for (int i = 1; i < p; ++i) c.put(c.peer(i), segments.of(a.buffer(), c.peer(i)));
  if (own.empty()) {
    for (int i = 1; i < p; ++i) c.announce(c.peer(i), segments.of(a.buffer(), c.peer(i)));
  } else {
    operands.take(c.rank());
    for (int i = 1; i < p; ++i) c.watch(c.peer(i));
    for (int i = 1; i < p; ++i) {
      const int from = co_await c.next_landing();
      operands.take(from);
      // It sends the result of its segment when it has this rank's operand, so the result may replace that.
      c.announce(from, segments.of(a.buffer(), from));
    }
  }
  for (int i = 1; i < p; ++i) c.put(c.peer(i), own);
  co_await c.received();
  co_await c.flushed();
}

double cost_us(const Shape& s, const CostModel& m) {
  const double segment = static_cast<double>(s.bytes) / s.p;
  return 2 * (m.message_us(0) + (s.p - 1) * m.stream_us(segment)) + combine_landed_us(m, segment * (s.p - 1));
}

// The late rank has operands for the owners of segments, and each of these a result for all.
double late_us(const Shape& s, const CostModel& m) {
  const double segment = static_cast<double>(s.bytes) / s.p, others = s.p - 1;
  const uint64_t elements = s.bytes / s.element_bytes;
  const double owners = std::min(others, static_cast<double>(elements));
  return cost_us(s, m) - (others - owners) * m.stream_us(segment);
}

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_ALLREDUCE,
       .name = "pap_direct",
       .about = "PAP_Direct as a reduction; combines operands as they come; 2 alpha + 2 n beta + n gamma",
       .run = in_pieces<among>,
       .cost_us = whole_us<cost_us>,
       .late_us = whole_us<late_us>,
       .order = Order::kDoubling}};
  return kRows;
}

}  // namespace ibcoll::allreduce::pap_direct
