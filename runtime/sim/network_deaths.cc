// SPDX-License-Identifier: BSD-3-Clause
// Ranks that die, and the ranks that detect it.
#include <utility>

#include "runtime/sim/network.h"

namespace ibcoll::sim {

bool Network::lost(const Message& message) const {
  const Host& sender = hosts_[static_cast<size_t>(message.from)];
  const Host& receiver = hosts_[static_cast<size_t>(message.to)];
  if (receiver.dead || pairs_[message.pair].lost) return true;
  if (!sender.dead) return false;
  const auto& peers = transports_[static_cast<size_t>(message.to)]->peers_;
  const auto peer = peers.find(message.from);
  if (peer != peers.end() && peer->second.failed) return true;  // nothing comes after the report
  const bool in_its_memory = message.kind == Message::Kind::kPut && !message.landed && message.source;
  return message.left > sender.died || in_its_memory;
}

void Network::die(int rank) {
  Host& host = hosts_[static_cast<size_t>(rank)];
  if (host.dead) return;
  host.dead = true;
  host.died = now_;
  runnable_.erase(runnable_.begin(),
                  runnable_.begin() + static_cast<std::ptrdiff_t>(std::exchange(first_runnable_, 0)));
  std::erase(runnable_, rank);
  for (int other = 0; other < size(); ++other) {
    if (alive(other) && (params_.report_to_all || transport(other).knows(rank))) detect_later(other, rank);
  }
}

void Network::detect_later(int rank, int dead) {
  Transport::Peer& peer = transport(rank).peers_[dead];
  if (peer.detecting) return;
  peer.detecting = true;
  queue_.push(now_ + 1 + random_.below(params_.detection_ns), QueuedEvent::kDetect, static_cast<uint32_t>(rank),
              static_cast<uint32_t>(dead));
}

void Network::detect(int rank, int dead) {
  if (!alive(rank)) return;
  if (params_.detection == Detection::kByItself) return transport(rank).report_failure(dead);
  transport(rank).detected_.push_back(dead);
}

}  // namespace ibcoll::sim
