// SPDX-License-Identifier: BSD-3-Clause
// A collective that stalls, ends or is given up.
#include <fmt/format.h>

#include "runtime/engine/engine.h"
#include "runtime/engine/exchange.h"
#include "runtime/engine/request.h"
#include "runtime/engine/team.h"
#include "runtime/engine/trace.h"

namespace ibcoll {

void Exchange::probe() noexcept {
  if (wait_.kind == WaitKind::kNone) return;
  uint64_t count = 0, at = 0;
  awaited([](void* to, int) { ++*static_cast<uint64_t*>(to); }, &count);
  // Each rank begins with another one, and where it ended the last time.
  const uint64_t first = count > kMostAsked ? static_cast<uint64_t>(team_.rank()) + asked_ : 0;
  auto ask_one = [&](int peer) {
    if ((at++ + count - first % count) % count < kMostAsked) (void)team_.send_calls(peer, op_, Team::Probe::kWaits);
  };
  awaited([](void* to, int peer) { (*static_cast<decltype(ask_one)*>(to))(peer); }, &ask_one);
  asked_ += kMostAsked;
}

// The peer has completed this collective. What it sent is here, and more will not come; nor will it take more.
void Exchange::on_ended(int peer) noexcept {
  const Channel* const c = channels_.find(peer);
  if (c && c->announced.head)
    mismatch(peer, 0, c->announced.head->bytes, "bytes of the next message from it");
  else if (c && c->puts.head)
    mismatch(peer, 0, c->puts.head->total, "bytes of the next message to it");
  else
    rule_of(wait_).ended(*this, wait_, peer);
}

bool Exchange::matched() noexcept {
  for (const Channel* c = channels_.first(); c; c = c->next_peer) {
    if (c->unexpected)
      mismatch(c->peer, c->unexpected->bytes, 0, "bytes of one more message from it");
    else if (c->advertisements.head)
      mismatch(c->peer, c->advertisements.head->bytes, 0, "bytes of one more message to it");
    else if (c->announced.head)
      mismatch(c->peer, 0, c->announced.head->bytes, "bytes of the next message from it");
    else
      continue;
    return false;
  }
  return true;
}

void Exchange::release() noexcept {
  forget_run();
  channels_.reset(arena_);
  arena_.reset();
}

bool Exchange::conceal(int peer, Message& announced) noexcept {
  if (announced.region.key == 0) return true;
  if (!team_.transport(peer).conceal(team_.job_rank(peer), announced.region)) return false;
  announced.region.key = 0;
  return true;
}

bool Exchange::conceal() noexcept {
  bool all = true;
  for (Channel* c = channels_.first(); c; c = c->next_peer)
    for (Message* m = c->announced.head; m; m = m->next) all = conceal(c->peer, *m) && all;
  return all;
}

void Exchange::close() noexcept {
  if (channels_.first()) close_channels();
  team_.engine().forget_copy(*this);
  if (uses_window_) window_->queue().return_ticket(window_ticket_);
}

void Exchange::close_channels() noexcept {
  for (Channel* c = channels_.first(); c; c = c->next_peer) {
    while (EarlyMessage* const early = c->unexpected) {
      c->unexpected = early->next;
      team_.engine().recycle(early);
    }
    if (c->blocked) team_.engine().forget(*c);
    if (c->credit.taken() > 0 && team_.credit().ended(c->peer, op_, c->credit.bytes_taken()))
      team_.engine().credit_is_due();
  }
}

std::string Exchange::describe_end() const {
  std::string writers;
  for (const Channel* c = channels_.first(); c; c = c->next_peer)
    for (const Message* m = c->announced.head; m; m = m->next)
      if (m->region.key != 0) {
        writers += fmt::format("{}{}", writers.empty() ? "" : ", ", c->peer);
        break;
      }
  if (writers.empty()) return fmt::format("{} messages of it are still being sent", puts_pending_);
  return fmt::format("rank {} is in the middle of a write to them, and does not go on", writers);
}

std::string Exchange::describe_wait() const noexcept {
  return text_or("waits", [this] { return rule_of(wait_).describe(*this, wait_); });
}

void Exchange::awaited(void (*ask)(void* to, int rank), void* to) const {
  rule_of(wait_).awaited(*this, wait_, ask, to);
}

void Exchange::add_to_trace(TraceBuffer& buffer, TracedCall call) const noexcept {
  trace_.add_node_to(call);
  buffer.add(call);
  for (const Channel* c = channels_.first(); c; c = c->next_peer) {
    if (!c->times.any()) continue;
    TracedPeer peer = ExchangeTrace::traced_peer(c->times, call.arrival_ns);
    peer.job_rank = team_.job_rank(c->peer);
    buffer.add_peer(peer);
  }
}

std::string Exchange::describe_landed() const {
  return fmt::format("({} of {} messages landed)", messages_landed_, messages_expected_);
}

}  // namespace ibcoll
