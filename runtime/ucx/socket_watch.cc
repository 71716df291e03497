// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/ucx/socket_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/base/log.h"
#include "runtime/ucx/system_calls.h"

namespace ibcoll::ucx {
namespace {

constexpr size_t kMostPorts = 15, kMostHosts = 15;  // of a rank, in what it tells others
constexpr size_t kDoorHeader = 4;
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

Time steady_now() {
  return static_cast<Time>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

}  // namespace

SocketWatch::SocketWatch(Time patience) : patience_(patience) {
  [[maybe_unused]] static const int watched = ::pthread_atfork(&before_fork, &after_fork, &in_child);
  const std::lock_guard lock(all_mutex());
  all_watches().push_back(this);
}

SocketWatch::~SocketWatch() {
  const std::lock_guard lock(all_mutex());
  std::erase(all_watches(), this);
}

// ---------------------------------------------------------------- doors

std::vector<uint64_t> SocketWatch::listening() {
  std::vector<uint64_t> identities;
  for_each_tcp_socket([&](int socket) {
    if (listens(socket)) identities.push_back(identity_of(socket));
  });
  return identities;
}

void SocketWatch::find_listeners(const std::vector<uint64_t>& before, std::span<const std::byte> ucx_address) {
  for_each_tcp_socket([&](int socket) {
    if (!listens(socket) || std::find(before.begin(), before.end(), identity_of(socket)) != before.end()) return;
    const std::optional<TcpAddress> address = local_address(socket);
    if (!address) return;
    const std::byte port[2] = {std::byte(address->port >> 8), std::byte(address->port & 0xff)};
    if (std::search(ucx_address.begin(), ucx_address.end(), port, port + 2) == ucx_address.end()) return;
    listeners_[socket] = identity_of(socket);
    ::fcntl(socket, F_SETFD, FD_CLOEXEC);
    own_.ports.push_back(address->port);
    if (is_loopback(address->host)) own_.hosts.push_back(address->host);
  });
  if (connects_are_seen() && !own_.ports.empty()) reserve_source();
  const std::vector<Host> hosts = own_hosts();
  own_.hosts.insert(own_.hosts.end(), hosts.begin(), hosts.end());
  if (own_.ports.size() > kMostPorts || own_.hosts.size() > kMostHosts) own_ = {};
}

// Two counts of a byte each, the port of connections, the ports to listen, the hosts.
std::vector<std::byte> SocketWatch::doors() const {
  const auto ports = std::as_bytes(std::span(own_.ports)), hosts = std::as_bytes(std::span(own_.hosts));
  std::vector<std::byte> bytes(kDoorHeader + ports.size() + hosts.size());
  bytes[0] = std::byte(own_.ports.size());
  bytes[1] = std::byte(own_.hosts.size());
  std::memcpy(&bytes[2], &own_.source, sizeof own_.source);
  std::copy(ports.begin(), ports.end(), bytes.begin() + kDoorHeader);
  std::copy(hosts.begin(), hosts.end(), bytes.end() - static_cast<std::ptrdiff_t>(hosts.size()));
  return bytes;
}

size_t SocketWatch::bytes_of(std::span<const std::byte> doors) {
  if (doors.size() < kDoorHeader) return 0;
  const size_t ports = std::to_integer<size_t>(doors[0]), hosts = std::to_integer<size_t>(doors[1]);
  const size_t bytes = kDoorHeader + ports * sizeof(uint16_t) + hosts * sizeof(Host);
  return ports <= kMostPorts && hosts <= kMostHosts && bytes <= doors.size() ? bytes : 0;
}

void SocketWatch::set_doors(int rank, std::span<const std::byte> doors) {
  Door door;
  door.ports.resize(std::to_integer<size_t>(doors[0]));
  door.hosts.resize(std::to_integer<size_t>(doors[1]));
  const size_t port_bytes = door.ports.size() * sizeof(uint16_t);
  std::memcpy(&door.source, doors.data() + 2, sizeof door.source);
  doors = doors.subspan(kDoorHeader);
  if (!door.ports.empty()) std::memcpy(door.ports.data(), doors.data(), port_bytes);
  if (!door.hosts.empty()) std::memcpy(door.hosts.data(), doors.data() + port_bytes, door.hosts.size() * sizeof(Host));
  for (const Host& host : door.hosts) {
    for (const uint16_t port : door.ports) ranks_[{host, port}] = rank;
    if (door.source != 0) ranks_[{host, door.source}] = rank;
  }
  if (by_rank_.size() <= static_cast<size_t>(rank)) by_rank_.resize(static_cast<size_t>(rank) + 1);
  by_rank_[static_cast<size_t>(rank)] = std::move(door);
}

void SocketWatch::lock_doors() {
  std::map<Host, std::vector<uint16_t>> sources;
  bool all = true;
  for (const Door& door : by_rank_) {
    if (door.hosts.empty()) return;  // it has more than it can tell
    all = all && door.source != 0;
    for (const Host& host : door.hosts) sources[host].push_back(door.source);
  }
  const auto lock = [&] {
    for (const auto& [socket, identity] : listeners_)
      if (!admit_only(socket, sources)) return false;
    return !listeners_.empty();
  };
  if (all && lock()) {
    doors_text_ = "ranks of this job only";
  } else {  // a filter has its limits
    for (auto& [host, ports] : sources) ports.clear();
    if (lock()) doors_text_ = "hosts of this job only";
  }
  log(LogLevel::kInfo, "ucx: {} ports are open to {}", listeners_.size(), doors_text_);
}

// ---------------------------------------------------------------- sockets

bool SocketWatch::is_listener(uint16_t port) const {
  return std::find(own_.ports.begin(), own_.ports.end(), port) != own_.ports.end();
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
  if (accepted) ::setsockopt(descriptor, SOL_SOCKET, SO_DETACH_FILTER, nullptr, 0);  // it has passed the door
}

// A port that nobody else on this machine gets as long as it is held, but for sockets of this user that ask to share it.
void SocketWatch::reserve_source() {
  for (const int family : {AF_INET6, AF_INET}) {
    UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    sockaddr_storage any{};
    any.ss_family = static_cast<sa_family_t>(family);
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (socket.get() < 0 || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0 ||
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), length) != 0)
      continue;
    const std::optional<TcpAddress> address = local_address(socket.get());
    if (!address) continue;
    own_.source = address->port;
    reservation_ = std::move(socket);
    return;
  }
}

void SocketWatch::bind_source(int descriptor, const TcpAddress& to) {
  const std::lock_guard lock(mutex_);
  const auto found = ranks_.find(to);
  if (found == ranks_.end()) return;
  sockets_[descriptor] = {identity_of(descriptor), found->second, to.host, steady_now(), 0};
  if (own_.source == 0) return;
  const int on = 1;
  sockaddr_storage any{};
  any.ss_family = is_ipv4(to.host) ? AF_INET : AF_INET6;
  (is_ipv4(to.host) ? reinterpret_cast<sockaddr_in&>(any).sin_port : reinterpret_cast<sockaddr_in6&>(any).sin6_port) =
      htons(own_.source);
  const socklen_t length = is_ipv4(to.host) ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (::setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0 ||
      ::bind(descriptor, reinterpret_cast<const sockaddr*>(&any), length) != 0)
    log(LogLevel::kInfo, "ucx: a socket was not bound to port {}: {}", own_.source, std::strerror(errno));
}

thread_local SocketWatch* SocketWatch::working = nullptr;

void SocketWatch::connects(int descriptor, const sockaddr* to) {
  const std::optional<TcpAddress> address = address_of(to);
  if (!address) return;
  SocketWatch* watch = working;
  if (watch == nullptr) {
    const std::lock_guard lock(all_mutex());
    if (all_watches().size() == 1) watch = all_watches().front();
  }
  if (watch != nullptr) watch->bind_source(descriptor, *address);
}

bool SocketWatch::cut(int rank) {
  const std::lock_guard lock(mutex_);
  adopt_locked(steady_now());
  bool any = false;
  for (const auto& [descriptor, socket] : sockets_)
    if (socket.rank == rank) any = ::shutdown(descriptor, SHUT_RDWR) == 0 || any;
  return any;
}

void SocketWatch::adopt_locked(Time now) {
  std::erase_if(sockets_, [](const auto& it) { return identity_of(it.first) != it.second.identity; });
  for_each_tcp_socket([&](int socket) { take(socket, now); });
}

void SocketWatch::adopt() {
  const std::lock_guard lock(mutex_);
  adopt_locked(steady_now());
}

// What the kernel says: how long ago the peer was heard, and whether something that was sent waits for an answer. A rank that
// lives and does not read, stopped or computing, answers by its kernel.
bool SocketWatch::silent(int descriptor, Socket& socket, Time now) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  if (info.tcpi_state == TCP_SYN_SENT) {
    const auto [since, fresh] = connecting_.try_emplace(socket.rank, socket.since);
    return now - since->second > patience_;
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
  return heard > patience_ && now - socket.since > patience_ && now - socket.unanswered_since > patience_ / 2;
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

std::string SocketWatch::silence_of(int rank) const {
  if (static_cast<size_t>(rank) >= by_rank_.size()) return {};
  for (const Host& host : by_rank_[static_cast<size_t>(rank)].hosts)
    if (std::find(silent_hosts_.begin(), silent_hosts_.end(), host) != silent_hosts_.end())
      return fmt::format("its host {} has not answered for {:.0f} s (IBCOLL_PEER_TIMEOUT)", text_of(host),
                         static_cast<double>(patience_) / 1e9);
  return {};
}

// ---------------------------------------------------------------- children

void SocketWatch::before_fork() {
  all_mutex().lock();
  for (SocketWatch* const watch : all_watches()) {
    watch->mutex_.lock();
    watch->adopt_locked(steady_now());
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
