// SPDX-License-Identifier: BSD-3-Clause
// Broadcast, a chain of those that have arrived. Each rank notifies the root when it arrives; the root answers with its
// neighbours in the chain, along which the message goes in pieces of B bytes. Ranks that arrive while the root sends
// join at the end, those of a node side by side: a header before a part of the message names the first of them. It goes
// along the chain to the last rank, which sends that one all pieces. Ranks that arrive later are the root's next chain.
// So a late rank delays itself alone (and the root, which stays until all have come), and the root sends the message
// once to ranks that arrive soon after each other. There are no leaders of nodes: a late one would delay its node.
// Source: Patarasuk, Yuan, "Efficient MPI_Bcast across Different Process Arrival Patterns", whose root sends the whole
// message to a chain of those that have arrived before it looks for others. That a chain grows is ours.
// Cost: 3 alpha and the answers to p - 1 ranks more than a chain, (p - 2 + n / B) (alpha + B beta).
#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/collectives/bcast/trees.h"

namespace ibcoll::bcast::pap_chain {
namespace {

constexpr uint64_t kLeastPiece = 256, kMostPiece = uint64_t{1} << 24;
constexpr uint64_t kUnderWay = 1;  // pieces that the root has sent when it looks for arrivals
constexpr int kNone = -1;

template <typename T>
Bytes bytes_of(T& value) {
  return {reinterpret_cast<std::byte*>(&value), sizeof value};
}

// The root's answer to an arrival: whom the message comes from, and whom it goes to if that is known yet.
struct Place {
  int32_t before, next;
};

// The pieces of the message, in parts. Before each part goes a header: the rank that joins the chain at its end, or
// kNone. The first part has two pieces, each other one as many as all before it. So ranks that arrive soon after the
// first join soon, and parts, which have to be announced, are few.
class Pieces {
 public:
  Pieces(Comm& c, const Args& a)
      : message_(a.buffer()), piece_(a.parameter), headers_(c.scratch_array<int32_t>(part_of(count()) + 1)) {}
  bool usable() const { return headers_ != nullptr; }
  uint64_t count() const { return (message_.size() + piece_ - 1) / piece_; }
  Bytes of(uint64_t i) const { return part(message_, i * piece_, piece_); }
  bool has_header(uint64_t i) const { return i == first_of(i); }
  int32_t& header(uint64_t i) const { return headers_[part_of(i)]; }
  uint64_t bytes(uint64_t i) const { return of(i).size() + (has_header(i) ? sizeof(int32_t) : 0); }
  // Returns the bytes of all.
  uint64_t announce(Comm& c, int from) const {
    uint64_t all = 0;
    for (uint64_t i = 0; i < count(); ++i) {
      all += bytes(i);
      if (!has_header(i)) continue;
      c.announce(from, bytes_of(header(i)));
      c.announce(from, part_with(i));
    }
    return all;
  }
  void put(Comm& c, int to, uint64_t i) const {
    if (has_header(i)) c.put(to, bytes_of(header(i)));
    c.put_piece(to, of(i), part_with(i).size());
  }
  static uint64_t part_of(uint64_t i) { return i < 2 ? 0 : static_cast<uint64_t>(std::bit_width(i)) - 1; }

 private:
  // The first piece of the part that has piece i; and that part.
  static uint64_t first_of(uint64_t i) { return i < 2 ? 0 : std::bit_floor(i); }
  Bytes part_with(uint64_t i) const {
    return part(message_, first_of(i) * piece_, std::max<uint64_t>(first_of(i), 2) * piece_);
  }

  Bytes message_;
  uint64_t piece_;
  int32_t* headers_;
};

// The chain as the root makes it.
class GrowingChain {
 public:
  explicit GrowingChain(Comm& c)
      : c_(c),
        left_(c.size() - 1),
        notices_(c.scratch(static_cast<uint64_t>(c.size()))),
        places_(c.scratch_array<Place>(static_cast<uint64_t>(c.size()))),
        arrived_(c.scratch_array<int>(static_cast<uint64_t>(c.size()))) {}
  bool usable() const { return notices_ && places_ && arrived_; }
  void watch() {
    for (int i = 1; i < c_.size(); ++i) {
      c_.announce(c_.peer(i), Bytes(notices_ + i, 1));
      c_.watch(c_.peer(i));
    }
  }
  // Ranks that have not joined any.
  int left() const { return left_; }
  void begin() { last_ = c_.rank(), length_ = 0; }
  // A header reaches the end of the chain before the root has sent the last piece. Later, a new chain is as fast.
  bool may_grow(uint64_t pieces_left) const { return left_ > 0 && pieces_left >= static_cast<uint64_t>(length_); }
  // Ranks that have arrived, and `first`, join at the end. The result is the first of them, or kNone.
  int grow(int first = kNone) {
    int count = 0;
    for (int rank = first != kNone ? first : c_.landed(); rank != kNone; rank = c_.landed()) arrived_[count++] = rank;
    if (count == 0) return kNone;
    const Placement& nodes = c_.placement();
    const auto distance = [&](int rank) {  // of its node, from that of the end
      return (nodes.node_of(rank) - nodes.node_of(last_) + nodes.node_count()) % nodes.node_count();
    };
    std::sort(arrived_, arrived_ + count,
              [&](int a, int b) { return std::pair(distance(a), a) < std::pair(distance(b), b); });
    for (int i = 0; i < count; ++i) {
      Place& place = places_[arrived_[i]];
      place = {i > 0 ? arrived_[i - 1] : last_, i + 1 < count ? arrived_[i + 1] : kNone};
      c_.put(arrived_[i], bytes_of(place));
    }
    last_ = arrived_[count - 1];
    left_ -= count, length_ += count;
    return arrived_[0];
  }

 private:
  Comm& c_;
  int left_, last_ = kNone, length_ = 0;
  std::byte* notices_;
  Place* places_;
  int* arrived_;
};

Task lead(Comm& c, Pieces pieces) {
  GrowingChain chain(c);
  if (!chain.usable()) co_return;
  chain.watch();
  while (chain.left() > 0) {
    const int arrived = co_await c.next_landing();
    co_await c.flushed();  // headers are in use until then
    chain.begin();
    const int head = chain.grow(arrived);
    for (uint64_t i = 0; i < pieces.count(); ++i) {
      if (pieces.has_header(i)) pieces.header(i) = kNone;
      if (pieces.has_header(i) && chain.may_grow(pieces.count() - i)) {
        // By the time the head has announced memory, the notices of ranks that came with it have landed.
        if (i == 0)
          co_await c.ready(head, pieces.of(0).size());
        else
          co_await c.flushed(kUnderWay);
        pieces.header(i) = chain.grow();
      }
      pieces.put(c, head, i);
    }
  }
  co_await c.flushed();
}

Task follow(Comm& c, int root, Pieces pieces) {
  std::byte* const notice = c.scratch(1);
  Place* const place = c.scratch_array<Place>(1);
  if (!notice || !place) co_return;
  *notice = std::byte{0};
  c.announce(root, bytes_of(*place));
  c.put(root, ConstBytes(notice, 1));
  co_await c.received();
  const int before = place->before;
  int next = place->next;
  uint64_t coming = pieces.announce(c, before), sent = 0;
  for (uint64_t i = 0; i < pieces.count(); ++i) {
    coming -= pieces.bytes(i);
    co_await c.received_from(before, coming);
    if (next == kNone && pieces.has_header(i)) next = std::exchange(pieces.header(i), kNone);
    while (next != kNone && sent <= i) pieces.put(c, next, sent++);
  }
  co_await c.flushed();
}

Task run(Comm& c, Args a) {
  if (c.size() == 1 || a.bytes == 0) co_return;
  const Pieces pieces(c, a);
  if (!pieces.usable()) co_return;
  if (c.rank() == a.root)
    co_await lead(c, pieces);
  else
    co_await follow(c, a.root, pieces);
}

uint64_t pieces_of(const Shape& s) { return std::max<uint64_t>(1, (s.bytes + s.parameter - 1) / s.parameter); }
// A header and an advertisement for each part.
double headers_us(const Shape& s, const CostModel& m) {
  return static_cast<double>(2 * (1 + Pieces::part_of(pieces_of(s) - 1))) * m.stream_us(0);
}

double cost_us(const Shape& s, const CostModel& m) {
  const double n = static_cast<double>(s.bytes), places = 3 * m.message_us(0) + (s.p - 1) * m.stream_us(0);
  return places + headers_us(s, m) + tree_us(Chain::shape(s.p, 1), m, n, static_cast<double>(s.parameter));
}

// The late rank is a chain of its own. All wait for a late root.
double late_us(const Shape& s, const CostModel& model) {
  const CostModel m = model_of_late(model);
  const double alone = 3 * m.message_us(0) + headers_us(s, m) + m.message_us(static_cast<double>(s.bytes)) +
                       static_cast<double>(pieces_of(s) - 1) * m.stream_us(0);
  return (cost_us(s, model) + (s.p - 1) * alone) / s.p;
}

// Pieces that are not eager: see lead().
uint64_t choose(const Shape& s, const CostModel& m) {
  const auto least = static_cast<uint64_t>(2 * m.eager_bytes);
  return best_piece<cost_us>(s, m, std::clamp(std::bit_ceil(least), kLeastPiece, kMostPiece), kMostPiece, s.bytes);
}

}  // namespace

std::span<const Algorithm> rows() {
  static constexpr Algorithm kRows[] = {
      {.collective = IBCOLL_BCAST,
       .name = "pap_chain",
       .about = "Patarasuk, Yuan; chain of those that have arrived; (p-2 + n/B) (alpha + B beta) + 3 alpha",
       .parameter = {Parameter::Unit::kBytes, "piece", kLeastPiece, kMostPiece},
       .run = run,
       .choose = choose,
       .cost_us = cost_us,
       .late_us = late_us}};
  return kRows;
}

}  // namespace ibcoll::bcast::pap_chain
