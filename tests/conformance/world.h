// SPDX-License-Identifier: BSD-3-Clause
// Drives a group: polls its ranks, hands events to the test, knows patterns and seeds.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>
#include <vector>

#include "tests/conformance/group.h"

namespace ibcoll::conformance {

// IBCOLL_TEST_SEED, else another one in each run; every failure prints it.
uint64_t test_seed();

// The byte at `offset` of message `id`. Different messages differ in nearly all bytes.
std::byte pattern(uint64_t id, size_t offset);
void fill(std::span<std::byte> memory, uint64_t id);
// Offset of the first byte that differs from the pattern, or memory.size().
size_t first_wrong(std::span<const std::byte> memory, uint64_t id);

// A note that differs from others.
inline Note numbered(uint32_t number, size_t bytes = 0) {
  Note note;
  note.op = number;
  note.bytes = bytes;
  return note;
}

// Memory with guard bytes around, so that a write outside shows.
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t bytes, size_t misalignment = 0);
  std::span<std::byte> bytes() { return {memory_.data() + begin_, size_}; }
  bool guards_intact() const;
  bool untouched() const;                    // neither guards nor inside written since construction
  bool untouched_from(size_t offset) const;  // nor the inside from there on, nor the guard after it

 private:
  static constexpr size_t kGuard = 4096;
  static constexpr std::byte kFill{0xA5};
  std::vector<std::byte> memory_;
  size_t begin_;
  size_t size_;
};

class World {
 public:
  struct Got {  // a copy of an event
    Event::Kind kind;
    int peer;
    Note note;
    std::vector<std::byte> payload;
    uint64_t token;
  };

  explicit World(std::unique_ptr<Group> group) : group_(std::move(group)), got_(size()) {}

  int size() const { return group_->size(); }
  Transport& at(int rank) { return group_->at(rank); }
  // The counter of this name that the rank's transport reports; a test failure where it reports none.
  int64_t counter(int rank, const char* name);
  // Ranks that do not poll.
  void put_to_sleep(int rank) { asleep_.insert(rank); }
  void wake_up(int rank) { asleep_.erase(rank); }

  // Polls every rank that is awake once, keeps copies of the events; the number of events.
  size_t pump();
  // Until `done`, or 20 s of the clock without an event. False: not done.
  bool pump_until(const std::function<bool()>& done);
  // For a while, so that what must not come has the time to come.
  void pump_for(std::chrono::milliseconds duration);
  std::vector<Got>& got(int rank) { return got_[static_cast<size_t>(rank)]; }

  // Repeats with polls in between until accepted. False: 20 s without success.
  bool send(int from, int to, const Note& note, std::span<const std::byte> payload);
  // The same; waits for kSent as well, and takes it out of got(from).
  bool put(int from, int to, const RemoteRegion& region, std::span<const std::byte> source, const Note& note);
  // While the other ranks poll on, as they do in a job: a transport may need its peer to end what is under way.
  void conceal(int rank, int peer, const RemoteRegion& region);
  // The rank's transport ends, while the other ranks poll on. False: these ranks only end together.
  bool leave(int rank);
  // Number of messages from `peer` that `rank` has got.
  size_t messages(int rank, int peer) const;
  bool got_sent(int rank, uint64_t token) const;

 private:
  // In a thread of its own, for a rank that does not poll meanwhile, nor afterwards.
  void beside_others(int rank, const std::function<void()>& work);

  std::unique_ptr<Group> group_;
  std::vector<std::vector<Got>> got_;
  std::set<int> asleep_;
  uint64_t next_token_ = 1u << 30;
};

// Tests that run on every transport.
class TransportTest : public ::testing::TestWithParam<Maker> {
 protected:
  TransportTest();
  // nullptr and a failed assertion when it cannot be made.
  std::unique_ptr<World> make_world(int size);
  uint64_t seed() const { return seed_; }
  std::mt19937_64& random() { return random_; }
  size_t uniform(size_t low, size_t high) { return std::uniform_int_distribution<size_t>(low, high)(random_); }

 private:
  const uint64_t seed_;
  std::mt19937_64 random_;
  ::testing::ScopedTrace trace_;
};

}  // namespace ibcoll::conformance
