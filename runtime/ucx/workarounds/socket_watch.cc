// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/ucx/workarounds/socket_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/ucx/workarounds/system_calls.h"
#include "runtime/ucx/workarounds/versions.h"

namespace ibcoll::ucx {
namespace {

constexpr uint64_t kNanosecondsPerMillisecond = 1'000'000;

// All watches of the process, for children.
std::mutex& all_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}
std::vector<SocketWatch*>& all_watches() {
  static auto& watches = *new std::vector<SocketWatch*>;
  return watches;
}
// By any of them. Read at every failed call: UCX tries a hundred thousand times to send to a peer that has died.
std::atomic<bool>& any_ever_refused() {
  static std::atomic<bool> any = false;
  return any;
}

}  // namespace

Time SocketWatch::now() {
  return static_cast<Time>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

SocketWatch::SocketWatch(Time silence_limit) : silence_limit_(silence_limit) {
  [[maybe_unused]] static const int watched = ::pthread_atfork(&before_fork, &after_fork, &in_child);
  const std::lock_guard lock(all_mutex());
  all_watches().push_back(this);
}

SocketWatch::~SocketWatch() {
  const std::lock_guard lock(all_mutex());
  std::erase(all_watches(), this);
}

int SocketWatch::rank_at(const std::optional<TcpAddress>& peer) const {
  const auto found = peer ? ranks_.find(*peer) : ranks_.end();
  return found == ranks_.end() ? -1 : found->second;
}

void SocketWatch::take(int descriptor, Time now) {
  const uint64_t identity = identity_of(descriptor);
  const auto known = sockets_.find(descriptor);
  if (known != sockets_.end() && known->second.identity == identity) return;
  const std::optional<TcpAddress> local = local_address(descriptor), peer = peer_address(descriptor);
  const int rank = rank_at(peer);
  const bool accepted = local && is_listener(local->port) && !listens(descriptor);
  if (rank < 0 && !accepted) return;
  sockets_[descriptor] = {identity, rank, peer ? peer->host : Host{}, now, 0};
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  if (accepted) admit_all(descriptor);  // the filter of the listener has admitted it
}

thread_local SocketWatch* SocketWatch::working = nullptr;

void SocketWatch::connects(int descriptor, const sockaddr* to) {
  const std::optional<TcpAddress> address = address_of(to);
  if (!address) return;
  if (working != nullptr) return working->bind_source(descriptor, *address);
  const std::lock_guard lock(all_mutex());
  for (SocketWatch* const watch : all_watches()) watch->bind_source(descriptor, *address);  // one knows a rank there
}

bool SocketWatch::cut(int rank) {
  const std::lock_guard lock(mutex_);
  adopt_locked(now());
  bool any = false;
  for (const auto& [descriptor, socket] : sockets_) {
    if (socket.rank != rank) continue;
    tcp_info info{};
    socklen_t length = sizeof info;
    if (is_needed(Fault::kFailedConnect) && connects_are_seen() &&
        ::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_state == TCP_SYN_SENT)
      refuse_locked(rank, socket.peer, ETIMEDOUT);
    any = ::shutdown(descriptor, SHUT_RDWR) == 0 || any;
  }
  return any;
}

// Other connections to the rank go as well: UCX would close all at once.
void SocketWatch::refuse_locked(int rank, const Host& peer, int error) {
  if (!refusals_
           .try_emplace(rank, fmt::format("a connection to {} was not made: {}", text_of(peer), std::strerror(error)))
           .second)
    return;
  newly_refused_.push_back(rank);
  any_ever_refused().store(true, std::memory_order_relaxed);
  has_new_refusals_.store(true, std::memory_order_relaxed);
  for (const auto& [descriptor, socket] : sockets_)
    if (socket.rank == rank) ::shutdown(descriptor, SHUT_RDWR);
}

const SocketWatch::Socket* SocketWatch::find_locked(int descriptor) const {
  const auto found = sockets_.find(descriptor);
  const bool known =
      found != sockets_.end() && found->second.rank >= 0 && found->second.identity == identity_of(descriptor);
  return known ? &found->second : nullptr;
}

bool SocketWatch::refuse(int descriptor) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return false;
  const std::lock_guard lock(all_mutex());
  for (SocketWatch* const watch : all_watches()) {
    const std::lock_guard one(watch->mutex_);
    const Socket* const found = watch->find_locked(descriptor);
    if (found == nullptr) continue;
    const Socket socket = *found;
    watch->adopt_locked(now());
    watch->refuse_locked(socket.rank, socket.peer, error == 0 ? ENOTCONN : error);
    return true;
  }
  return false;
}

bool SocketWatch::is_of_refused(int accepted) {
  const std::optional<TcpAddress> peer = peer_address(accepted);
  const std::lock_guard lock(all_mutex());
  for (SocketWatch* const watch : all_watches()) {
    const std::lock_guard one(watch->mutex_);
    if (watch->refusals_.contains(watch->rank_at(peer))) return true;
  }
  return false;
}

bool SocketWatch::is_refused(int descriptor) {
  if (!any_ever_refused().load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(all_mutex());
  for (SocketWatch* const watch : all_watches()) {
    const std::lock_guard one(watch->mutex_);
    const Socket* const socket = watch->find_locked(descriptor);
    if (socket != nullptr) return watch->refusals_.contains(socket->rank);
  }
  return false;
}

std::vector<int> SocketWatch::refused_ranks() {
  const std::lock_guard lock(mutex_);
  has_new_refusals_.store(false, std::memory_order_relaxed);
  return std::exchange(newly_refused_, {});
}

bool SocketWatch::refuses(int rank) {
  const std::lock_guard lock(mutex_);
  return refusals_.contains(rank);
}

std::string SocketWatch::refusal_of(int rank) {
  const std::lock_guard lock(mutex_);
  const auto found = refusals_.find(rank);
  return found == refusals_.end() ? std::string() : found->second;
}

void SocketWatch::adopt_locked(Time now) {
  std::erase_if(sockets_, [](const auto& it) { return identity_of(it.first) != it.second.identity; });
  for_each_tcp_socket([&](int socket) { take(socket, now); });
}

void SocketWatch::adopt() {
  const std::lock_guard lock(mutex_);
  adopt_locked(now());
}

// By what the kernel reports: the time since the peer's last packet, and whether anything sent is unanswered. The
// kernel of a rank that lives and does not read, stopped or computing, answers for it.
bool SocketWatch::silent(int descriptor, Socket& socket, Time now) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  if (info.tcpi_state == TCP_SYN_SENT) {
    const auto [since, fresh] = connecting_.try_emplace(socket.rank, socket.since);
    return now - since->second > silence_limit_;
  }
  if (info.tcpi_state != TCP_ESTABLISHED) return false;
  if (socket.rank >= 0) connecting_.erase(socket.rank);
  const bool unanswered = info.tcpi_retransmits > 0 || info.tcpi_probes > 0;
  if (!unanswered) {
    socket.unanswered_since = 0;
    return false;
  }
  if (socket.unanswered_since == 0) socket.unanswered_since = now;
  const Time heard = kNanosecondsPerMillisecond * std::min(info.tcpi_last_ack_recv, info.tcpi_last_data_recv);
  return heard > silence_limit_ && now - socket.since > silence_limit_ &&
         now - socket.unanswered_since > silence_limit_ / 2;
}

std::vector<int> SocketWatch::silent_ranks(Time now) {
  const std::lock_guard lock(mutex_);
  adopt_locked(now);
  std::vector<int> ranks;
  for (auto& [descriptor, socket] : sockets_) {
    if (!silent(descriptor, socket, now)) continue;
    if (std::find(silent_hosts_.begin(), silent_hosts_.end(), socket.peer) == silent_hosts_.end())
      silent_hosts_.push_back(socket.peer);
    if (socket.rank >= 0)
      ranks.push_back(socket.rank);
    else
      ::shutdown(descriptor, SHUT_RDWR);
  }
  return ranks;
}

std::string SocketWatch::silence_of(int rank, Time waited) const {
  if (static_cast<size_t>(rank) >= by_rank_.size()) return {};
  const auto silence = [this](const Host& host) {
    return fmt::format("its host {} has not answered for {:.0f} s (IBCOLL_PEER_TIMEOUT)", text_of(host),
                       static_cast<double>(silence_limit_) / 1e9);
  };
  const auto& hosts = by_rank_[static_cast<size_t>(rank)].hosts;
  for (const Host& host : hosts)
    if (std::find(silent_hosts_.begin(), silent_hosts_.end(), host) != silent_hosts_.end()) return silence(host);
  return waited >= silence_limit_ / 2 && !hosts.empty() ? silence(hosts.front()) : std::string();
}

// ---------------------------------------------------------------- children

void SocketWatch::before_fork() {
  all_mutex().lock();
  for (SocketWatch* const watch : all_watches()) {
    watch->mutex_.lock();
    watch->adopt_locked(now());
  }
}

void SocketWatch::after_fork() {
  for (SocketWatch* const watch : all_watches()) watch->mutex_.unlock();
  all_mutex().unlock();
}

void SocketWatch::in_child() {
  for (SocketWatch* const watch : all_watches()) {
    for (const auto& [socket, identity] : watch->listeners_)
      if (identity_of(socket) == identity) ::close(socket);
    for (const auto& [socket, state] : watch->sockets_) ::close(socket);
  }
  after_fork();
}

}  // namespace ibcoll::ucx
