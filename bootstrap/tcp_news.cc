// SPDX-License-Identifier: BSD-3-Clause
// What the launcher sends at any time, and a rank reads between its exchanges: ranks whose ends it reports, and verdicts
// of ballots.
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <new>
#include <utility>

#include "bootstrap/ballot_messages.h"
#include "bootstrap/tcp.h"

namespace ibcoll {

using rendezvous::FrameHeader;
using rendezvous::Kind;
using namespace std::chrono_literals;

namespace {

constexpr auto kSendTimeout = 5s;  // a launcher that is stopped

}  // namespace

// False: the launcher has closed the connection. What it sends unexpectedly is an error of the next exchange.
bool TcpBootstrap::take_news() {
  std::array<char, 16384> buffer;
  ssize_t got = 0;
  do {
    size_t taken = 0;
    FrameHeader header{Kind::kVerdict, 0};
    while (unread_.size() - taken >= sizeof(header)) {
      std::memcpy(&header, unread_.data() + taken, sizeof(header));
      if (!is_news(header.kind) || header.length > unread_.size() - taken - sizeof(header)) break;
      note(header.kind, std::string_view(unread_).substr(taken + sizeof(header), header.length));
      taken += sizeof(header) + header.length;
    }
    unread_.erase(0, taken);
    if (!socket_) return false;
    if (!is_news(header.kind)) return true;  // it waits for receive()
    got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) unread_.append(buffer.data(), static_cast<size_t>(got));
  } while (got > 0);
  return got < 0 && (errno == EAGAIN || errno == EINTR);
}

std::vector<Bootstrap::Ended> TcpBootstrap::ended() {
  (void)take_news();
  return std::exchange(ended_, {});
}

void TcpBootstrap::note(Kind kind, std::string_view body) {
  if (kind == Kind::kVerdict) {
    if (std::optional<Verdict> verdict = rendezvous::unpack_verdict(body, size_))
      verdicts_.push_back(std::move(*verdict));
    return;
  }
  uint32_t rank = 0;
  if (body.size() < sizeof(rank)) return;
  std::memcpy(&rank, body.data(), sizeof(rank));
  if (rank >= static_cast<uint32_t>(size_) || rank == static_cast<uint32_t>(rank_)) return;
  ended_.push_back({static_cast<int>(rank), std::string(body.substr(sizeof(rank)))});
}

// ---------------------------------------------------------------- ballots

Status TcpBootstrap::send_frame(Kind kind, std::string_view body) {
  if (!socket_)
    return error(IBCOLL_ERR_BOOTSTRAP, "{}: the connection to ibcoll_run at {} is closed after an earlier failure",
                 own_name(), address_);
  const FrameHeader header{kind, static_cast<uint32_t>(body.size())};
  std::string frame(reinterpret_cast<const char*>(&header), sizeof header);
  frame += body;
  Status status = send(std::as_bytes(std::span(frame)), Clock::now() + kSendTimeout);
  if (!status.ok()) socket_.reset();  // the next frame would be read as the rest of this one
  return status;
}

Status TcpBootstrap::vote(const Vote& vote) { return send_frame(Kind::kVote, rendezvous::pack_vote(vote, size_)); }

Status TcpBootstrap::withdraw(const Key& key) { return send_frame(Kind::kWithdraw, rendezvous::pack_key(key)); }

Status TcpBootstrap::accuse(int rank) {
  const auto number = static_cast<uint32_t>(rank);
  return send_frame(Kind::kAccuse, {reinterpret_cast<const char*>(&number), sizeof number});
}

Result<std::optional<Arbiter::Verdict>> TcpBootstrap::verdict() {
  const bool open = take_news();
  std::optional<Verdict> first;
  if (verdicts_.empty() && !open) return lost("recv", 0);
  if (verdicts_.empty()) return first;
  first = std::move(verdicts_.front());
  verdicts_.pop_front();
  return first;
}

void TcpBootstrap::wait(double seconds) {
  pollfd entry{socket_.get(), POLLIN, 0};
  (void)::poll(&entry, 1, static_cast<int>(std::ceil(seconds * 1e3)));
}

}  // namespace ibcoll
