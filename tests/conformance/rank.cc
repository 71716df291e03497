// SPDX-License-Identifier: BSD-3-Clause
// One rank as a process: ibcoll_conformance_rank TRANSPORT RANK SIZE SCENARIO JOB, started by Processes. Socket 3 leads
// to the test. Scenarios:
//   chat      sends to all and expects of all, without end; says "ready" when it has heard from everybody
//   listen    rank 0 sends one message to each and falls silent; the others only listen; "ready" likewise
//   puts      as chat, and large puts all the time
//   farewell  rank 0 sends 50 messages of 3000 bytes to each and leaves at once; the others begin to poll 200 ms later
//   desertion rank 0 puts 256 MB to each and leaves at once; the others begin to poll 5 s later, and are "ready" when
//   all came
// Said at any time: "lost N"; asked "refuses N": "yes" when send and put to N are refused, and all puts to N that were
// pending have had their kSent; asked "alive": "yes" when messages have come from all ranks that were not lost, since
// the question; asked "stop": "stopped", and silence; asked "end": leaves.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/shm/handover.h"
#include "runtime/shm/segment.h"
#include "runtime/shm/transport.h"
#include "tests/conformance/refuse_system_call.h"
#ifdef IBCOLL_TEST_UCX
#include "runtime/ucx/transport.h"
#endif
#ifdef IBCOLL_TEST_VERBS
#include "runtime/verbs/transport.h"
#endif

namespace ibcoll::conformance {
namespace {

constexpr int kSocket = 3;
constexpr unsigned kLongestLife = 120;       // seconds
constexpr size_t kPutBytes = 4 << 20;        // a peer that is killed hardly ever has all of one
constexpr size_t kLastPutBytes = 256 << 20;  // more than sockets hold

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

void say(const std::string& word) {
  if (::send(kSocket, word.data(), word.size(), MSG_NOSIGNAL) < 0) give_up("the test is gone");
}

std::string hear(int flags) {
  std::string word(64 * 1024, '\0');
  const ssize_t length = ::recv(kSocket, word.data(), word.size(), flags);
  if (length == 0) give_up("the test is gone");
  word.resize(length < 0 ? 0 : static_cast<size_t>(length));
  return word;
}

std::vector<std::string> exchange(const std::string& mine) {
  say(mine);
  const std::string all = hear(0);
  std::vector<std::string> words;
  for (size_t at = 0; at < all.size();) {
    const size_t colon = all.find(':', at);
    const size_t length = std::stoul(all.substr(at, colon - at));
    words.push_back(all.substr(colon + 1, length));
    at = colon + 1 + length;
  }
  return words;
}

struct Options {
  std::string transport;
  int rank;
  int size;
  std::string scenario;
  std::string job;
};

std::unique_ptr<Transport> open_shm(const Options& options, bool single_copy) {
  const std::string name = "ibcoll-conformance-" + options.job;
  constexpr uint64_t kRing = 64 * 1024, kKey = 1;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::shared_ptr<shm::Segment> segment;
  UniqueFd offer;
  if (options.rank == 0) {
    Result<std::unique_ptr<shm::Segment>> made = shm::Segment::create(options.size, kRing);
    if (!made.ok()) give_up(made.status().text());
    segment = std::move(*made);
    Result<UniqueFd> listener = shm::offer_segment(name, options.size);
    if (!listener.ok()) give_up(listener.status().text());
    offer = std::move(*listener);
  }
  std::vector<int> jobs(static_cast<size_t>(options.size));
  std::iota(jobs.begin(), jobs.end(), 0);
  exchange("offered");
  if (options.rank == 0) {
    Status status = shm::hand_over(*segment, std::move(offer), kKey, jobs, deadline);
    if (!status.ok()) give_up(status.text());
  } else {
    Result<std::unique_ptr<shm::Segment>> got =
        shm::receive_segment(name, kKey, options.rank, options.size, kRing, deadline);
    if (!got.ok()) give_up(got.status().text());
    segment = std::move(*got);
  }
  auto transport = std::make_unique<shm::Transport>(segment, jobs, options.rank, single_copy);
  exchange("constructed");
  if (Status status = transport->node().probe(); !status.ok()) give_up(status.text());
  exchange("probed");
  return transport;
}

// A network transport: one that has an address, and wants those of the others.
template <typename Network, typename Params>
std::unique_ptr<Transport> open_network(const std::string& setting, const Options& options, Params params) {
  const char* environment[] = {setting.c_str(), nullptr};
  Result<Config> config = Config::load_from(environment);
  if (!config.ok()) give_up(config.status().text());
  params.rank = options.rank;
  params.size = options.size;
  params.job = std::stoull(options.job);
  params.config = &*config;
  Result<std::unique_ptr<Network>> transport = Network::open(params);
  if (!transport.ok()) give_up(transport.status().text());
  const std::vector<std::byte> mine = (*transport)->address();
  std::vector<std::vector<std::byte>> addresses;
  for (const std::string& text : exchange({reinterpret_cast<const char*>(mine.data()), mine.size()})) {
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    addresses.emplace_back(bytes, bytes + text.size());
  }
  if (Status status = (*transport)->set_addresses(std::move(addresses)); !status.ok()) give_up(status.text());
  exchange("connected");
  exchange("ready");
  return std::move(*transport);
}

std::unique_ptr<Transport> open(const Options& options) {
#ifdef IBCOLL_TEST_UCX
  NetworkParams ucx;
  ucx.local_job = true;
  if (options.transport == "ucx_tcp") return open_network<ucx::Transport>("IBCOLL_UCX_TLS=tcp", options, ucx);
  if (options.transport == "ucx_rdma") return open_network<ucx::Transport>("IBCOLL_UCX_TLS=rc,ud", options, ucx);
#endif
#ifdef IBCOLL_TEST_VERBS
  if (options.transport == "verbs_imm")
    return open_network<verbs::Transport>("IBCOLL_VERBS_NOTIFY=imm", options, NetworkParams());
  if (options.transport == "verbs_memory")
    return open_network<verbs::Transport>("IBCOLL_VERBS_NOTIFY=memory", options, NetworkParams());
  if (options.transport == "verbs_rdmacm")
    return open_network<verbs::Transport>("IBCOLL_VERBS_CONNECT=rdmacm", options, NetworkParams());
#endif
  if (options.transport == "shm") return open_shm(options, true);
  if (options.transport == "shm_copy") return open_shm(options, false);
  if (options.transport == "shm_no_pidfd") {
    refuse_system_call(SYS_pidfd_open);
    return open_shm(options, true);
  }
  if (options.transport == "shm_no_writev") {
    refuse_system_call(SYS_process_vm_writev);
    return open_shm(options, true);
  }
  give_up("no transport " + options.transport);
}

class Scenario {
 public:
  Scenario(const Options& options, Transport& transport)
      : options_(options), transport_(transport), heard_(static_cast<size_t>(options.size)) {
    heard_[static_cast<size_t>(options.rank)] = 1;
  }

  void run() {
    if (options_.scenario == "farewell" && options_.rank == 0) return farewell();
    if (options_.scenario == "farewell") ::usleep(200'000);
    if (options_.scenario == "listen" && options_.rank == 0) talk_to_all(0);
    if (options_.scenario == "puts") expose(kPutBytes);
    if (options_.scenario == "desertion") {
      if (options_.rank == 0) return desert();
      expose(kLastPutBytes);
      while (heard_[0] == 0) take_events();
      heard_[0] = 0;
      obey(hear(0));  // once rank 0 has ended
    }
    auto next_check = std::chrono::steady_clock::now();
    for (int pass = 0; !ended_; ++pass) {
      if (talks() && !stopped_ && pass % 8 == 0) talk_to_all(64);
      take_events();
      if (std::chrono::steady_clock::now() >= next_check) {
        transport_.check_peers();
        next_check = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
      }
      if (pass % 64 == 0) obey(hear(MSG_DONTWAIT));
      say_when_ready();
      if (asked_alive_ && all_heard(1)) {
        asked_alive_ = false;
        say("yes");
      }
    }
  }

 private:
  bool talks() const { return options_.scenario == "chat" || options_.scenario == "puts"; }
  bool is_peer(int rank) const { return rank != options_.rank && !lost_.contains(rank); }

  void say_when_ready() {
    if (ready_ || !all_heard(options_.scenario == "farewell" ? 50 : 1)) return;
    ready_ = true;
    say("ready");
  }

  // Ranks that only listen get messages from rank 0 alone; a farewell is rank 0's.
  bool all_heard(int count) const {
    if (!talks() && options_.rank == 0) return true;
    const int last = talks() ? options_.size - 1 : 0;
    for (int rank = 0; rank <= last; ++rank) {
      if (is_peer(rank) && heard_[static_cast<size_t>(rank)] < count) return false;
    }
    return true;
  }

  void talk_to_all(size_t bytes) {
    for (int rank = 0; rank < options_.size; ++rank) {
      if (!is_peer(rank)) continue;
      transport_.send(rank, Note{}, std::span(payload_).first(bytes));
      const auto region = regions_.find(rank);
      if (region == regions_.end() || putting_.contains(rank)) continue;
      const auto token = static_cast<uint64_t>(rank);
      if (transport_.put(rank, region->second, source_, Note{}, token) == PutResult::kPending) putting_.insert(rank);
    }
  }

  // Everybody tells everybody else where to put; a rank's own region goes out in a message's payload.
  void expose(size_t bytes) {
    memory_.resize(static_cast<size_t>(options_.size));
    source_.resize(bytes);
    for (int rank = 0; rank < options_.size; ++rank) {
      if (rank == options_.rank) continue;
      memory_[static_cast<size_t>(rank)].resize(bytes);
      const RemoteRegion region = transport_.expose(rank, memory_[static_cast<size_t>(rank)]);
      Note note;
      note.kind = 1;
      while (!transport_.send(rank, note, std::as_bytes(std::span(&region, 1)))) take_events();
    }
  }

  void take_events() {
    std::array<Event, 16> events;
    const size_t count = transport_.poll(events);
    for (size_t i = 0; i < count; ++i) take(events[i]);
    if (count == 0) ::usleep(50);
  }

  void take(const Event& event) {
    if (event.kind == Event::Kind::kPeerFailed) {
      say_when_ready();  // one poll() may bring the last words and the end
      lost_.insert(event.peer);
      say("lost " + std::to_string(event.peer));
    } else if (event.kind == Event::Kind::kSent) {
      putting_.erase(static_cast<int>(event.token));
    } else {
      ++heard_[static_cast<size_t>(event.peer)];
      if (event.note.kind == 1) std::memcpy(&regions_[event.peer], event.payload.data(), sizeof(RemoteRegion));
    }
  }

  void obey(const std::string& word) {
    if (word == "stop") {
      stopped_ = true;
      say("stopped");
    } else if (word == "end") {
      ended_ = true;
    } else if (word == "alive") {
      for (int& count : heard_) count = 0;
      asked_alive_ = true;
    } else if (word.starts_with("refuses ")) {
      const int peer = std::stoi(word.substr(8));
      bool refused = true;
      for (int i = 0; i < 50; ++i) {
        refused = refused && !transport_.send(peer, Note{}, {});
        const RemoteRegion region{0x1000, 8, 1};
        refused = refused && transport_.put(peer, region, payload_, Note{}, 0) == PutResult::kBusy;
        take_events();
      }
      while (putting_.contains(peer)) take_events();  // the test waits for a while only
      say(refused ? "yes" : "no");
    }
  }

  void farewell() {
    std::vector<std::byte> words(3000);
    for (int i = 0; i < 50; ++i) {
      for (int rank = 1; rank < options_.size; ++rank) {
        while (!transport_.send(rank, Note{}, words)) take_events();
      }
    }
    say("ready");
  }

  void desert() {
    source_.resize(kLastPutBytes);
    while (regions_.size() + 1 < static_cast<size_t>(options_.size)) take_events();
    for (const auto& [rank, region] : regions_)  // it takes no more from then on
      while (!transport_.send(rank, Note{}, {})) take_events();
    for (const auto& [rank, region] : regions_)
      while (transport_.put(rank, region, source_, Note{}, 0) == PutResult::kBusy) take_events();
  }

  const Options& options_;
  Transport& transport_;
  std::vector<int> heard_;
  std::set<int> lost_;
  std::set<int> putting_;
  std::map<int, RemoteRegion> regions_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::byte> source_;
  std::array<std::byte, 64> payload_{};
  bool ready_ = false;
  bool stopped_ = false;
  bool ended_ = false;
  bool asked_alive_ = false;
};

}  // namespace
}  // namespace ibcoll::conformance

int main(int argc, char** argv) {
  using namespace ibcoll::conformance;
  if (argc != 6) give_up("started by ibcoll_conformance_tests, not by hand");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::alarm(kLongestLife);
  if (std::getenv("IBCOLL_TEST_VERBOSE")) ibcoll::set_log_level(ibcoll::LogLevel::kDebug);
  const Options options{argv[1], std::atoi(argv[2]), std::atoi(argv[3]), argv[4], argv[5]};
  std::unique_ptr<ibcoll::Transport> transport = open(options);
  {
    Scenario scenario(options, *transport);
    scenario.run();
    transport.reset();
  }
  return 0;
}
