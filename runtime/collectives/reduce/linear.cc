// SPDX-License-Identifier: BSD-3-Clause
// Reduce, linear: every rank sends its operand to the root, which combines them in rank order, a piece at a time so
// that its memory stays bounded.
// Source: Thakur, Gropp. Messages: p - 1, all to the root. Cost: (p - 1) (alpha + n beta + n gamma).
#include <algorithm>

#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll::reduce::linear {
namespace {

constexpr uint64_t kPiece = 1 << 20;  // bytes that the root holds of one other rank

Task run(Comm& c, Args a) {
  const ConstBytes operand = a.operand();
  const uint64_t element = a.reduction.element_bytes();
  const uint64_t piece = std::max<uint64_t>(kPiece / element, 1) * element;
  if (c.rank() != a.root) {
    for (uint64_t at = 0; at < a.bytes; at += piece) c.put(a.root, part(operand, at, piece));
    co_await c.flushed();
    co_return;
  }
  const auto p = static_cast<uint64_t>(c.size());
  std::byte* const theirs = c.scratch(std::min(piece, a.bytes) * p);
  if (!theirs) co_return;
  for (uint64_t at = 0; at < a.bytes; at += piece) {
    const ConstBytes mine = part(operand, at, piece);
    const auto of = [&](int rank) {
      return rank == c.rank() ? mine : ConstBytes(theirs + mine.size() * static_cast<uint64_t>(rank), mine.size());
    };
    for (int i = 0; i < c.size(); ++i)
      if (i != c.rank()) c.announce(i, Bytes(theirs + mine.size() * static_cast<uint64_t>(i), mine.size()));
    // In rank order from above, so that each operand is read once: result = x_i op result. Each when it has come and
    // those above it: what is there does not wait for a late rank.
    std::byte* const sum = theirs + mine.size() * static_cast<uint64_t>(c.rank());
    const uint64_t count = mine.size() / element;
    if (c.size() == 1) a.reduction.single(sum, mine.data(), count);
    for (int i = c.size() - 1; c.size() > 1 && i >= 0; --i) {
      if (i != c.rank()) co_await c.received_from(i);
      if (i == c.size() - 1)
        c.copy(Bytes(sum, mine.size()), of(i));
      else
        a.reduction(of(i).data(), sum, count);
    }
    c.copy(part(a.buffer(), at, piece), ConstBytes(sum, mine.size()));
  }
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes);
  return m.message_us(0) + (s.p - 1) * (m.stream_us(n) + (m.copy_us + m.cached_copy_us) * n);
}

// The root still combines a late operand and those below it. A late root still receives those that are long.
double late_us(const Shape& s, const CostModel& model) {
  const CostModel m = model_of_late(model);
  const double n = static_cast<double>(s.bytes), others = s.p - 1;
  const double asked_for = n > m.eager_bytes ? others * m.stream_us(n) : 0;
  return (others * m.message_us(n) + asked_for) / s.p + (others / 2 + 1) * (m.copy_us + m.cached_copy_us) * n;
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {{.collective = IBCOLL_REDUCE,
                                         .name = "linear",
                                         .about = "Thakur, Gropp; all to the root; (p-1) (alpha + n beta + n gamma)",
                                         .run = run,
                                         .cost_us = cost_us,
                                         .late_us = late_us,
                                         .order = Order::kRanks,
                                         .as_exchange = AsExchange::kOfTwo}};
  return kRows;
}

}  // namespace ibcoll::reduce::linear
