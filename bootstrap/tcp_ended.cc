// SPDX-License-Identifier: BSD-3-Clause
// Ranks whose ends the launcher reports. It does so at any time; a rank reads that between its exchanges.
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <utility>

#include "bootstrap/tcp.h"

namespace ibcoll {

using rendezvous::FrameHeader;
using rendezvous::Kind;

// That the launcher has ended, or sends something unexpected, is an error of the next exchange.
std::vector<Bootstrap::Ended> TcpBootstrap::ended() {
  std::array<char, 4096> buffer;
  ssize_t got = 0;
  while (socket_ && unread_.size() < sizeof(FrameHeader) + rendezvous::kMaxText &&
         (got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0) {
    unread_.append(buffer.data(), static_cast<size_t>(got));
  }
  size_t taken = 0;
  FrameHeader header;
  while (unread_.size() - taken >= sizeof(header)) {
    std::memcpy(&header, unread_.data() + taken, sizeof(header));
    const size_t left = unread_.size() - taken - sizeof(header);
    if (header.kind != Kind::kRankEnded || header.length > left) break;
    note_end(std::string_view(unread_).substr(taken + sizeof(header), header.length));
    taken += sizeof(header) + header.length;
  }
  unread_.erase(0, taken);
  return std::exchange(ended_, {});
}

void TcpBootstrap::note_end(std::string_view body) {
  uint32_t rank = 0;
  if (body.size() < sizeof(rank)) return;
  std::memcpy(&rank, body.data(), sizeof(rank));
  if (rank >= static_cast<uint32_t>(size_) || rank == static_cast<uint32_t>(rank_)) return;
  ended_.push_back({static_cast<int>(rank), std::string(body.substr(sizeof(rank)))});
}

}  // namespace ibcoll
