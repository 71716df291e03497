// SPDX-License-Identifier: BSD-3-Clause
// Engines of one process on a wire that the test holds in its hands: it can be full, late, or lose a rank.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/collectives/framework/arguments.h"
#include "runtime/collectives/framework/registry.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/request.h"
#include "runtime/engine/team.h"

namespace ibcoll {

struct Letter {
  int from;
  Note note;
  std::vector<std::byte> payload;
  bool failure = false;
  uint64_t put_done = 0;  // the token of a put whose source is reusable; of a failure: why the rank cannot be reached
};

// The state that all engines share: the time, and what is under way to each.
struct Wire {
  explicit Wire(int ranks) : boxes(static_cast<size_t>(ranks)), dead(static_cast<size_t>(ranks), false) {}
  Time now = 1'000'000;
  bool full = false;
  bool writing = false;        // peers are in the middle of their puts
  bool no_memory = false;      // to end a put
  bool slow = false;           // puts are accepted, and read their sources until the test says that they have ended
  bool refuses = false;        // the kernel lets no rank write to another's memory any more
  std::vector<uint64_t> puts;  // tokens of these
  std::vector<std::deque<Letter>> boxes;
  std::vector<bool> dead;
  std::vector<uint16_t> kinds;  // of all notes, in the order of sending
  bool line = false;            // a rank is connected with the ranks before and after it only
  int begun = 0;                // connections between others
};

class WireTransport : public Transport {
 public:
  WireTransport(Wire& wire, int rank) : wire_(wire), rank_(rank) {}
  const char* name() const override { return "wire"; }
  size_t slot_bytes() const override { return 4096; }
  bool send(int peer, const Note& note, std::span<const std::byte> payload) override {
    if (wire_.full || most_messages == 0 || wire_.dead[static_cast<size_t>(peer)]) return false;
    --most_messages;
    wire_.begun += would_connect(peer);
    wire_.kinds.push_back(note.kind);
    wire_.boxes[static_cast<size_t>(peer)].push_back({rank_, note, {payload.begin(), payload.end()}});
    return true;
  }
  bool would_connect(int peer) const override { return wire_.line && std::abs(peer - rank_) > 1; }
  RemoteRegion expose(int, std::span<std::byte> memory) override {
    return {0, memory.size(), wire_.writing || wire_.slow || wire_.refuses ? 1u : 0u};
  }
  bool conceal(int, const RemoteRegion&) override {
    if (wire_.no_memory) throw std::bad_alloc();
    return !wire_.writing;
  }
  PutResult put(int, const RemoteRegion&, std::span<const std::byte>, const Note&, uint64_t token) override {
    if (wire_.refuses) return PutResult::kRefused;
    if (!wire_.slow) return PutResult::kBusy;
    wire_.puts.push_back(token);
    return PutResult::kPending;
  }
  void want_back(int) override { ++wanted_back; }
  size_t poll(std::span<Event> events) override {
    std::deque<Letter>& box = wire_.boxes[static_cast<size_t>(rank_)];
    read_.clear();
    while (read_.size() < events.size() && !box.empty()) {
      read_.push_back(std::move(box.front()));
      box.pop_front();
    }
    for (size_t i = 0; i < read_.size(); ++i) {
      const Letter& letter = read_[i];
      const Event::Kind kind = letter.failure    ? Event::Kind::kPeerFailed
                               : letter.put_done ? Event::Kind::kSent
                                                 : Event::Kind::kMessage;
      events[i] = {kind, letter.from, letter.note, letter.payload, letter.put_done};
    }
    return read_.size();
  }
  void check_peers() override { ++checks; }
  Time now() const override { return wire_.now; }
  LinkModel model() const override { return {}; }
  Json describe() const override { return {}; }

  uint64_t most_messages = ~uint64_t{0};  // that it takes from now on
  int checks = 0;
  int wanted_back = 0;

 private:
  Wire& wire_;
  int rank_;
  std::deque<Letter> read_;
};

class EngineTest : public testing::Test {
 protected:
  static constexpr int kRanks = 3;

  void SetUp() override {
    for (int r = 0; r < kRanks; ++r) {
      transports_.push_back(std::make_unique<WireTransport>(wire_, r));
      std::vector<Transport*> route(kRanks, transports_.back().get());
      route[static_cast<size_t>(r)] = nullptr;
      engines_.push_back(std::make_unique<Engine>(r, route, limits_));
      teams_.push_back(make_team(r, 1));
    }
  }
  // Each rank on a node of its own; with a window: all on one.
  std::unique_ptr<Team> make_team(int rank, uint64_t epoch, std::unique_ptr<NodeWindow> window = nullptr) {
    const std::vector<int> own_nodes = {0, 1, 2}, one_node(kRanks, 0);
    const Placement placement({0, 1, 2}, window ? one_node : own_nodes);
    return std::make_unique<Team>(*engines_[static_cast<size_t>(rank)], epoch, placement, rank, std::move(window));
  }
  // An allgather (ring) of `bytes` bytes per rank. Its data are the rank and the round.
  struct Call {
    std::vector<uint8_t> send, recv;
    std::unique_ptr<Request> request;
    bool right(uint8_t round) const {
      for (size_t i = 0; i < recv.size(); ++i)
        if (recv[i] != 10 * (i / send.size()) + round) return false;
      return true;
    }
  };
  std::unique_ptr<Call> make_call(Team& team, size_t bytes, const char* algorithm = "ring", uint8_t round = 1) {
    auto call = std::make_unique<Call>();
    call->send.assign(bytes, static_cast<uint8_t>(10 * team.rank() + round));
    call->recv.assign(bytes * kRanks, 0xFF);
    Args args;
    args.collective = IBCOLL_ALLGATHER;
    args.bytes = bytes;
    args.send.base = reinterpret_cast<std::byte*>(call->send.data());
    args.recv = {reinterpret_cast<std::byte*>(call->recv.data()), bytes, nullptr, nullptr};
    const uint32_t signature = call_signature(args, algorithm, IBCOLL_SCHEME_AUTO, kRanks);
    call->request = std::make_unique<Request>(team, args, Choice{find_algorithm(IBCOLL_ALLGATHER, algorithm)},
                                              IBCOLL_SCHEME_AUTO, signature);
    return call;
  }
  std::unique_ptr<Call> make_bcast(Team& team, size_t bytes, int root, const char* algorithm = "binomial",
                                   uint64_t parameter = 0) {
    auto call = std::make_unique<Call>();
    call->recv.assign(bytes, 0xFF);
    Args args;
    args.collective = IBCOLL_BCAST;
    args.bytes = bytes;
    args.root = root;
    args.recv.base = reinterpret_cast<std::byte*>(call->recv.data());
    args.parameter = parameter;
    const uint32_t signature = call_signature(args, algorithm, IBCOLL_SCHEME_AUTO, kRanks);
    call->request = std::make_unique<Request>(team, args, Choice{find_algorithm(IBCOLL_BCAST, algorithm), parameter},
                                              IBCOLL_SCHEME_AUTO, signature);
    return call;
  }
  Team& team(int rank) { return *teams_[static_cast<size_t>(rank)]; }
  void progress(int rounds = 50) {
    for (int i = 0; i < rounds; ++i)
      for (auto& engine : engines_) engine->progress();
  }
  // Rounds with time going by, as a rank that waits lets it.
  void wait_seconds(int seconds) {
    for (int i = 0; i < 4 * seconds; ++i) {
      wire_.now += 250'000'000;
      for (auto& engine : engines_) engine->check();
      progress();
    }
  }
  void lose(int rank) {
    wire_.dead[static_cast<size_t>(rank)] = true;
    for (int r = 0; r < kRanks; ++r)
      if (r != rank) wire_.boxes[static_cast<size_t>(r)].push_back({rank, {}, text("it fell"), true});
  }
  static std::vector<std::byte> text(const char* words) {
    const auto bytes = std::as_bytes(std::span(words, std::strlen(words)));
    return {bytes.begin(), bytes.end()};
  }

  Wire wire_{kRanks};
  EngineLimits limits_;
  std::vector<std::unique_ptr<WireTransport>> transports_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<std::unique_ptr<Team>> teams_;
};

// One collective of rank 0, of which a test is the algorithm, and rank 1.
class ExchangeTest : public EngineTest {
 protected:
  static constexpr uint32_t kOp = 1, kSignature = 7;

  ExchangeTest() {
    limits_.eager_bytes = 1000;
    limits_.eager_ahead = 6;
    limits_.spill_bytes = 2 * 30'000;  // shared by the two other ranks
  }
  static Note note(NoteKind kind, uint64_t bytes) {
    return {1, bytes, kOp, kSignature, 0, static_cast<uint16_t>(kind), 0};
  }
  void start(Exchange& exchange) { exchange.reset(kOp, IBCOLL_SCHEME_AUTO, false); }
  void put(Exchange& exchange, uint64_t bytes) { exchange.outgoing().put(1, ConstBytes(memory_).first(bytes), bytes); }
  // Rank 1 has memory for a message, to which no other rank may write.
  void advertise(Exchange& exchange, uint64_t bytes, uint16_t not_advertised = 0) {
    const RemoteRegion none;
    Note advertisement = note(NoteKind::kAnnounce, bytes);
    advertisement.index = not_advertised;
    exchange.on_note(1, advertisement, std::as_bytes(std::span(&none, 1)));
  }
  void SetUpAgain() {
    teams_.clear();
    engines_.clear();
    transports_.clear();
    wire_ = Wire(kRanks);
    SetUp();
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(100'000);
};

}  // namespace ibcoll
