// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "bootstrap/job_secret.h"
#include "bootstrap/socket_address.h"

namespace ibcoll {
namespace {

using namespace std::chrono_literals;
using rendezvous::FrameHeader;
using rendezvous::Kind;
using Clock = TcpBootstrap::Clock;

constexpr auto kJoinTimeout = 30s;  // for the launcher's part of the handshake
constexpr auto kFirstPause = 20ms;  // before the next attempt to join when one was dropped; doubles each time
constexpr auto kLongestPause = 640ms;
constexpr int kMostDrops = 14;  // within 6 to 12 s where each comes at once
// TCP itself repeats a request after 1, 3 and 7 s, which is too late if a flood fills the launcher's queue.
constexpr auto kFirstConnectTimeout = 250ms;
constexpr auto kLongestConnectTimeout = 2000ms;
constexpr uint64_t kMaxNews = rendezvous::kMaxGathered;  // bytes: a verdict has the offers of all ranks
constexpr auto kAnswerTimeout = 5s;                      // for its list of missing ranks

Clock::time_point after(double seconds) {
  constexpr double kForever = 1e9;  // 31 years; keeps the sum inside the clock's range
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::clamp(seconds, 0.0, kForever)));
}

Result<int> number_of(const char* variable, int lowest, int highest) {
  const char* text = std::getenv(variable);
  int number = 0;
  if (text != nullptr) {
    const char* end = text + std::strlen(text);
    const auto [rest, reason] = std::from_chars(text, end, number);
    if (reason == std::errc() && rest == end && number >= lowest && number <= highest) return number;
  }
  return error(IBCOLL_ERR_BOOTSTRAP, "{}='{}': expected a number from {} to {}; ibcoll_run sets it, leave it alone",
               variable, text == nullptr ? "" : text, lowest, highest);
}

std::string text_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

// A process that was forked from this one has another number.
uint64_t number_of_this_process() {
  static std::mutex mutex;
  static pid_t owner = 0;
  static uint64_t number = 0;
  const std::lock_guard lock(mutex);
  if (owner != ::getpid()) {
    uint64_t random = 0;  // without random bits the pid distinguishes most processes
    (void)rendezvous::fill_random(std::as_writable_bytes(std::span(&random, 1)));
    owner = ::getpid();
    number = rendezvous::process_number(owner, random);
  }
  return number;
}

template <typename T>
std::span<const std::byte> bytes_of(const T& object) {
  return std::as_bytes(std::span(&object, 1));
}

template <typename T>
std::span<std::byte> writable_bytes_of(T& object) {
  return std::as_writable_bytes(std::span(&object, 1));
}

}  // namespace

bool TcpBootstrap::available() { return std::getenv(rendezvous::kRankVariable) != nullptr; }

Result<std::unique_ptr<TcpBootstrap>> TcpBootstrap::join(double exchange_seconds) {
  std::unique_ptr<TcpBootstrap> bootstrap(new TcpBootstrap);
  bootstrap->exchange_seconds_ = exchange_seconds;
  if (Status status = bootstrap->read_environment(); !status.ok()) return status;
  const Result<rendezvous::Secret> secret = job_secret();
  if (!secret.ok()) return error(IBCOLL_ERR_BOOTSTRAP, "{}: {}", bootstrap->own_name(), secret.status().text());
  // A launcher that is flooded with connections may drop one of a rank before it reads from it, or not accept it.
  const Clock::time_point deadline = std::min(Clock::now() + kJoinTimeout, after(exchange_seconds));
  auto pause = kFirstPause;
  auto connect_timeout = kFirstConnectTimeout;
  for (int drops = 0;;) {
    Status status = bootstrap->connect(std::min(deadline, Clock::now() + connect_timeout));
    if (status.code() == IBCOLL_ERR_TIMEOUT && Clock::now() < deadline) {
      connect_timeout = std::min(2 * connect_timeout, kLongestConnectTimeout);
      continue;
    }
    bool dropped = false;
    if (status.ok()) status = bootstrap->prove(secret.value(), deadline, dropped);
    if (status.ok()) return bootstrap;
    if (!dropped || ++drops == kMostDrops || Clock::now() + pause >= deadline) return status;
    std::this_thread::sleep_for(pause + pause * (bootstrap->rank_ % 16) / 16);  // not all ranks at once
    pause = std::min(2 * pause, kLongestPause);
  }
}

TcpBootstrap::~TcpBootstrap() {
  const FrameHeader goodbye{Kind::kGoodbye, 0};
  if (socket_) (void)::send(socket_.get(), &goodbye, sizeof(goodbye), MSG_NOSIGNAL | MSG_DONTWAIT);
}

Status TcpBootstrap::read_environment() {
  const Result<int> size = number_of(rendezvous::kSizeVariable, 1, rendezvous::kMaxRanks);
  if (!size.ok()) return size.status();
  size_ = size.value();
  const Result<int> rank = number_of(rendezvous::kRankVariable, 0, size_ - 1);
  if (!rank.ok()) return rank.status();
  rank_ = rank.value();
  host_ = text_of(rendezvous::kHostVariable);
  node_ = text_of(rendezvous::kNodeVariable);
  local_job_ = text_of(rendezvous::kLocalVariable) == "1";
  address_ = text_of(rendezvous::kAddressVariable);
  return {};
}

std::string TcpBootstrap::own_name() const { return fmt::format("rank {} on host {}", rank_, host_); }

Status TcpBootstrap::connect(Clock::time_point deadline) {
  const Result<SocketAddress> address = parse_socket_address(address_);
  if (!address.ok()) {
    return error(IBCOLL_ERR_BOOTSTRAP, "{}: {}: {}", own_name(), rendezvous::kAddressVariable, address.status().text());
  }
  socket_.reset(::socket(address.value().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) return error(IBCOLL_ERR_SYSTEM, "{}: socket: {}", own_name(), std::strerror(errno));
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  if (::connect(socket_.get(), address.value().get(), address.value().length) == 0) return {};
  if (errno != EINPROGRESS) return lost("connect", errno);
  if (Status status = wait(POLLOUT, deadline); !status.ok()) return status;
  int reason = 0;
  socklen_t length = sizeof(reason);
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &reason, &length);
  return reason == 0 ? Status() : lost("connect", reason);
}

// `dropped`: the connection was closed by the other side, which may not have heard us.
Status TcpBootstrap::prove(const rendezvous::Secret& secret, Clock::time_point deadline, bool& dropped) {
  rendezvous::Nonce server_nonce;
  const auto heard = [&](Status status) {
    dropped = status.code() == IBCOLL_ERR_BOOTSTRAP;
    return status;
  };
  if (Status status = heard(receive(server_nonce, deadline)); !status.ok()) return status;
  rendezvous::Claim claim{};
  claim.rank = static_cast<uint32_t>(rank_);
  claim.size = static_cast<uint32_t>(size_);
  claim.process = number_of_this_process();
  if (Status status = rendezvous::fill_random(claim.nonce); !status.ok()) {
    return error(status.code(), "{}: {}", own_name(), status.text());
  }
  const Result<rendezvous::Tag> mine = rendezvous::client_tag(secret, server_nonce, claim);
  const Result<rendezvous::Tag> expected = rendezvous::server_tag(secret, server_nonce, claim);
  if (!mine.ok() || !expected.ok()) {
    return error(IBCOLL_ERR_BOOTSTRAP, "{}: {}", own_name(), (mine.ok() ? expected : mine).status().text());
  }
  claim.tag = mine.value();
  if (Status status = heard(send(bytes_of(claim), deadline)); !status.ok()) return status;
  rendezvous::Tag answer;
  if (Status status = heard(receive(answer, deadline)); !status.ok()) return status;
  if (!rendezvous::equal_in_constant_time(answer, expected.value())) {
    return error(IBCOLL_ERR_BOOTSTRAP, "{}: the program that listens at {} does not know the secret of this job",
                 own_name(), address_);
  }
  return receive_admission(deadline);
}

Status TcpBootstrap::receive_admission(Clock::time_point deadline) {
  FrameHeader header;
  if (Status status = receive(writable_bytes_of(header), deadline); !status.ok()) return status;
  if (header.kind == Kind::kAdmitted && header.length <= rendezvous::kKeepsGoing.size()) {
    const Result<std::string> body = receive_text(header.length, deadline);
    keeps_going_ = body.ok() && body.value() == rendezvous::kKeepsGoing;
    return body.status();
  }
  if (header.kind != Kind::kFailed) {
    return error(IBCOLL_ERR_BOOTSTRAP, "{}: ibcoll_run at {} sent a frame of kind {} before the first exchange",
                 own_name(), address_, static_cast<uint32_t>(header.kind));
  }
  const Result<std::string> why = receive_text(header.length, deadline);
  return why.ok() ? error(IBCOLL_ERR_BOOTSTRAP, "{}: {}", own_name(), why.value()) : why.status();
}

Status TcpBootstrap::allgather(std::span<const std::byte> mine, std::span<std::byte> all) {
  if (mine.size() > rendezvous::kMaxBlob || all.size() != mine.size() * static_cast<size_t>(size_) ||
      all.size() > rendezvous::kMaxGathered) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: exchange of {} bytes into {}: {} ranks, at most {} bytes each",
                 own_name(), mine.size(), all.size(), size_, rendezvous::kMaxBlob);
  }
  if (!socket_) {
    return error(IBCOLL_ERR_BOOTSTRAP, "{}: the connection to ibcoll_run at {} is closed after an earlier failure",
                 own_name(), address_);
  }
  const Clock::time_point deadline = after(exchange_seconds_);
  const FrameHeader header{Kind::kGather, static_cast<uint32_t>(mine.size())};
  Status status = send(bytes_of(header), deadline);
  if (status.ok()) status = send(mine, deadline);
  if (status.ok()) status = receive_gathered(all, deadline);
  if (status.code() == IBCOLL_ERR_TIMEOUT) status = ask_for_missing_ranks();
  if (!status.ok()) socket_.reset();  // a position inside a frame may be lost: no exchange can follow
  return status;
}

Status TcpBootstrap::receive_gathered(std::span<std::byte> all, Clock::time_point deadline) {
  FrameHeader header;
  if (Status status = receive_answer(header, deadline); !status.ok()) return status;
  if (header.kind == Kind::kGathered && header.length == all.size()) return receive(all, deadline);
  if (header.kind == Kind::kFailed) {
    const Result<std::string> text = receive_text(header.length, deadline);
    if (!text.ok()) return text.status();
    return error(IBCOLL_ERR_BOOTSTRAP, "{}: {}", own_name(), text.value());
  }
  return error(IBCOLL_ERR_BOOTSTRAP, "{}: ibcoll_run at {} sent a frame of kind {} and {} bytes, expected {} bytes",
               own_name(), address_, static_cast<uint32_t>(header.kind), header.length, all.size());
}

// The header of the next frame that is no news.
Status TcpBootstrap::receive_answer(FrameHeader& header, Clock::time_point deadline) {
  for (;;) {
    if (Status status = receive(writable_bytes_of(header), deadline); !status.ok()) return status;
    if (!is_news(header.kind)) return {};
    const Result<std::string> body = receive_text(header.length, deadline, kMaxNews);
    if (!body.ok()) return body.status();
    note(header.kind, body.value());
  }
}

// The launcher knows which ranks have not come; a rank does not.
Status TcpBootstrap::ask_for_missing_ranks() {
  const Clock::time_point deadline = Clock::now() + kAnswerTimeout;
  const FrameHeader question{Kind::kAskMissing, 0};
  FrameHeader answer{};
  Result<std::string> text = std::string("ibcoll_run does not answer");
  if (send(bytes_of(question), deadline).ok() && receive_answer(answer, deadline).ok() &&
      (answer.kind == Kind::kMissing || answer.kind == Kind::kFailed)) {
    text = receive_text(answer.length, deadline);
  } else if (answer.kind == Kind::kGathered) {
    text = std::string("the last ones came just afterwards");
  }
  return error(IBCOLL_ERR_TIMEOUT, "{}: the ranks of the job did not all come within {} s (IBCOLL_TIMEOUT): {}",
               own_name(), exchange_seconds_, text.ok() ? text.value() : text.status().text());
}

Result<std::string> TcpBootstrap::receive_text(uint32_t length, Clock::time_point deadline, uint64_t most) {
  if (length > most) {
    return error(IBCOLL_ERR_BOOTSTRAP, "{}: ibcoll_run at {} announced a text of {} bytes", own_name(), address_,
                 length);
  }
  std::string text(length, '\0');
  if (Status status = receive(std::as_writable_bytes(std::span(text)), deadline); !status.ok()) return status;
  return text;
}

Status TcpBootstrap::send(std::span<const std::byte> bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (Status status = wait(POLLOUT, deadline); !status.ok()) return status;
    } else if (errno != EINTR) {
      return lost("send", errno);
    }
  }
  return {};
}

Status TcpBootstrap::receive(std::span<std::byte> bytes, Clock::time_point deadline) {
  const size_t taken = unread_.copy(reinterpret_cast<char*>(bytes.data()), bytes.size());
  unread_.erase(0, taken);
  bytes = bytes.subspan(taken);
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<size_t>(got));
    } else if (got == 0) {
      return lost("recv", 0);
    } else if (errno == EAGAIN) {
      if (Status status = wait(POLLIN, deadline); !status.ok()) return status;
    } else if (errno != EINTR) {
      return lost("recv", errno);
    }
  }
  return {};
}

Status TcpBootstrap::wait(short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left <= 0ms) {
      return error(IBCOLL_ERR_TIMEOUT, "{}: ibcoll_run at {} does not answer", own_name(), address_);
    }
    pollfd entry{socket_.get(), events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min<int64_t>(left.count(), 60'000)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return error(IBCOLL_ERR_SYSTEM, "{}: poll: {}", own_name(), std::strerror(errno));
  }
}

Status TcpBootstrap::lost(std::string_view call, int reason) const {
  std::string_view question = "is the launcher still running, and of this version of ibcoll?";
  if (reason == ENETUNREACH || reason == EHOSTUNREACH || reason == ENETDOWN || reason == EADDRNOTAVAIL) {
    const Result<SocketAddress> address = parse_socket_address(address_);
    question = address.ok() && address.value().is_loopback()
                   ? "is the loopback interface up (ip link set lo up)?"
                   : "is an interface down, or has ibcoll_run to name another address of its machine (--address)?";
  }
  return error(IBCOLL_ERR_BOOTSTRAP, "{}: ibcoll_run at {}: {}: {}; {}", own_name(), address_, call,
               reason == 0 ? "closed the connection" : std::strerror(reason), question);
}

}  // namespace ibcoll
