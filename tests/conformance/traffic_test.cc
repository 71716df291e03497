// SPDX-License-Identifier: BSD-3-Clause
// [C1] [C2] [C3] [C5] [C8]: random traffic between all pairs; everything arrives once, in order, with its payload.
#include <algorithm>
#include <map>

#include "tests/conformance/world.h"

namespace ibcoll::conformance {
namespace {

constexpr uint16_t kSendKind = 1;
constexpr uint16_t kPutKind = 2;

uint64_t message_id(int from, int to, uint32_t sequence) {
  return static_cast<uint64_t>(from) << 48 | static_cast<uint64_t>(to) << 32 | sequence;
}

// A region that `owner` exposed to `user`; at most one put at a time.
struct Slab {
  std::unique_ptr<GuardedMemory> memory;
  RemoteRegion region;
  bool in_use = false;
};

class Traffic {
 public:
  Traffic(World& world, std::mt19937_64& random, uint32_t per_pair, size_t largest_put)
      : world_(world), random_(random), per_pair_(per_pair), largest_put_(largest_put) {
    for (int to = 0; to < world.size(); ++to) {
      for (int from = 0; from < world.size(); ++from) {
        if (from != to) expose(from, to);
      }
    }
  }

  ~Traffic() {
    for (auto& [pair, slabs] : slabs_) {
      for (Slab& slab : slabs) world_.at(pair.second).conceal(pair.first, slab.region);
    }
  }

  void run() {
    const bool finished = world_.pump_until([&] {
      for (int from = 0; from < world_.size(); ++from) {
        for (int to = 0; to < world_.size(); ++to) {
          if (from != to) step(from, to);
        }
      }
      for (int rank = 0; rank < world_.size(); ++rank) take(rank);
      return ::testing::Test::HasFailure() || complete();
    });
    EXPECT_TRUE(finished) << "the traffic stopped before its end";
    if (::testing::Test::HasFailure()) return;
    world_.pump_for(std::chrono::milliseconds(20));  // for what comes twice
    for (int rank = 0; rank < world_.size(); ++rank) take(rank);
    EXPECT_TRUE(sources_.empty()) << sources_.size() << " puts without kSent";
    for (auto& [pair, slabs] : slabs_) {
      for (Slab& slab : slabs) EXPECT_TRUE(slab.memory->guards_intact());
    }
  }

 private:
  using Pair = std::pair<int, int>;  // from, to

  size_t uniform(size_t low, size_t high) { return std::uniform_int_distribution<size_t>(low, high)(random_); }
  // Small, middling and large alike.
  size_t random_size(size_t largest) {
    size_t cap = largest;
    while (cap > 16 && uniform(0, 2) != 0) cap /= 8;
    return uniform(0, cap);
  }

  void expose(int from, int to) {
    for (int i = 0; i < 3; ++i) {
      Slab slab;
      slab.memory = std::make_unique<GuardedMemory>(uniform(1, largest_put_), uniform(0, 63));
      slab.region = world_.at(to).expose(from, slab.memory->bytes());
      if (slab.region.key != 0) slabs_[{from, to}].push_back(std::move(slab));
    }
  }

  Note next_note(int from, int to, uint16_t kind, size_t bytes) {
    Note note;
    note.epoch = message_id(from, to, sent_[{from, to}]);
    note.op = sent_[{from, to}];
    note.kind = kind;
    note.bytes = bytes;
    note.signature = ~note.op;
    note.completed = note.op * 3;
    note.index = static_cast<uint16_t>(note.op + 7);
    return note;
  }

  // One attempt to send or put what comes next.
  void step(int from, int to) {
    if (sent_[{from, to}] >= per_pair_ || uniform(0, 3) == 0) return;
    std::vector<Slab>& slabs = slabs_[{from, to}];
    const size_t choice = uniform(0, 5);
    if (choice < slabs.size() && !slabs[choice].in_use) return put(from, to, slabs[choice], choice);
    std::vector<std::byte> payload(choice == 5 ? 0 : random_size(world_.at(from).slot_bytes()));
    const Note note = next_note(from, to, kSendKind, payload.size());
    fill(payload, note.epoch);
    if (!world_.at(from).send(to, note, payload)) return;
    fill(payload, ~note.epoch);  // [C5]: the source is ours again
    ++sent_[{from, to}];
  }

  void put(int from, int to, Slab& slab, size_t index) {
    std::vector<std::byte> source(random_size(slab.region.bytes));
    Note note = next_note(from, to, kPutKind, source.size());
    note.index = static_cast<uint16_t>(index);
    fill(source, note.epoch);
    const uint64_t token = note.epoch;
    const PutResult result = world_.at(from).put(to, slab.region, source, note, token);
    if (result == PutResult::kBusy) return;
    slab.in_use = true;
    ++sent_[{from, to}];
    if (result == PutResult::kPending) {
      EXPECT_TRUE(sources_.emplace(token, std::move(source)).second);
    } else {
      fill(source, ~note.epoch);
    }
  }

  void take(int rank) {
    for (const World::Got& got : world_.got(rank)) {
      if (got.kind == Event::Kind::kSent) {
        EXPECT_EQ(sources_.erase(got.token), 1u) << "kSent twice, or for a put that was done";
      } else if (got.kind == Event::Kind::kMessage) {
        take_message(rank, got);
      } else {
        ADD_FAILURE() << "rank " << rank << " lost rank " << got.peer << ": "
                      << std::string(reinterpret_cast<const char*>(got.payload.data()), got.payload.size());
      }
    }
    world_.got(rank).clear();
  }

  void take_message(int rank, const World::Got& got) {
    ASSERT_NE(got.peer, rank);
    ASSERT_TRUE(got.peer >= 0 && got.peer < world_.size());
    const uint32_t expected = received_[{got.peer, rank}]++;
    ASSERT_EQ(got.note.op, expected) << "from " << got.peer << " to " << rank;
    ASSERT_EQ(got.note.epoch, message_id(got.peer, rank, expected));
    ASSERT_EQ(got.note.signature, ~expected);
    ASSERT_EQ(got.note.completed, expected * 3);
    std::span<const std::byte> bytes = got.payload;
    if (got.note.kind == kPutKind) {
      ASSERT_TRUE(got.payload.empty());
      Slab& slab = slabs_[{got.peer, rank}][got.note.index];
      bytes = slab.memory->bytes().first(got.note.bytes);
      slab.in_use = false;
    } else {
      ASSERT_EQ(got.note.index, static_cast<uint16_t>(expected + 7));
    }
    ASSERT_EQ(bytes.size(), got.note.bytes);
    ASSERT_EQ(first_wrong(bytes, got.note.epoch), bytes.size())
        << "kind " << got.note.kind << ", message " << expected << " from " << got.peer << " to " << rank;
  }

  bool complete() {
    for (int from = 0; from < world_.size(); ++from) {
      for (int to = 0; to < world_.size(); ++to) {
        if (from != to && received_[{from, to}] < per_pair_) return false;
      }
    }
    return sources_.empty();
  }

  World& world_;
  std::mt19937_64& random_;
  const uint32_t per_pair_;
  const size_t largest_put_;
  std::map<Pair, std::vector<Slab>> slabs_;
  std::map<Pair, uint32_t> sent_;
  std::map<Pair, uint32_t> received_;
  std::map<uint64_t, std::vector<std::byte>> sources_;  // of puts that are pending
};

using TrafficTest = TransportTest;

TEST_P(TrafficTest, TwoRanksManyMessages) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  Traffic(*world, random(), 3000, 100'000).run();
}

TEST_P(TrafficTest, TwoRanksLargePuts) {
  auto world = make_world(2);
  ASSERT_TRUE(world);
  Traffic(*world, random(), 200, 2'000'000).run();
}

TEST_P(TrafficTest, ThreeRanks) {
  auto world = make_world(3);
  ASSERT_TRUE(world);
  Traffic(*world, random(), 600, 200'000).run();
}

TEST_P(TrafficTest, FiveRanks) {
  auto world = make_world(5);
  ASSERT_TRUE(world);
  Traffic(*world, random(), 200, 200'000).run();
}

INSTANTIATE_TEST_SUITE_P(Transports, TrafficTest, ::testing::ValuesIn(makers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ibcoll::conformance
