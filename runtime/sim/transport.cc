// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/sim/transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/json.h"
#include "runtime/sim/network.h"

namespace ibcoll::sim {

size_t Transport::slot_bytes() const { return network_.params().slot_bytes; }
// A rank that looks at the clock has done what it was busy with.
Time Transport::now() const { return std::max(network_.now(), network_.busy_until(rank_)); }

bool Transport::send(int peer, const Note& note, std::span<const std::byte> payload) {
  Pair& way = network_.pair(rank_, peer);
  if (!network_.alive(rank_) || peers_[peer].failed || network_.refuse(rank_)) return false;
  if (way.slots_used >= network_.params().slots_per_pair) {
    ++network_.counters_.no_credit;
    way.starved = true;
    network_.return_credits(way);
    return false;
  }
  ++way.slots_used;
  const MessageId id = network_.make_message(Message::Kind::kSend, rank_, peer);
  Message& message = network_.message(id);
  message.pair = peers_[peer].pair;
  message.note = note;
  message.bytes = payload.size();
  if (network_.is_nothing(payload.data()))
    message.nothing = payload.data();
  else
    message.payload.assign(payload.begin(), payload.end());
  ++network_.counters_.messages;
  network_.counters_.bytes += payload.size();
  network_.depart(id);
  return true;
}

RemoteRegion Transport::expose(int peer, std::span<std::byte> memory) {
  if (network_.random().permille(network_.params().hide_permille)) return {};
  if (free_regions_.empty()) {
    free_regions_.push_back(static_cast<uint32_t>(regions_.size()));
    regions_.emplace_back();
  }
  const uint32_t index = free_regions_.back();
  free_regions_.pop_back();
  Region& region = regions_[index];
  region = {peer, region.generation + 1, memory.data(), memory.size()};
  return {reinterpret_cast<uintptr_t>(memory.data()), memory.size(),
          static_cast<uint64_t>(region.generation) << 32 | index};
}

bool Transport::conceal(int peer, const RemoteRegion& region) {
  const uint32_t index = static_cast<uint32_t>(region.key);
  if (region.key == 0 || index >= regions_.size()) return true;
  Region& mine = regions_[index];
  if (mine.peer != peer || mine.generation != region.key >> 32) return true;
  mine.peer = -1;
  free_regions_.push_back(index);
  return true;
}

std::byte* Transport::writable(int peer, const RemoteRegion& region, uint64_t bytes) {
  const uint32_t index = static_cast<uint32_t>(region.key);
  if (region.key == 0 || index >= regions_.size()) return nullptr;
  const Region& mine = regions_[index];
  const uint64_t base = reinterpret_cast<uintptr_t>(mine.memory);
  if (mine.peer != peer || mine.generation != region.key >> 32 || region.address < base) return nullptr;
  const uint64_t offset = region.address - base;
  if (offset > mine.bytes || bytes > mine.bytes - offset) return nullptr;
  return mine.memory + offset;
}

PutResult Transport::put(int peer, const RemoteRegion& to, std::span<const std::byte> from, const Note& note,
                         uint64_t token) {
  Pair& way = network_.pair(rank_, peer);
  if (!network_.alive(rank_) || peers_[peer].failed || network_.refuse(rank_)) return PutResult::kBusy;
  if (way.puts_used >= network_.params().puts_per_pair || way.unread_puts >= network_.params().unread_puts_per_pair) {
    ++network_.counters_.no_credit;
    way.starved = true;
    return PutResult::kBusy;
  }
  ++way.puts_used;
  ++way.unread_puts;
  const MessageId id = network_.make_message(Message::Kind::kPut, rank_, peer);
  Message& message = network_.message(id);
  message.pair = peers_[peer].pair;
  message.note = note;
  message.bytes = from.size();
  message.source = from.data();
  message.target = to;
  message.token = token;
  choose_landing(message);
  ++network_.counters_.puts;
  network_.counters_.bytes += from.size();
  const bool pending = message.reports_sent;
  network_.depart(id);
  return pending ? PutResult::kPending : PutResult::kDone;
}

void Transport::choose_landing(Message& message) {
  using Landing = Message::Landing;
  if (!network_.params().random) {
    message.landing = Landing::kLast;
    message.reports_sent = true;
    message.uses = 2;
    return;
  }
  const uint64_t choice = network_.random().below(4);
  message.landing = choice == 0 ? Landing::kAtOnce : choice == 1 ? Landing::kLast : Landing::kBuffered;
  message.reports_sent = choice == 1 || choice == 2;
  if (message.reports_sent) message.uses = 2;
  if (message.landing == Landing::kAtOnce && network_.alive(message.to) && !network_.land(message)) {
    message.target.key = 0;
  }
  if (!message.reports_sent && message.source) network_.buffer(message);
}

size_t Transport::poll(std::span<Event> events) {
  for (const MessageId id : held_) {
    const Message& message = network_.message(id);
    if (message.kind == Message::Kind::kSend) network_.free_slot(network_.pairs_[message.pair]);
    if (message.kind == Message::Kind::kPut) network_.put_read(network_.pairs_[message.pair]);
    network_.release(id);
  }
  held_.clear();
  size_t count = 0;
  for (; count < events.size() && next_ready_ < ready_.size() && network_.alive(rank_); ++count) {
    const Ready ready = ready_[next_ready_++];
    if (next_ready_ == ready_.size()) ready_.clear(), next_ready_ = 0;
    Event& event = events[count];
    event = Event{ready.kind, ready.peer, {}, {}, ready.token};
    if (ready.kind == Event::Kind::kSent) continue;
    const Message& message = network_.message(ready.message);
    event.note = message.note;
    if (Observer* const observer = network_.observer()) observer->taken(message, network_.now());
    if (message.nothing)
      event.payload = {message.nothing, message.bytes};
    else if (message.kind != Message::Kind::kPut)
      event.payload = message.payload;
    held_.push_back(ready.message);
  }
  return count;
}

void Transport::check_peers() {
  for (const int dead : detected_) report_failure(dead);
  detected_.clear();
}

void Transport::report_failure(int dead) {
  Peer& peer = peers_[dead];
  if (peer.failed) return;
  peer.failed = true;
  const MessageId id = network_.make_message(Message::Kind::kFailure, dead, rank_);
  Message& message = network_.message(id);
  message.note = {};
  const std::string why =
      fmt::format("sim: rank {} died at {} ns", dead, network_.hosts_[static_cast<size_t>(dead)].died);
  const std::byte* const text = reinterpret_cast<const std::byte*>(why.data());
  message.payload.assign(text, text + why.size());
  ready_.push_back({Event::Kind::kPeerFailed, dead, id, 0});
  network_.wake(rank_);
}

LinkModel Transport::model() const {
  const Link& link = network_.params().between_nodes;
  return {static_cast<double>(link.alpha_ns) / 1e3, static_cast<double>(link.beta_ps_per_byte) / 1e6};
}

Json Transport::describe() const {
  const Counters& counters = network_.counters();
  return {{"name", "sim"},
          {"connections", peers_.size()},
          {"ranks", network_.size()},
          {"seed", network_.params().seed},
          {"virtual_ns", network_.now()},
          {"events", counters.events},
          {"messages", counters.messages},
          {"puts", counters.puts},
          {"bytes", counters.bytes},
          {"no_credit", counters.no_credit},
          {"refused", counters.refused},
          {"dropped_puts", counters.dropped_puts},
          {"lost_messages", counters.lost_messages}};
}

}  // namespace ibcoll::sim
