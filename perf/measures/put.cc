// SPDX-License-Identifier: BSD-3-Clause
// Two ranks of the transport verbs and nothing above it: what perf/measure verbs puts beside ib_write_lat and
// ib_write_bw.
//
//   ibcoll_put put|message|stream BYTES ITERATIONS
//
// put: ping-pong of puts with their notes; message: of messages through landing slots; half a round trip in
// microseconds. stream: puts one after the other into one region, as many under way as there is credit; MB/s (2^20
// bytes, as ib_write_bw has it) from the first put to the completion of the last. Each rank is bound to a core of its
// own. Prints JSON, with what the transport says of itself. The settings are ibcoll's, IBCOLL_VERBS_NOTIFY for one.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "perf/call_times.h"
#include "perf/measures/cores.h"
#include "runtime/base/json.h"
#include "runtime/verbs/transport.h"

namespace ibcoll::perf {
namespace {

constexpr unsigned kLongestLife = 120;  // seconds
constexpr uint64_t kWarmUp = 20;        // round trips or puts

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "ibcoll_put: {}\n", why);
  std::exit(1);
}

std::unique_ptr<verbs::Transport> open_verbs(int rank, int socket) {
  Result<Config> config = Config::load();
  if (!config.ok()) give_up(config.status().text());
  NetworkParams params;
  params.rank = rank;
  params.size = 2;
  params.config = &*config;
  params.job = static_cast<uint64_t>(rank == 0 ? ::getpid() : ::getppid());
  Result<std::unique_ptr<verbs::Transport>> transport = verbs::Transport::open(params);
  if (!transport.ok()) give_up(transport.status().text());
  const std::vector<std::byte> mine = (*transport)->address();
  std::vector<std::byte> theirs(mine.size());
  if (::write(socket, mine.data(), mine.size()) != static_cast<ssize_t>(mine.size()) ||
      ::recv(socket, theirs.data(), theirs.size(), MSG_WAITALL) != static_cast<ssize_t>(theirs.size()))
    give_up("the other rank is gone");
  const Status status = (*transport)->set_addresses(rank == 0 ? std::vector{mine, theirs} : std::vector{theirs, mine});
  if (!status.ok()) give_up(status.text());
  return std::move(*transport);
}

// One of the first two cores that this process may use; nothing for the second rank where there is only one.
void bind(int rank) {
  const std::vector<int> cores = allowed_cores();
  if (cores.empty()) give_up(std::strerror(errno));
  if (static_cast<size_t>(rank) < cores.size()) bind_to(cores[static_cast<size_t>(rank)]);
}

class Rank {
 public:
  Rank(int rank, std::unique_ptr<verbs::Transport> transport, uint64_t bytes)
      : rank_(rank), transport_(std::move(transport)), source_(bytes, std::byte{1}), landing_(bytes) {}

  // Each tells the other where it may write.
  void meet() {
    mine_ = transport_->expose(1 - rank_, landing_);
    if (mine_.key == 0) give_up("the receive buffer cannot be exposed");
    send(std::as_bytes(std::span(&mine_, 1)));
    wait_for_note();
  }

  void ping_pong(bool by_put, uint64_t iterations) {
    std::vector<double> halves;
    halves.reserve(iterations);
    double begin = now_us();
    for (uint64_t i = 0; i < kWarmUp + iterations; ++i) {
      if (rank_ == 1) wait_for_note();
      by_put ? put() : send(source_);
      if (rank_ == 0) wait_for_note();
      const double end = now_us();
      if (i >= kWarmUp) halves.push_back((end - begin) / 2);
      begin = end;
    }
    while (pending_ > 0) poll();
    const double mean = std::accumulate(halves.begin(), halves.end(), 0.0) / static_cast<double>(halves.size());
    std::nth_element(halves.begin(), halves.begin() + static_cast<ptrdiff_t>(halves.size() / 2), halves.end());
    report({{"median_us", halves[halves.size() / 2]}, {"mean_us", mean}});
  }

  void stream(uint64_t iterations) {
    if (rank_ == 1) {
      for (uint64_t i = 0; i < kWarmUp + iterations; ++i) wait_for_note();
      return send({});
    }
    double begin = 0;
    for (uint64_t i = 0; i < kWarmUp + iterations; ++i) {
      put();
      if (i + 1 != kWarmUp) continue;
      while (pending_ > 0) poll();
      begin = now_us();
    }
    while (pending_ > 0) poll();
    const double seconds = (now_us() - begin) * 1e-6;
    wait_for_note();
    report({{"mb_per_second", static_cast<double>(source_.size() * iterations) / seconds / (1 << 20)}});
  }

  void part() { transport_->conceal(1 - rank_, mine_); }

 private:
  void report(Json figures) const {
    if (rank_ == 1) return;
    figures.set("transport", transport_->describe());
    fmt::print("{}\n", figures.dump());
  }

  void poll() {
    const size_t count = transport_->poll(events_);
    for (size_t i = 0; i < count; ++i) {
      const Event& event = events_[i];
      if (event.kind == Event::Kind::kPeerFailed)
        give_up({reinterpret_cast<const char*>(event.payload.data()), event.payload.size()});
      if (event.kind == Event::Kind::kSent) --pending_;
      if (event.kind != Event::Kind::kMessage) continue;
      ++notes_;
      if (theirs_.key == 0) std::memcpy(&theirs_, event.payload.data(), sizeof theirs_);
    }
  }

  void wait_for_note() {
    while (notes_ == 0) poll();
    --notes_;
  }

  void send(std::span<const std::byte> payload) {
    while (!transport_->send(1 - rank_, Note{}, payload)) poll();
  }

  void put() {
    PutResult result = PutResult::kBusy;
    while ((result = transport_->put(1 - rank_, theirs_, source_, Note{}, 0)) == PutResult::kBusy) poll();
    if (result == PutResult::kPending) ++pending_;
  }

  const int rank_;
  std::unique_ptr<verbs::Transport> transport_;
  std::vector<std::byte> source_, landing_;
  RemoteRegion mine_, theirs_;
  std::array<Event, 32> events_;
  uint64_t pending_ = 0, notes_ = 0;
};

int run(const std::string& what, uint64_t bytes, uint64_t iterations) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) give_up(std::strerror(errno));
  const pid_t child = ::fork();
  if (child < 0) give_up(std::strerror(errno));
  const int rank = child == 0 ? 1 : 0;
  if (rank == 1) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::alarm(kLongestLife);
  bind(rank);
  Rank self(rank, open_verbs(rank, sockets[rank]), bytes);
  self.meet();
  what == "stream" ? self.stream(iterations) : self.ping_pong(what == "put", iterations);
  self.part();
  return 0;
}

}  // namespace
}  // namespace ibcoll::perf

int main(int argc, char** argv) {
  const std::string what = argc == 4 ? argv[1] : "";
  const uint64_t bytes = argc == 4 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const uint64_t iterations = argc == 4 ? std::strtoull(argv[3], nullptr, 10) : 0;
  if ((what != "put" && what != "message" && what != "stream") || bytes == 0 || iterations == 0) {
    fmt::print(stderr, "usage: ibcoll_put put|message|stream BYTES ITERATIONS\n");
    return 2;
  }
  return ibcoll::perf::run(what, bytes, iterations);
}
