// SPDX-License-Identifier: BSD-3-Clause
// How two ranks meet: greetings until each knows that the other has its own, then the keys that are new.
#include <algorithm>
#include <atomic>

#include "runtime/base/log.h"
#include "runtime/verbs/transport.h"

namespace ibcoll::verbs {
namespace {

constexpr Time kFirstPause = 10 * kMillisecond;  // between greetings
constexpr Time kLongestPause = 160 * kMillisecond;
// A peer that waits has answered by then; nobody waits longer for a late one.
constexpr Time kSettling = 20 * kMillisecond;
constexpr int kMostGreetings = 128;  // in one poll: others may send datagrams, too

}  // namespace

void Transport::greet(Peer& peer) {
  peer.mine.has_yours = peer.has_theirs;
  peer.mine.confirmed = peer.state == Peer::State::kReady;
  const Status sent = connections_->send(peer.rank, peer.mine);
  if (sent.ok())
    peer.out_of_reach_since = 0;
  else
    cannot_reach(peer, peer.out_of_reach_since, sent);
}

// Out of reach is not lost yet: links come up, and switches learn.
void Transport::cannot_reach(Peer& peer, Time& since, const Status& why) {
  if (since == 0) {
    since = now();
    log(LogLevel::kWarning, "verbs: rank {}: rank {} is out of reach: {}; tried again for {:.0f} s", rank_, peer.rank,
        why.text(), static_cast<double>(time_to_answer()) / 1e9);
  } else if (now() - since > time_to_answer()) {
    fail(peer, why.text());
  }
}

// Its greetings would find no answer, and it would wait for as long as a collective may take.
void Transport::refuse(const Peer& peer, uint32_t epoch) {
  Greeting answer;
  answer.job = job_;
  answer.from = static_cast<uint32_t>(rank_);
  answer.to = static_cast<uint32_t>(peer.rank);
  answer.epoch = epoch;
  answer.has_yours = answer.given_up = 1;
  (void)connections_->send(peer.rank, answer);
}

bool Transport::settling() const noexcept {
  return unsent_.load(std::memory_order_relaxed) && now() - started_at_.load(std::memory_order_relaxed) < kSettling;
}

void Transport::count_unsent() noexcept {
  const auto unsent = [](const Peer* peer) { return peer->accepted > peer->posted_up_to; };
  unsent_.store(std::any_of(greeted_.begin(), greeted_.end(), unsent), std::memory_order_relaxed);
}

void Transport::serve_greetings() {
  Greeting theirs;
  for (int i = 0; i < kMostGreetings && connections_->receive(theirs); ++i) on_greeting(theirs);
  if (greeted_.empty()) return;
  for (size_t i = 0; i < greeted_.size();) {
    Peer& peer = *greeted_[i];
    const Time begin = now();
    if (peer.keys_told && keys_have_come(peer)) {
      connected(peer);
    } else if (begin >= std::max(peer.next_greeting, no_greeting_before_) && connections_->has_room()) {
      greet(peer);
      peer.greeting_pause = std::clamp(2 * peer.greeting_pause, kFirstPause, kLongestPause);
      peer.next_greeting = now() + peer.greeting_pause;
      rest_after(begin);
    }
    if (i < greeted_.size() && greeted_[i] == &peer) ++i;  // else it is out of the list
  }
}

// Where nobody answers for a peer's address, what began then has kept the rank for a second: now others have their
// turn.
void Transport::rest_after(Time begin) {
  const Time end = now();
  if (end - begin > kFirstPause) no_greeting_before_ = 2 * end - begin;
}

void Transport::on_greeting(const Greeting& theirs) {
  if (theirs.job != job_ || theirs.to != static_cast<uint32_t>(rank_) || !theirs.fits()) return;
  Peer* const found = find_or_make(static_cast<int>(theirs.from));
  if (found == nullptr) return;
  const auto given_up = [found] { return found->state == Peer::State::kFailed || found->failing; };
  if (!given_up()) answer(*found, theirs);
  if (given_up() && theirs.given_up == 0) refuse(*found, theirs.epoch);
}

void Transport::answer(Peer& peer, const Greeting& theirs) {
  if (theirs.epoch < peer.epoch) return;
  if (theirs.given_up != 0) return fail(peer, "it closed the connection to this rank; its own error says why");
  if (theirs.epoch > peer.epoch || peer.state == Peer::State::kNew) {
    peer.wanted_epoch = std::max(peer.wanted_epoch, theirs.epoch);
    if (peer.state == Peer::State::kGreeting || peer.state == Peer::State::kReady) break_connection(peer, theirs.epoch);
    if (peer.state != Peer::State::kNew || !start(peer)) return;  // it repeats its greeting
  }
  if (theirs.epoch != peer.epoch || peer.state == Peer::State::kDraining) return;
  // A sign of life: it may now compute for as long as others may. This rank may have been away itself until now.
  if (peer.answer_by != 0) peer.answer_by = std::max(peer.answer_by, now() + time_to_answer());
  if (!peer.has_theirs) {
    const Time begin = now();
    const Status status = get_ready(peer, theirs);
    if (status.code() == IBCOLL_ERR_TRANSPORT) return;
    if (status.code() == IBCOLL_ERR_TIMEOUT) {
      rest_after(begin);
      return cannot_reach(peer, peer.no_way_since, status);  // it repeats its greeting
    }
    peer.no_way_since = 0;
    if (!status.ok()) return fail(peer, status.text());
    bind_windows_now(peer);
    if (peer.state != Peer::State::kGreeting) return;
    greet(peer);
  } else if (theirs.confirmed == 0) {
    greet(peer);
  }
  if (theirs.has_yours != 0 && peer.state == Peer::State::kGreeting) connected(peer);
}

// Both queue pairs are ready. So is the connection, once the keys are known that have changed.
void Transport::connected(Peer& peer) {
  if (!peer.keys_told && !tell_keys(peer)) return;
  if (!keys_have_come(peer)) return;
  peer.state = Peer::State::kReady;
  peer.last_heard = peer.ready_since = now();
  peer.first_asked = peer.answer_by = 0;
  std::erase(greeted_, &peer);
  log(LogLevel::kDebug, "verbs: rank {}: connected to rank {}, epoch {}", rank_, peer.rank, peer.epoch);
  ++counters_.connections;
  if (peer.epoch > 1) ++counters_.reconnections;
  // What has landed there is done; what has not is sent again.
  for (uint64_t sequence = peer.posted_up_to > kSlots ? peer.posted_up_to - kSlots + 1 : 1; sequence <= peer.accepted;
       ++sequence) {
    Outgoing& out = peer.out(sequence);
    if (out.sequence != sequence) continue;
    out.posted = 0;
    if (sequence <= peer.their_delivered) {
      if (out.unsent) give_sent(peer, out);
    } else if (out.refused) {
      peer.staged(sequence).header.kind = out.kind = SlotKind::kDropped;
      out.refused = false;
      if (out.unsent) give_sent(peer, out);
    } else if (out.kind == SlotKind::kPut && !out.unsent) {  // the source is the caller's again
      return fail(peer, "its device has acknowledged a put that the rank knows nothing of");
    }
  }
  peer.posted_up_to = std::min(peer.their_delivered, peer.accepted);
  peer.told_consumed = 0;  // the word may have been lost
  pump(peer);
}

// False: the send queue has no room now.
bool Transport::tell_keys(Peer& peer) {
  if (peer.mine.rekeys > 0) {
    Rekeys& keys = peer.channel->rekeys;
    keys.digest = keys.digest_now();
    const ibv_sge piece{reinterpret_cast<uintptr_t>(&keys), static_cast<uint32_t>(keys.bytes()),
                        peer.staging_region->lkey};
    if (!link(peer, write_to(peer, offsetof(Landing, rekeys)), piece, Work::kLocal, 0, false)) return false;
    ring(peer);
  }
  return peer.keys_told = peer.state == Peer::State::kGreeting;
}

bool Transport::keys_have_come(Peer& peer) {
  if (peer.rekeyed.size() == peer.keys_due) return true;
  std::atomic_thread_fence(std::memory_order_acquire);
  const Rekeys keys = peer.channel->landing.rekeys;
  if (keys.epoch != peer.epoch || !keys.fits() || keys.count != peer.keys_due || keys.digest != keys.digest_now())
    return false;
  peer.rekeyed.assign(keys.keys, keys.keys + keys.count);
  return true;
}

}  // namespace ibcoll::verbs
