// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/sim/network.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ibcoll::sim {

Network::Network(Params params)
    : params_(std::move(params)), random_(params_.seed), hosts_(static_cast<size_t>(params_.ranks)) {
  for (int rank = 0; rank < params_.ranks; ++rank) {
    const size_t i = static_cast<size_t>(rank);
    hosts_[i].node = params_.node_of.empty() ? rank : params_.node_of[i];
    if (static_cast<size_t>(hosts_[i].node) >= node_ports_.size())
      node_ports_.resize(static_cast<size_t>(hosts_[i].node) + 1);
    transports_.push_back(std::make_unique<Transport>(*this, rank));
  }
}

bool Network::advance() {
  if (queue_.empty()) return false;
  const QueuedEvent event = queue_.pop();
  now_ = std::max(now_, event.time);
  ++counters_.events;
  trace(now_);
  trace((static_cast<uint64_t>(event.kind()) << 56) ^ (static_cast<uint64_t>(event.other) << 28) ^ event.subject);
  handle(event);
  return true;
}

void Network::advance_to(Time time) {
  while (!queue_.empty() && queue_.front().time <= time) advance();
  now_ = std::max(now_, time);
}

void Network::handle(const QueuedEvent& event) {
  switch (event.kind()) {
    case QueuedEvent::kDepart:
      return leave(event.subject);
    case QueuedEvent::kFlag: {
      const Flag flag = flags_[event.subject];
      free_flags_.push_back(event.subject);
      flag.flag->store(flag.value, std::memory_order_release);
      new_flags_.push_back(flag.rank);
      if (observer_) observer_->shows(flag.rank, now_);
      return;
    }
    case QueuedEvent::kArrive:
      return arrive(event.subject);
    case QueuedEvent::kDeliver: {
      const Message& message = messages_[event.subject];
      --port(message, message.to).delivering;
      return deliver(event.subject);
    }
    case QueuedEvent::kSent:
      return sent(event.subject);
    case QueuedEvent::kCredit:
      return credit(pairs_[event.subject]);
    case QueuedEvent::kWake:
      return wake(static_cast<int>(event.subject));
    case QueuedEvent::kDeath:
      return die(static_cast<int>(event.subject));
    case QueuedEvent::kDetect:
      return detect(static_cast<int>(event.subject), static_cast<int>(event.other));
  }
}

void Network::wake(int rank) {
  Host& host = hosts_[static_cast<size_t>(rank)];
  if (host.runnable || host.dead) return;
  host.runnable = true;
  runnable_.push_back(rank);
}

int Network::take_runnable() {
  if (!params_.random) {
    const int first = runnable_[first_runnable_++];
    if (first_runnable_ == runnable_.size()) runnable_.clear(), first_runnable_ = 0;
    hosts_[static_cast<size_t>(first)].runnable = false;
    return first;
  }
  const size_t at = random_.below(runnable_.size());
  const int rank = runnable_[at];
  runnable_[at] = runnable_.back();
  runnable_.pop_back();
  hosts_[static_cast<size_t>(rank)].runnable = false;
  return rank;
}

Pair& Network::pair(int from, int to) {
  Transport::Peer& peer = transport(from).peers_[to];
  if (peer.pair == UINT32_MAX) {
    peer.pair = static_cast<uint32_t>(pairs_.size());
    pairs_.emplace_back();
    pairs_.back().from = from;
    pairs_.back().to = to;
    if (!alive(to)) detect_later(from, to);
  }
  return pairs_[peer.pair];
}

MessageId Network::make_message(Message::Kind kind, int from, int to) {
  if (free_messages_.empty()) {
    free_messages_.push_back(static_cast<MessageId>(messages_.size()));
    messages_.emplace_back();
  }
  const MessageId id = free_messages_.back();
  free_messages_.pop_back();
  Message& made = messages_[id];
  made.kind = kind;
  made.from = from;
  made.to = to;
  made.landed = made.reports_sent = false;
  made.uses = 1;
  made.source = nullptr;
  made.nothing = nullptr;
  made.payload.clear();
  return id;
}

void Network::release(MessageId id) {
  if (--messages_[id].uses > 0) return;
  std::vector<std::byte>& payload = messages_[id].payload;
  if (params_.poison && !payload.empty()) std::memset(payload.data(), 0xdb, payload.size());
  free_messages_.push_back(id);
}

void Network::charge(int rank, Time duration) {
  Time& until = hosts_[static_cast<size_t>(rank)].busy_until;
  until = std::max(until, now_) + duration;
}

void Network::set_flag(int rank, std::atomic<uint64_t>& flag, uint64_t value, Time later) {
  if (free_flags_.empty()) {
    free_flags_.push_back(static_cast<uint32_t>(flags_.size()));
    flags_.emplace_back();
  }
  const uint32_t index = free_flags_.back();
  free_flags_.pop_back();
  flags_[index] = {&flag, value, rank};
  queue_.push(std::max(now_, busy_until(rank)) + later, QueuedEvent::kFlag, index);
}

Network::Port& Network::port(const Message& message, int rank) {
  const bool shared = params_.ports == Ports::kNode && !near(message.from, message.to);
  return shared ? node_ports_[static_cast<size_t>(node(rank))] : hosts_[static_cast<size_t>(rank)].port;
}

Time Network::jitter(const Link& link) {
  const Time jitter = random_.below(link.jitter_ns);
  return random_.one_in(64) ? 16 * jitter : jitter;
}

void Network::depart(MessageId id) {
  Message& message = messages_[id];
  if (observer_) observer_->posts(message);
  if (busy_until(message.from) > now_) return queue_.push(busy_until(message.from), QueuedEvent::kDepart, id);
  leave(id);
}

void Network::leave(MessageId id) {
  Message& message = messages_[id];
  Pair& way = pairs_[message.pair];
  const Link& link = this->link(message.from, message.to);
  Port& sender = port(message, message.from);
  counters_.between_nodes += message.bytes > 0 && &link == &params_.between_nodes;
  const Time start = std::max(now_, sender.out_free);
  message.left = start + link.transfer_ns(message.bytes);
  sender.out_free = message.left + link.gap_ns;
  way.last_arrival = std::max(way.last_arrival, start + link.alpha_ns + jitter(link));
  trace(message.note.epoch ^ message.note.bytes << 20);
  trace(static_cast<uint64_t>(message.note.op) << 32 ^ message.note.signature);
  trace(static_cast<uint64_t>(message.note.kind) << 32 ^ static_cast<uint64_t>(message.note.index) << 48 ^
        message.note.completed);
  trace(static_cast<uint64_t>(message.from) << 32 ^ static_cast<uint64_t>(message.to) ^ message.bytes << 16);
  if (message.reports_sent && message.landing == Message::Landing::kBuffered) {
    queue_.push(message.left, QueuedEvent::kSent, id);
  }
  if (observer_) observer_->departs(message, start, sender.out_free);
  queue_.push(way.last_arrival, QueuedEvent::kArrive, id);
}

void Network::arrive(MessageId id) {
  const Message& message = messages_[id];
  const Link& link = this->link(message.from, message.to);
  Port& receiver = port(message, message.to);
  const Time done = std::max(now_, receiver.in_free) + link.transfer_ns(message.bytes);
  receiver.in_free = done + link.gap_ns;
  if (done <= now_ && receiver.delivering == 0) return deliver(id);
  ++receiver.delivering;
  queue_.push(done, QueuedEvent::kDeliver, id);
}

void Network::deliver(MessageId id) {
  Message& message = messages_[id];
  const bool put = message.kind == Message::Kind::kPut;
  const bool sent_follows = message.reports_sent && message.landing == Message::Landing::kLast;
  if (lost(message)) {
    ++counters_.lost_messages;
    pairs_[message.pair].lost = true;
    // The sender may reuse its source when its transport reports the failure.
    if (sent_follows) queue_.push(now_ + params_.detection_ns, QueuedEvent::kSent, id);
    return release(id);
  }
  if (put && sent_follows) {
    queue_.push(now_ + (params_.random ? link(message.to, message.from).alpha_ns : 0), QueuedEvent::kSent, id);
  } else if (put && !message.reports_sent) {
    finish_put(pairs_[message.pair]);
  }
  if (put && !land(message)) {
    ++counters_.dropped_puts;
    put_read(pairs_[message.pair]);
    return release(id);
  }
  Transport& receiver = transport(message.to);
  Pair& way = pairs_[message.pair];
  if (!way.heard) {
    way.heard = true;
    receiver.peers_[message.from];
    if (!alive(message.from)) detect_later(message.to, message.from);
  }
  if (observer_) observer_->arrives(message, now_);
  receiver.ready_.push_back({Event::Kind::kMessage, message.from, id, 0});
  wake(message.to);
}

bool Network::land(Message& message) {
  if (message.landed) return true;
  std::byte* const memory = transport(message.to).writable(message.from, message.target, message.bytes);
  if (!memory) return false;
  const std::byte* const from = message.source ? message.source : message.payload.data();
  if (message.bytes && !is_nothing(from) && !is_nothing(memory)) std::memcpy(memory, from, message.bytes);
  message.source = nullptr;
  message.landed = true;
  return true;
}

void Network::sent(MessageId id) {
  const Message& message = messages_[id];
  Transport& sender = transport(message.from);
  if (alive(message.from)) {
    if (message.landing == Message::Landing::kBuffered && message.source) buffer(messages_[id]);
    finish_put(pairs_[message.pair]);
    sender.ready_.push_back({Event::Kind::kSent, message.to, id, message.token});
    wake(message.from);
  }
  release(id);
}

void Network::buffer(Message& message) {
  message.payload.assign(message.source, message.source + message.bytes);
  message.source = nullptr;
}

void Network::finish_put(Pair& pair) {
  --pair.puts_used;
  unstarve(pair);
}

void Network::put_read(Pair& pair) {
  --pair.unread_puts;
  unstarve(pair);
}

void Network::unstarve(Pair& pair) {
  if (!pair.starved) return;
  pair.starved = false;
  wake(pair.from);
}

void Network::free_slot(Pair& pair) {
  ++pair.freed;
  if (pair.freed * 2 >= params_.slots_per_pair || pair.starved) return_credits(pair);
}

void Network::return_credits(Pair& pair) {
  if (pair.freed == 0 || pair.credits_going > 0) return;
  pair.credits_going = pair.freed;
  pair.freed = 0;
  queue_.push(now_ + link(pair.to, pair.from).alpha_ns, QueuedEvent::kCredit,
              transport(pair.from).peers_[pair.to].pair);
}

void Network::credit(Pair& pair) {
  pair.slots_used -= pair.credits_going;
  pair.credits_going = 0;
  unstarve(pair);
}

bool Network::refuse(int rank) {
  if (!random_.permille(params_.refuse_permille)) return false;
  ++counters_.refused;
  // One wake-up however much is refused: each retries everything, and more than one each would only breed.
  Host& host = hosts_[static_cast<size_t>(rank)];
  if (host.retries > now_) return true;
  host.retries = now_ + 1 + random_.below(params_.between_nodes.alpha_ns);
  wake_at(rank, host.retries);
  return true;
}

}  // namespace ibcoll::sim
