// SPDX-License-Identifier: BSD-3-Clause
// How two ranks meet: greetings until each knows that the other has its own, then the keys that are new.
#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/verbs/connector.h"
#include "runtime/verbs/recovery.h"

namespace ibcoll::verbs {
namespace {

constexpr Time kFirstPause = 10 * kMillisecond;  // between greetings
constexpr Time kLongestPause = 160 * kMillisecond;
// A peer that polls has answered by then; this rank waits no longer for one that computes.
constexpr Time kUsualConnectTime = 20 * kMillisecond;
constexpr Time kBusyFactor = 2;      // a peer that computes may take this many times as long as a device retries
constexpr int kMostGreetings = 128;  // in one poll: others may send datagrams, too

}  // namespace

Time Connector::time_to_answer() const {
  return kBusyFactor * local_.settings.retry_time() + 2 * manager_->delay_of_loss();
}

void Connector::greet(Peer& peer) {
  Handshake& handshake = peer.connection.handshake;
  handshake.mine.has_yours = handshake.has_theirs;
  handshake.mine.confirmed = peer.connection.ready();
  const Status sent = manager_->send(peer.rank, handshake.mine);
  if (sent.ok())
    handshake.cannot_greet_since = 0;
  else
    cannot_reach(peer, handshake.cannot_greet_since, sent);
}

// Out of reach is not lost yet: links come up, and switches learn.
void Connector::cannot_reach(Peer& peer, Time& since, const Status& why) {
  if (since == 0) {
    since = now();
    log(LogLevel::kWarning, "verbs: rank {}: rank {} is out of reach: {}; tried again for {:.0f} s", local_.rank,
        peer.rank, why.text(), static_cast<double>(time_to_answer()) / 1e9);
  } else if (now() - since > time_to_answer()) {
    recovery_.fail(peer, why.text());
  }
}

// Its greetings would find no answer, and it would wait for as long as a collective may take.
void Connector::refuse(const Peer& peer, uint32_t epoch) {
  Greeting answer;
  answer.job = local_.job;
  answer.from = static_cast<uint32_t>(local_.rank);
  answer.to = static_cast<uint32_t>(peer.rank);
  answer.epoch = epoch;
  answer.has_yours = answer.given_up = 1;
  (void)manager_->send(peer.rank, answer);
}

bool Connector::is_connecting() const noexcept {
  return unsent_.load(std::memory_order_relaxed) &&
         now() - started_at_.load(std::memory_order_relaxed) < kUsualConnectTime;
}

void Connector::count_unsent() noexcept {
  const auto unsent = [](const Peer* peer) { return peer->sending.has_unposted(); };
  unsent_.store(std::any_of(greeted_.begin(), greeted_.end(), unsent), std::memory_order_relaxed);
}

void Connector::serve_greetings() {
  Greeting theirs;
  for (int i = 0; i < kMostGreetings && manager_->receive(theirs); ++i) on_greeting(theirs);
  if (greeted_.empty()) return;
  for (size_t i = 0; i < greeted_.size();) {
    Peer& peer = *greeted_[i];
    Handshake& handshake = peer.connection.handshake;
    const Time begin = now();
    if (peer.new_keys.sent() && peer.has_all_keys()) {
      connected(peer);
    } else if (begin >= std::max(handshake.next_greeting, no_greeting_before_) && manager_->has_room()) {
      greet(peer);
      handshake.pause = std::clamp(2 * handshake.pause, kFirstPause, kLongestPause);
      handshake.next_greeting = now() + handshake.pause;
      rest_after(begin);
    }
    if (i < greeted_.size() && greeted_[i] == &peer) ++i;  // else it is out of the list
  }
}

// If no host answers at a peer's address, the call that began then has blocked for a second: no other such call for as
// long as it took.
void Connector::rest_after(Time begin) {
  const Time end = now();
  if (end - begin > kFirstPause) no_greeting_before_ = 2 * end - begin;
}

void Connector::on_greeting(const Greeting& theirs) {
  if (theirs.job != local_.job || theirs.to != static_cast<uint32_t>(local_.rank) || !theirs.fits()) return;
  Peer* const found = local_.find_or_make(static_cast<int>(theirs.from));
  if (found == nullptr) return;
  // A rank that leaves would read no message, and accepts no first connection. A connection that broke may be made
  // again, because the peer still needs the goodbye.
  if (leaving_ && found->connection.epoch() == 0 && theirs.given_up == 0) return refuse(*found, theirs.epoch);
  if (!found->liveness.lost()) answer(*found, theirs);
  if (found->liveness.lost() && theirs.given_up == 0) refuse(*found, theirs.epoch);
}

void Connector::answer(Peer& peer, const Greeting& theirs) {
  Connection& connection = peer.connection;
  if (theirs.epoch < connection.epoch()) return;
  if (theirs.given_up != 0)
    return recovery_.fail(peer, "it closed the connection to this rank; its own error says why");
  if (theirs.epoch > connection.epoch() || connection.is(State::kNew)) {
    connection.want_epoch(theirs.epoch);
    if (connection.is(State::kGreeting) || connection.ready()) recovery_.break_connection(peer, theirs.epoch);
    if (!connection.is(State::kNew) || !start(peer)) return;  // it repeats its greeting
  }
  if (theirs.epoch != connection.epoch() || connection.is(State::kDraining)) return;
  // A sign of life: it may now compute for as long as others may. This rank may have been away itself until now.
  peer.liveness.may_take_until(now() + time_to_answer());
  if (!connection.handshake.has_theirs) {
    const Time begin = now();
    const Status status = get_ready(peer, theirs);
    if (status.code() == IBCOLL_ERR_TRANSPORT) return;
    if (status.code() == IBCOLL_ERR_TIMEOUT) {
      rest_after(begin);
      return cannot_reach(peer, connection.handshake.no_path_since, status);  // it repeats its greeting
    }
    connection.handshake.no_path_since = 0;
    if (!status.ok()) return recovery_.lack(peer, status);
    exposures_.bind_now(peer);
    if (!connection.is(State::kGreeting)) return;
    greet(peer);
  } else if (theirs.confirmed == 0) {
    greet(peer);
  }
  if (theirs.has_yours != 0 && connection.is(State::kGreeting)) connected(peer);
}

// Both queue pairs are ready.
void Connector::connected(Peer& peer) {
  if (!peer.new_keys.sent() && !send_keys(peer)) return;
  if (!peer.has_all_keys()) return;
  peer.connection.becomes_ready();
  peer.liveness.connected(now());
  stop_greeting(peer);
  log(LogLevel::kDebug, "verbs: rank {}: connected to rank {}, epoch {}", local_.rank, peer.rank,
      peer.connection.epoch());
  ++connections_;
  if (peer.connection.epoch() > 1) ++reconnections_;
  send_again(peer);
  if (!peer.connection.ready()) return;
  peer.receiving.forget_notified();
  sender_.pump(peer);
}

// What has landed there is complete; what has not is posted again.
void Connector::send_again(Peer& peer) {
  peer.sending.resume(peer.connection.remote.delivered, [&](Outgoing& out, bool landed) {
    if (!landed && !out.refused) {
      if (out.kind == SlotKind::kPut && !out.sent_pending)  // the source is the caller's again
        recovery_.fail(peer, "its device has acknowledged a put that the rank knows nothing of");
      return;
    }
    if (!landed) {
      peer.sending.staged(out.sequence).header.kind = out.kind = SlotKind::kDropped;
      out.refused = false;
    }
    if (out.sent_pending) sender_.report_sent(peer, out);
  });
}

// False: the send queue has no room now.
bool Connector::send_keys(Peer& peer) {
  if (peer.connection.handshake.mine.rekeys > 0) {
    Rekeys& keys = peer.channel->rekeys;
    keys.digest = keys.digest_now();
    const ibv_sge sge{reinterpret_cast<uintptr_t>(&keys), static_cast<uint32_t>(keys.bytes()),
                      peer.channel.staging_key()};
    ibv_send_wr* const request = requests_.link(peer, sge, Work::kLocal, 0, false);
    if (!request) return false;
    aim(*request, peer, offsetof(Landing, rekeys));
    requests_.flush(peer);
  }
  if (!peer.connection.is(State::kGreeting)) return false;
  peer.new_keys.mark_sent();
  return true;
}

}  // namespace ibcoll::verbs
