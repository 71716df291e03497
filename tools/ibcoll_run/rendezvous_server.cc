// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/rendezvous_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "bootstrap/ballot_messages.h"

namespace ibcoll::run {
namespace {

using namespace std::chrono_literals;
using rendezvous::Claim;
using rendezvous::FrameHeader;
using rendezvous::Kind;

constexpr auto kEndNoticeDelay = 200ms;  // at most, from the end of a connection to that of its process
// From an accusation to the end of the accused: a process that has died is reported by then.
constexpr auto kAccusationDelay = 250ms;
constexpr auto kDesertionDelay = 1s;  // a process that still runs then has closed the connection itself
constexpr int kEverySeries = -1;
constexpr size_t kMostUnauthenticated = 512;  // connections, besides one for each rank; the oldest is closed first
constexpr int kAcceptedAtOnce = 64;           // then accepted connections are read
constexpr auto kTakeoverTimeout = 1s;         // for the connections of another process as the same rank to end
constexpr size_t kMostUnread = 4;             // answers that one rank has not read

iovec rest_of(const std::string& bytes, size_t done) {
  return {const_cast<char*>(bytes.data()) + done, bytes.size() - done};
}

std::string lost(int rank) { return fmt::format("rank {} closed its connection to ibcoll_run", rank); }

}  // namespace

RendezvousServer::RendezvousServer(EventLoop& loop, const rendezvous::Secret& secret, std::vector<std::string> hosts,
                                   Seconds authentication_timeout, bool keeps_going)
    : loop_(loop),
      authentication_timeout_(authentication_timeout),
      keeps_going_(keeps_going),
      secret_(secret),
      hosts_(std::move(hosts)),
      size_(static_cast<int>(hosts_.size())),
      registry_(hosts_.size()) {}

RendezvousServer::~RendezvousServer() {
  for (const UniqueFd& listener : listeners_) loop_.forget(listener.get());
  for (const auto& [fd, connection] : connections_) {
    loop_.forget(fd);
    loop_.cancel(connection->deadline);
  }
}

Result<SocketAddress> RendezvousServer::listen(SocketAddress address) {
  UniqueFd listener(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return error(IBCOLL_ERR_SYSTEM, "socket: {}", std::strerror(errno));
  if (::bind(listener.get(), address.get(), address.length) != 0 || ::listen(listener.get(), 4096) != 0) {
    return error(IBCOLL_ERR_SYSTEM, "cannot listen on {}: {}", address.host_text(), std::strerror(errno));
  }
  address.length = sizeof(address.storage);
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.length);
  const int fd = listener.get();
  if (Status status = loop_.watch(fd, EPOLLIN, [this, fd](uint32_t) { accept_all(fd); }); !status.ok()) return status;
  listeners_.push_back(std::move(listener));
  return address;
}

void RendezvousServer::accept_all(int listener) {
  const auto ranks = static_cast<size_t>(size_);
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket && (errno == EMFILE || errno == ENFILE) && unauthenticated_.size() > ranks) {
      drop_unauthenticated();
      continue;
    }
    if (!socket) return pause_when_out_of_files(listener);
    while (unauthenticated_.size() >= ranks + kMostUnauthenticated) drop_unauthenticated();
    auto connection = std::make_unique<Connection>();
    Connection* raw = connection.get();
    const int fd = socket.get();
    raw->socket = std::move(socket);
    if (!rendezvous::fill_random(raw->nonce).ok() ||
        ::send(fd, raw->nonce.data(), raw->nonce.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(raw->nonce.size()) ||
        !loop_.watch(fd, EPOLLIN, [this, raw](uint32_t events) { on_ready(*raw, events); }).ok()) {
      continue;
    }
    raw->deadline = loop_.after(authentication_timeout_, [this, raw] { close(*raw, ""); });
    connections_[fd] = std::move(connection);
    unauthenticated_.push_back(fd);
  }
}

// The connection stays in the backlog and the listener readable: without a pause the loop would spin.
void RendezvousServer::pause_when_out_of_files(int listener) {
  if (errno != EMFILE && errno != ENFILE) return;
  if (on_trouble && !std::exchange(trouble_reported_, true)) {
    on_trouble(fmt::format("cannot accept the connections of all ranks: {}; raise the limit of open files (ulimit -n)",
                           std::strerror(errno)));
  }
  loop_.change(listener, 0);
  loop_.after(100ms, [this, listener] { loop_.change(listener, EPOLLIN); });
}

// The oldest one, unless its answer has come meanwhile.
void RendezvousServer::drop_unauthenticated() {
  const int fd = unauthenticated_.front();
  Connection& oldest = *connections_.at(fd);
  const bool alive = receive(oldest);
  if (!alive || (!unauthenticated_.empty() && unauthenticated_.front() == fd)) close(oldest, lost(oldest.rank));
}

void RendezvousServer::on_ready(Connection& connection, uint32_t events) {
  const bool alive = (events & EPOLLOUT) == 0 || flush(connection);
  if (alive && (events & ~uint32_t{EPOLLOUT}) != 0 && !receive(connection)) {
    close(connection, lost(connection.rank));
  } else if (!alive) {
    close(connection, fmt::format("rank {} lost its connection to ibcoll_run", connection.rank));
  }
}

// False: the connection is to be closed.
bool RendezvousServer::receive(Connection& connection) {
  std::array<char, 65536> buffer;
  const bool awaits_claim = connection.rank < 0 && !connection.refused;
  const size_t room = awaits_claim ? sizeof(Claim) - connection.received.size() : buffer.size();
  if (room == 0) {  // its claim is not decided yet: only notice the end of the connection
    const ssize_t more = ::recv(connection.socket.get(), buffer.data(), 1, MSG_PEEK);
    return more > 0 || (more < 0 && (errno == EAGAIN || errno == EINTR));
  }
  const ssize_t got = ::recv(connection.socket.get(), buffer.data(), room, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  if (connection.refused) return true;
  connection.received.append(buffer.data(), static_cast<size_t>(got));
  return parse(connection);
}

bool RendezvousServer::parse(Connection& connection) {
  std::string& received = connection.received;
  if (connection.rank < 0) return received.size() < sizeof(Claim) || check_claim(connection);
  size_t taken = 0;
  bool good = true;
  while (good && received.size() - taken >= sizeof(FrameHeader)) {
    FrameHeader header;
    std::memcpy(&header, received.data() + taken, sizeof(header));
    good = header.length <= rendezvous::kMaxBlob;
    if (!good || received.size() - taken < sizeof(header) + header.length) break;
    const std::string_view body = std::string_view(received).substr(taken + sizeof(header), header.length);
    taken += sizeof(header) + header.length;
    good = handle_frame(connection, header.kind, body);
  }
  received.erase(0, taken);
  return good;
}

bool RendezvousServer::check_claim(Connection& connection) {
  Claim claim;
  std::memcpy(&claim, connection.received.data(), sizeof(claim));
  const Result<rendezvous::Tag> expected = rendezvous::client_tag(secret_, connection.nonce, claim);
  const Result<rendezvous::Tag> answer = rendezvous::server_tag(secret_, connection.nonce, claim);
  if (!expected.ok() || !answer.ok() || !rendezvous::equal_in_constant_time(expected.value(), claim.tag)) return false;
  // It knows the secret.
  if (claim.size != static_cast<uint32_t>(size_) || claim.rank >= claim.size) return false;
  const int on = 1;
  ::setsockopt(connection.socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(connection.socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  loop_.cancel(connection.deadline);
  std::erase(unauthenticated_, connection.socket.get());
  const auto& bytes = answer.value();
  connection.to_send.push_back({std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), nullptr});
  if (!registry_.held_by_other(claim.rank, claim.process)) return admit(connection, claim);
  // The end of that process, or of its connection, may be reported in a moment.
  loop_.change(connection.socket.get(), 0);
  connection.deadline = loop_.after(kTakeoverTimeout, [this, &connection, claim] {
    if (!admit(connection, claim)) close(connection, lost(connection.rank));
  });
  return true;
}

bool RendezvousServer::admit(Connection& connection, const Claim& claim) {
  connection.received.clear();
  std::string refusal = registry_.too_far_ahead(claim.rank);
  if (registry_.held_by_other(claim.rank, claim.process)) refusal = registry_.held_text(claim.rank, claim.process);
  if (!refusal.empty()) {
    connection.refused = true;
    connection.deadline = loop_.after(authentication_timeout_, [this, &connection] { close(connection, ""); });
    return answer(connection, Kind::kFailed, std::move(refusal));
  }
  connection.rank = static_cast<int>(claim.rank);
  connection.series = registry_.join(claim.rank, claim.process);
  series_of(connection.series);
  members_[{connection.series, connection.rank}] = &connection;
  return answer(connection, Kind::kAdmitted, keeps_going_ ? std::string(rendezvous::kKeepsGoing) : "");
}

bool RendezvousServer::answer(Connection& connection, Kind kind, std::string text) {
  queue(connection, kind, std::make_shared<const std::string>(std::move(text)));
  return flush(connection);
}

bool RendezvousServer::handle_frame(Connection& connection, Kind kind, std::string_view body) {
  if (kind == Kind::kGoodbye) {  // at once: who has left is not accused any more
    announce(connection.series, series_of(connection.series).ballots.leave(connection.rank));
    return connection.parts = true;
  }
  if (connection.to_send.size() >= kMostUnread) return false;  // a rank reads one answer before it sends more
  AllgatherSeries& exchange = series_of(connection.series).exchange;
  if (kind == Kind::kGather) {
    conclude(connection.series, exchange.give(connection.rank, std::as_bytes(std::span(body))));
    return true;
  }
  if (kind == Kind::kAskMissing) {
    return answer(connection, Kind::kMissing, exchange.missing());
  }
  return handle_ballot_frame(connection, kind, body);
}

bool RendezvousServer::handle_ballot_frame(Connection& connection, Kind kind, std::string_view body) {
  Ballots& ballots = series_of(connection.series).ballots;
  if (kind == Kind::kVote) {
    std::optional<rendezvous::UnpackedVote> vote = rendezvous::unpack_vote(body, size_);
    if (!vote) return false;
    announce(connection.series,
             ballots.vote(connection.rank, vote->key,
                          {vote->call, vote->flags, std::move(vote->members), std::move(vote->offer)}));
    end_deserters(connection.series);
    return true;
  }
  if (kind == Kind::kWithdraw) {
    const std::optional<Arbiter::Key> key = rendezvous::unpack_key(body);
    if (key) announce(connection.series, ballots.withdraw(connection.rank, *key));
    return key.has_value();
  }
  uint32_t accused = 0;
  if (kind != Kind::kAccuse || body.size() != sizeof accused) return false;
  std::memcpy(&accused, body.data(), sizeof accused);
  if (accused >= static_cast<uint32_t>(size_)) return false;
  accuse(connection.series, connection.rank, static_cast<int>(accused));
  return true;
}

void RendezvousServer::accuse(int series, int accuser, int accused) {
  if (series_of(series).ballots.accuse(accuser, accused)) end_soon(series, accused);
}

void RendezvousServer::end_soon(int series, int rank) {
  loop_.after(kAccusationDelay, [this, series, rank] {
    const auto entry = series_.find(series);
    if (entry != series_.end() && !entry->second.ballots.gone(rank) && on_accused) on_accused(rank);
  });
}

// The verdict counts them as dead, so they may not run on.
void RendezvousServer::end_deserters(int series) {
  Series& one = series_of(series);
  std::erase_if(one.deserters, [&](int rank) {
    const bool awaited = one.ballots.awaits(rank);
    if (awaited) end_soon(series, rank);
    return awaited;
  });
}

void RendezvousServer::announce(int series, const Ballots::Decisions& decisions) {
  for (const Ballots::Decision& decision : decisions) {
    const auto body = std::make_shared<const std::string>(rendezvous::pack_verdict(decision.verdict, size_));
    for (const int rank : decision.receivers) {
      Connection* const member = find(rank, series);
      if (member == nullptr) continue;
      queue(*member, Kind::kVerdict, body);
      flush(*member);  // an error shows again as the next event of the socket, and is dealt with there
    }
  }
}

RendezvousServer::Series& RendezvousServer::series_of(int series) {
  const auto [entry, is_new] = series_.try_emplace(series, hosts_);
  if (is_new) {
    for (const auto& [rank, why] : ended_) {
      entry->second.exchange.leave(rank, why);
      (void)entry->second.ballots.leave(rank);
    }
    entry->second.exchange.job_ends(job_end_);
  }
  return entry->second;
}

// Ends the round when it is complete or has failed.
void RendezvousServer::conclude(int series, const std::string& failure) {
  AllgatherSeries& exchange = series_of(series).exchange;
  if (failure.empty() && !exchange.complete()) return;
  const bool complete = failure.empty();
  std::shared_ptr<const std::string> body;
  std::vector<int> receivers;
  if (complete) {
    for (int rank = 0; rank < size_; ++rank) receivers.push_back(rank);
    body = exchange.take();
  } else {
    receivers = exchange.take_waiting();
    body = std::make_shared<const std::string>(failure.substr(0, rendezvous::kMaxText));
  }
  for (const int rank : receivers) {
    Connection* member = find(rank, series);
    if (member == nullptr) continue;
    queue(*member, complete ? Kind::kGathered : Kind::kFailed, body);
    flush(*member);  // an error shows again as the next event of the socket, and is dealt with there
  }
}

void RendezvousServer::queue(Connection& connection, Kind kind, std::shared_ptr<const std::string> body) {
  const FrameHeader header{kind, static_cast<uint32_t>(body->size())};
  connection.to_send.push_back({std::string(reinterpret_cast<const char*>(&header), sizeof(header)), std::move(body)});
}

// False: the connection is lost.
bool RendezvousServer::flush(Connection& connection) {
  while (!connection.to_send.empty()) {
    const Message& message = connection.to_send.front();
    const size_t total = message.header.size() + (message.body ? message.body->size() : 0);
    while (connection.sent_of_first < total) {
      const size_t of_header = std::min(connection.sent_of_first, message.header.size());
      const size_t of_body = connection.sent_of_first - of_header;
      std::array parts{rest_of(message.header, of_header), iovec{}};
      if (message.body) parts[1] = rest_of(*message.body, of_body);
      msghdr both{};
      both.msg_iov = parts.data();
      both.msg_iovlen = parts.size();
      const ssize_t sent = ::sendmsg(connection.socket.get(), &both, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno == EAGAIN) {
        loop_.change(connection.socket.get(), EPOLLIN | EPOLLOUT);
        return true;
      }
      if (sent < 0) return false;
      connection.sent_of_first += static_cast<size_t>(sent);
    }
    connection.to_send.pop_front();
    connection.sent_of_first = 0;
  }
  loop_.change(connection.socket.get(), EPOLLIN);
  return true;
}

RendezvousServer::Connection* RendezvousServer::find(int rank, int series) {
  const auto found = members_.find({series, rank});
  return found == members_.end() ? nullptr : found->second;
}

void RendezvousServer::close(Connection& connection, const std::string& why) {
  const int fd = connection.socket.get();
  loop_.cancel(connection.deadline);
  loop_.forget(fd);
  std::erase(unauthenticated_, fd);
  const int rank = connection.rank;
  const int series = connection.series;
  const bool deserts = rank >= 0 && !connection.parts;
  if (rank >= 0) members_.erase({series, rank});
  if (rank >= 0) registry_.leave(rank);
  connections_.erase(fd);  // ends `connection`
  if (rank < 0) return;
  if (deserts) {
    series_of(series).ballots.desert(rank);
    series_of(series).deserters.push_back(rank);
    end_deserters(series);
  }
  // If the process has died, its exit status is the better reason, and is known in a moment.
  loop_.after(kEndNoticeDelay, [this, series, rank, why] {
    if (series_.contains(series)) leave(series, rank, why);
  });
  if (deserts) loop_.after(kDesertionDelay, [this, series, rank] { report_desertion(series, rank); });
}

// Not where the process has ended, which is reported as such, nor in a job that is being ended.
void RendezvousServer::report_desertion(int series, int rank) {
  if (ended_.contains(rank) || !job_end_.empty()) return;
  report(rank,
         fmt::format("its process on host {} closed its connection to ibcoll_run without ibcoll_context_destroy: it "
                     "runs another program now (exec), or has closed descriptors that are ibcoll's",
                     hosts_[static_cast<size_t>(rank)]),
         series);
}

void RendezvousServer::leave(int series, int rank, const std::string& why) {
  Series& one = series_of(series);
  conclude(series, one.exchange.leave(rank, why));
  if (one.exchange.deserted()) series_.erase(series);
}

void RendezvousServer::rank_ended(int rank, const std::string& why) {
  ended_[rank] = why;
  std::vector<int> all;
  for (const auto& [series, one] : series_) all.push_back(series);
  for (const int series : all) {
    announce(series, series_of(series).ballots.leave(rank));
    leave(series, rank, why);
  }
}

void RendezvousServer::job_ends(const std::string& why) {
  job_end_ = why.substr(0, rendezvous::kMaxText);
  for (auto& [series, one] : series_) one.exchange.job_ends(job_end_);
}

void RendezvousServer::report_end(int rank, std::string_view how) { report(rank, how, kEverySeries); }

void RendezvousServer::report(int rank, std::string_view how, int series) {
  const auto number = static_cast<uint32_t>(rank);
  std::string text(reinterpret_cast<const char*>(&number), sizeof(number));
  text += how.substr(0, rendezvous::kMaxText - sizeof(number));
  const auto body = std::make_shared<const std::string>(std::move(text));
  for (const auto& [key, member] : members_) {
    const auto& [joined, receiver] = key;
    if (receiver == rank || (series != kEverySeries && joined != series) || member->to_send.size() + 1 >= kMostUnread)
      continue;
    queue(*member, Kind::kRankEnded, body);
    flush(*member);  // an error shows again as the next event of the socket, and is dealt with there
  }
}

std::string RendezvousServer::missing() const {
  std::string text;
  for (const auto& [series, one] : series_) {
    if (one.exchange.waited_for()) text += (text.empty() ? "" : "; ") + one.exchange.missing();
  }
  return text;
}

}  // namespace ibcoll::run
