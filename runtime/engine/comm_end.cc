// SPDX-License-Identifier: BSD-3-Clause
// A collective that stalls, ends or is given up.
#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "runtime/comm/comm.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/request.h"
#include "runtime/engine/team.h"

namespace ibcoll {

void Comm::probe(const Request& request) noexcept {
  const std::string call = request.call();
  std::vector<std::byte> payload(sizeof(PairBytes) + call.size());
  std::memcpy(payload.data() + sizeof(PairBytes), call.data(), call.size());
  const auto ask = [&](int peer) {
    const PairBytes bytes = request.pair_bytes(peer);
    std::memcpy(payload.data(), &bytes, sizeof bytes);
    (void)team_.send(peer, note(NoteKind::kProbe, payload.size(), 0), payload);
  };
  if (wait_.kind == Wait::Kind::kReady || wait_.kind == Wait::Kind::kReceivedFrom) {
    ask(wait_.peer);
    return;
  }
  if (polls_memory()) {  // what other nodes owe, this node's leader waits for
    for (int local = 0; local < window_->size(); ++local)
      if (local != window_->rank()) ask(team_.team_rank(window_->job_rank(local)));
    return;
  }
  for (const Channel* c = channels_.first(); c; c = c->next_peer)
    if (c->announced.head || c->puts.head) ask(c->peer);
  if (wait_.kind == Wait::Kind::kArrival)
    for (int i = 1; i < size_; ++i)
      if (const Channel* const c = channels_.find(peer(i)); !c || !c->arrived) ask(peer(i));
}

// The peer has completed this collective. What it sent is here, and more will not come; nor will it take more.
void Comm::on_ended(int peer) noexcept {
  const Channel* const c = channels_.find(peer);
  const bool is_awaited = (wait_.kind == Wait::Kind::kReady || wait_.kind == Wait::Kind::kReceivedFrom) &&
                          wait_.peer == peer && !satisfied(wait_);
  if (c && c->announced.head)
    mismatch(peer, 0, c->announced.head->bytes, "bytes of the next message from it");
  else if (c && c->puts.head)
    mismatch(peer, 0, c->puts.head->bytes, "bytes of the next message to it");
  else if (is_awaited)
    mismatch(peer, 0, wait_.value, wait_.kind == Wait::Kind::kReady ? "bytes of a message to it" : "messages from it");
  else if (wait_.kind == Wait::Kind::kArrival && !satisfied(wait_) && (!c || (!c->arrived && !c->served)))
    mismatch(peer, 0, wait_.blocks->size(peer), "bytes of a message to it");
  else if (owes_step(peer))
    other_call(peer);
}

// The wait is for what the peer was to publish in the node window.
bool Comm::owes_step(int peer) const noexcept {
  if (!polls_memory()) return false;
  int local = 0;
  while (local < window_->size() && team_.team_rank(window_->job_rank(local)) != peer) ++local;
  if (local == window_->size() || local == window_->rank()) return false;
  if (wait_.kind == Wait::Kind::kStep || wait_.kind == Wait::Kind::kSoleStep)
    return window_->has_turn(window_turn_) && window_->holds_back(local);
  return (wait_.peer < 0 || wait_.peer == local) && !window_->published(local, wait_.value);
}

bool Comm::matched() noexcept {
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

void Comm::release() noexcept {
  arrivals_ = nullptr;
  arrivals_tail_ = &arrivals_;
  landings_ = nullptr;
  landings_tail_ = &landings_;
  free_messages_ = nullptr;
  channels_.reset(arena_);
  arena_.reset();
}

bool Comm::conceal(int peer, Message& announced) noexcept {
  if (announced.region.key == 0) return true;
  if (!team_.transport(peer).conceal(team_.job_rank(peer), announced.region)) return false;
  announced.region.key = 0;
  return true;
}

bool Comm::conceal() noexcept {
  bool all = true;
  for (Channel* c = channels_.first(); c; c = c->next_peer)
    for (Message* m = c->announced.head; m; m = m->next) all = conceal(c->peer, *m) && all;
  return all;
}

void Comm::close() noexcept {
  for (Channel* c = channels_.first(); c; c = c->next_peer) {
    while (EarlyMessage* const early = c->unexpected) {
      c->unexpected = early->next;
      team_.engine().recycle(early);
    }
    if (c->blocked) team_.engine().forget(*c);
    if (c->eager_taken > 0) team_.completed_with_eager_from(c->peer, op_);
  }
  if (uses_window_) window_->end_turn(window_turn_);
}

std::string Comm::describe_end() const {
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

std::string Comm::describe_wait() const {
  switch (wait_.kind) {
    case Wait::Kind::kNothing:
      return "is about to run";
    case Wait::Kind::kReady:
      return fmt::format("waits for rank {} to arrive, to send it {} bytes", wait_.peer, wait_.value);
    case Wait::Kind::kReceivedFrom: {
      const Channel* const c = channels_.find(wait_.peer);
      return fmt::format("waits for data of rank {} ({} of {} messages landed)", wait_.peer, c ? c->landed : 0,
                         wait_.value);
    }
    case Wait::Kind::kStep:
    case Wait::Kind::kSoleStep:
      return fmt::format("waits for the ranks of its node to leave step {} of the node window", window_->step());
    case Wait::Kind::kPublished:
    case Wait::Kind::kAllPublished:
      return fmt::format("waits for data of rank {} in step {} of the node window",
                         team_.team_rank(window_->job_rank(wait_.peer < 0 ? first_behind() : wait_.peer)),
                         window_->step());
    case Wait::Kind::kArrival:
    case Wait::Kind::kReceived:
    case Wait::Kind::kLanding:
    case Wait::Kind::kFlushed:
      break;
  }
  const bool receives = wait_.kind == Wait::Kind::kReceived || wait_.kind == Wait::Kind::kLanding;
  std::string from;
  for (const Channel* c = channels_.first(); c; c = c->next_peer)
    if (receives                             ? c->announced.head != nullptr
        : wait_.kind == Wait::Kind::kFlushed ? c->puts.head != nullptr
                                             : !c->arrived)
      from += fmt::format("{}{}", from.empty() ? "" : ",", c->peer);
  const char* const what = receives                             ? "waits for data of ranks"
                           : wait_.kind == Wait::Kind::kFlushed ? "waits to send its data to ranks"
                                                                : "waits for an arrival among ranks";
  return fmt::format("{} {} ({} of {} messages landed)", what, from.empty() ? "?" : from, messages_landed_,
                     messages_expected_);
}

}  // namespace ibcoll
