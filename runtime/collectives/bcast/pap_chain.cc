// SPDX-License-Identifier: BSD-3-Clause
// Broadcast, a chain of those that have arrived. Each rank notifies the root when it arrives; the root answers with its
// neighbours in the chain, along which the message goes in pieces of B bytes. The chain goes through the nodes, from
// the first rank of each that is there to that of the next one, and branches off through the others of the node: so
// each link carries the message once. Ranks that arrive while the root sends join at the end of their node's branch, or
// a new node at the end of the chain: a header before a part of the message names them, and whom they get all pieces
// from. Ranks that arrive later are the root's next chain. So a late rank delays itself alone (and the root, which
// stays until all have come), and the root sends the message once to ranks that arrive soon after each other.
// Source: Patarasuk, Yuan, "Efficient MPI_Bcast across Different Process Arrival Patterns", whose root sends the whole
// message to a chain of those that have arrived before it looks for others. That a chain grows, and branches, is ours.
// Cost: 3 alpha and the answers to p - 1 ranks more than a chain of h = N + p / N - 2 ranks after the root, on N nodes:
// (h - 1 + n / B) (alpha + B beta).
#include <algorithm>
#include <bit>

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

// The root's answer to an arrival: whom the message comes from, and whom it goes to if that is known yet: the next rank
// of the node, and the first one of the next node.
struct Place {
  int32_t before, within, onward;
};

// Ranks that join the chain, each with the one that sends it the message. kNone ends them if they are fewer.
struct Header {
  static constexpr int kMost = 16;
  struct Join {
    int32_t at, rank;
  } joins[kMost];
};

// The pieces of the message, in parts. Before each part goes a header. The first part has two pieces, each other one as
// many as all before it. So ranks that arrive soon after the first join soon, and parts, which have to be announced, are
// few.
class Pieces {
 public:
  Pieces(Comm& c, const Args& a)
      : message_(a.buffer()), piece_(a.parameter), headers_(c.scratch_array<Header>(part_of(count()) + 1)) {}
  bool usable() const { return headers_ != nullptr; }
  uint64_t count() const { return (message_.size() + piece_ - 1) / piece_; }
  Bytes of(uint64_t i) const { return part(message_, i * piece_, piece_); }
  bool has_header(uint64_t i) const { return i == first_of(i); }
  Header& header(uint64_t i) const { return headers_[part_of(i)]; }
  uint64_t bytes(uint64_t i) const { return of(i).size() + (has_header(i) ? sizeof(Header) : 0); }
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

  // The part that has piece i.
  Bytes part_with(uint64_t i) const {
    return part(message_, first_of(i) * piece_, std::max<uint64_t>(first_of(i), 2) * piece_);
  }

 private:
  // The first piece of that part.
  static uint64_t first_of(uint64_t i) { return i < 2 ? 0 : std::bit_floor(i); }

  Bytes message_;
  uint64_t piece_;
  Header* headers_;
};

// Those that a rank sends the message to.
class Successors {
 public:
  Successors(Comm& c, const Pieces& pieces) : c_(c), pieces_(pieces) {}
  void add(int rank) {
    const bool here = c_.placement().node_of(rank) == c_.placement().node_of(c_.rank());
    (here ? within_ : onward_).rank = rank;
  }
  // This rank has the pieces up to `last`.
  void pass_on(uint64_t last) {
    for (Successor* const to : {&onward_, &within_})
      while (to->rank != kNone && to->sent <= last) pieces_.put(c_, to->rank, to->sent++);
  }

 private:
  struct Successor {
    int rank = kNone;
    uint64_t sent = 0;
  };
  Comm& c_;
  const Pieces& pieces_;
  Successor within_, onward_;
};

// The chain as the root makes it.
class GrowingChain {
 public:
  explicit GrowingChain(Comm& c)
      : c_(c),
        nodes_(c.placement()),
        left_(c.size() - 1),
        notices_(c.scratch(static_cast<uint64_t>(c.size()))),
        places_(c.scratch_array<Place>(static_cast<uint64_t>(c.size()))),
        waiting_(c.scratch_array<int>(static_cast<uint64_t>(c.size()))),
        joined_(c.scratch_array<int>(static_cast<uint64_t>(c.size()))),
        branches_(c.scratch_array<End>(static_cast<uint64_t>(nodes_.node_count()))) {}
  bool usable() const { return notices_ && places_ && waiting_ && joined_ && branches_; }
  void watch() {
    for (int i = 1; i < c_.size(); ++i) {
      c_.announce(c_.peer(i), Bytes(notices_ + i, 1));
      c_.watch(c_.peer(i));
    }
  }
  // Ranks that have not joined any.
  int left() const { return left_; }
  // Some of them have arrived.
  bool has_waiting() const { return waiting_count_ > 0; }
  void arrived(int rank) { waiting_[waiting_count_++] = rank; }
  void begin() {
    std::fill_n(branches_, nodes_.node_count(), End());
    end_ = branches_[nodes_.node_of(c_.rank())] = {c_.rank(), 0, kNone};
  }
  // Ranks that have arrived join, where a header tells that in time and has room. One of them; kNone if none joins.
  int grow(Header& header, uint64_t pieces_left, Successors& of_root) {
    for (int rank = c_.landed(); rank != kNone; rank = c_.landed()) arrived(rank);
    int joined = 0, waiting = 0, headers = 0;
    ++growth_;
    for (int i = 0; i < waiting_count_; ++i) {
      const int rank = waiting_[i];
      End& branch = branches_[nodes_.node_of(rank)];
      const bool begins_node = branch.rank == kNone;
      const End at = begins_node ? end_ : branch;
      if (at.growth == growth_) {  // its place was not sent yet
        (begins_node ? places_[at.rank].onward : places_[at.rank].within) = rank;
      } else if (at.rank == c_.rank()) {
        of_root.add(rank);
      } else if (headers < Header::kMost && may_grow(at, pieces_left)) {
        header.joins[headers++] = {at.rank, rank};
      } else {
        waiting_[waiting++] = rank;
        continue;
      }
      places_[rank] = {at.rank, kNone, kNone};
      branch = {rank, at.depth + 1, growth_};
      if (begins_node) end_ = branch;
      joined_[joined++] = rank;
    }
    if (headers < Header::kMost) header.joins[headers].at = kNone;
    for (int i = 0; i < joined; ++i) c_.put(joined_[i], bytes_of(places_[joined_[i]]));
    waiting_count_ = waiting, left_ -= joined;
    return joined > 0 ? joined_[0] : kNone;
  }

 private:
  // The last rank of a branch, or of the chain.
  struct End {
    int rank = kNone;
    int depth = 0;  // ranks before it
    int growth = kNone;
  };
  // A header reaches it before the root has sent the last piece. Later, a new chain is as fast.
  static bool may_grow(const End& at, uint64_t pieces_left) { return pieces_left >= static_cast<uint64_t>(at.depth); }
  Comm& c_;
  const Placement& nodes_;
  int left_, waiting_count_ = 0, growth_ = 0;
  End end_;
  std::byte* notices_;
  Place* places_;
  int* waiting_;  // they have arrived, and are in no chain
  int* joined_;
  End* branches_;  // of the nodes; without a rank where the chain has not come to one
};

Task lead(Comm& c, Pieces pieces) {
  GrowingChain chain(c);
  if (!chain.usable()) co_return;
  chain.watch();
  while (chain.left() > 0) {
    if (!chain.has_waiting()) chain.arrived(co_await c.next_landing());
    co_await c.flushed();  // headers are in use until then
    Successors of_root(c, pieces);
    chain.begin();
    const int first = chain.grow(pieces.header(0), pieces.count(), of_root);
    for (uint64_t i = 0; i < pieces.count(); ++i) {
      if (pieces.has_header(i)) {
        // By the time the first has announced memory, the notices of ranks that came with it have landed.
        if (chain.left() > 0 && i == 0) co_await c.ready(first, pieces.part_with(0).size());
        if (chain.left() > 0 && i > 0) co_await c.flushed(kUnderWay);
        if (chain.left() > 0) co_await c.looked();
        chain.grow(pieces.header(i), pieces.count() - i, of_root);
      }
      of_root.pass_on(i);
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
  Successors next(c, pieces);
  if (place->within != kNone) next.add(place->within);
  if (place->onward != kNone) next.add(place->onward);
  uint64_t coming = pieces.announce(c, before);
  for (uint64_t i = 0; i < pieces.count(); ++i) {
    coming -= pieces.bytes(i);
    co_await c.received_from(before, coming);
    if (pieces.has_header(i))
      for (const Header::Join& join : pieces.header(i).joins) {
        if (join.at == kNone) break;
        if (join.at == c.rank()) next.add(join.rank);
      }
    next.pass_on(i);
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
  const int height = std::max(1, s.nodes + s.most_local - 2);
  // A rank between the chain and a branch sends all twice.
  const bool twice = s.nodes > 1 && s.most_local > 1;
  return places + headers_us(s, m) +
         tree_us({s.p, height * 1.0, 1, s.p - 1.0}, m, n, static_cast<double>(s.parameter)) +
         (twice ? m.copies_us(n) : 0);
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
       .about = "Patarasuk, Yuan; chain of those that have arrived; (N + p/N - 3 + n/B) (alpha + B beta) + 3 alpha",
       .parameter = {Parameter::Unit::kBytes, "piece", kLeastPiece, kMostPiece},
       .run = run,
       .choose = choose,
       .cost_us = cost_us,
       .late_us = late_us}};
  return kRows;
}

}  // namespace ibcoll::bcast::pap_chain
