// SPDX-License-Identifier: BSD-3-Clause
#include "tests/conformance/world.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "runtime/base/hash.h"
#include "runtime/base/json.h"

namespace ibcoll::conformance {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kStandstill = std::chrono::seconds(20);

uint64_t pattern_word(uint64_t id, size_t word) { return scramble(scramble(id) + word * kGoldenRatio); }

}  // namespace

std::ostream& operator<<(std::ostream& out, const Maker& maker) { return out << maker.name; }

uint64_t test_seed() {
  static const uint64_t seed = [] {
    const char* wish = std::getenv("IBCOLL_TEST_SEED");
    return wish != nullptr && *wish != '\0' ? std::strtoull(wish, nullptr, 0) : std::random_device{}();
  }();
  return seed;
}

std::byte pattern(uint64_t id, size_t offset) {
  return static_cast<std::byte>(pattern_word(id, offset / 8) >> (offset % 8 * 8));
}

void fill(std::span<std::byte> memory, uint64_t id) {
  for (size_t begin = 0; begin < memory.size(); begin += 8) {
    const uint64_t word = pattern_word(id, begin / 8);
    std::memcpy(&memory[begin], &word, std::min<size_t>(8, memory.size() - begin));
  }
}

size_t first_wrong(std::span<const std::byte> memory, uint64_t id) {
  for (size_t begin = 0; begin < memory.size(); begin += 8) {
    const uint64_t word = pattern_word(id, begin / 8);
    const size_t bytes = std::min<size_t>(8, memory.size() - begin);
    if (std::memcmp(&memory[begin], &word, bytes) == 0) continue;
    for (size_t i = begin;; ++i)
      if (memory[i] != pattern(id, i)) return i;
  }
  return memory.size();
}

GuardedMemory::GuardedMemory(size_t bytes, size_t misalignment)
    : memory_(bytes + 2 * kGuard + misalignment, kFill), begin_(kGuard + misalignment), size_(bytes) {}

bool GuardedMemory::untouched_from(size_t offset) const {
  return std::all_of(memory_.begin() + static_cast<std::ptrdiff_t>(begin_ + offset), memory_.end(),
                     [](std::byte b) { return b == kFill; });
}

bool GuardedMemory::guards_intact() const {
  const auto intact = [](std::byte b) { return b == kFill; };
  return std::all_of(memory_.begin(), memory_.begin() + static_cast<std::ptrdiff_t>(begin_), intact) &&
         std::all_of(memory_.begin() + static_cast<std::ptrdiff_t>(begin_ + size_), memory_.end(), intact);
}

bool GuardedMemory::untouched() const {
  return std::all_of(memory_.begin(), memory_.end(), [](std::byte b) { return b == kFill; });
}

size_t World::pump() {
  size_t total = 0;
  for (int rank = 0; rank < size(); ++rank) {
    if (asleep_.contains(rank)) continue;
    std::array<Event, 16> events;
    const size_t count = at(rank).poll(events);
    for (size_t i = 0; i < count; ++i) {
      const Event& event = events[i];
      got(rank).push_back(
          {event.kind, event.peer, event.note, {event.payload.begin(), event.payload.end()}, event.token});
    }
    total += count;
  }
  if (total == 0) group_->idle();
  return total;
}

bool World::pump_until(const std::function<bool()>& done) {
  auto deadline = Clock::now() + kStandstill;
  while (!done()) {
    if (pump() > 0) {
      deadline = Clock::now() + kStandstill;
    } else if (Clock::now() > deadline) {
      return false;
    }
  }
  return true;
}

void World::pump_for(std::chrono::milliseconds duration) {
  const auto end = Clock::now() + duration;
  do {
    pump();
  } while (Clock::now() < end);
}

bool World::send(int from, int to, const Note& note, std::span<const std::byte> payload) {
  return pump_until([&] { return at(from).send(to, note, payload); });
}

bool World::put(int from, int to, const RemoteRegion& region, std::span<const std::byte> source, const Note& note) {
  const uint64_t token = next_token_++;
  PutResult result = PutResult::kBusy;
  const bool accepted = pump_until([&] {
    result = at(from).put(to, region, source, note, token);
    return result != PutResult::kBusy;
  });
  if (!accepted || result == PutResult::kDone) return accepted;
  if (!pump_until([&] { return got_sent(from, token); })) return false;
  std::erase_if(got(from), [&](const Got& got) { return got.kind == Event::Kind::kSent && got.token == token; });
  return true;
}

void World::conceal(int rank, int peer, const RemoteRegion& region) {
  if (!group_->threads()) {
    EXPECT_TRUE(pump_until([&] { return at(rank).conceal(peer, region); }));
    return;
  }
  beside_others(rank, [&] {
    while (!at(rank).conceal(peer, region)) {
    }
  });
  wake_up(rank);
}

bool World::leave(int rank) {
  bool left = false;
  beside_others(rank, [&] { left = group_->leave(rank); });
  return left;
}

void World::beside_others(int rank, const std::function<void()>& work) {
  std::atomic<bool> done{false};
  put_to_sleep(rank);
  std::thread thread([&] {
    work();
    done = true;
  });
  while (!done) pump();
  thread.join();
}

int64_t World::counter(int rank, const char* name) {
  const Json state = at(rank).describe();
  EXPECT_TRUE(state.contains(name)) << name << ": " << state.dump();
  return std::atoll(state.text(name).c_str());
}

size_t World::messages(int rank, int peer) const {
  const std::vector<Got>& all = got_[static_cast<size_t>(rank)];
  return static_cast<size_t>(std::count_if(
      all.begin(), all.end(), [&](const Got& got) { return got.kind == Event::Kind::kMessage && got.peer == peer; }));
}

bool World::got_sent(int rank, uint64_t token) const {
  const std::vector<Got>& all = got_[static_cast<size_t>(rank)];
  return std::any_of(all.begin(), all.end(),
                     [&](const Got& got) { return got.kind == Event::Kind::kSent && got.token == token; });
}

TransportTest::TransportTest()
    : seed_(test_seed()),
      random_(seed_),
      trace_(__FILE__, __LINE__, "repeat with IBCOLL_TEST_SEED=" + std::to_string(seed_)) {}

std::unique_ptr<World> TransportTest::make_world(int size) {
  std::unique_ptr<Group> group = GetParam().make(size, seed_);
  if (group == nullptr) {
    ADD_FAILURE() << "no group of " << size << " ranks of " << GetParam();
    return nullptr;
  }
  return std::make_unique<World>(std::move(group));
}

}  // namespace ibcoll::conformance
