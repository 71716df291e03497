// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/completions.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/log.h"

namespace ibcoll::verbs {
namespace {

constexpr int kBatch = 32;

// The peer's device let a write not in: its own fault or a late one, and no reason to lose the peer.
bool is_refusal(ibv_wc_status status) {
  return status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_OP_ERR;
}

// The device refuses what this rank asked of it, as where the program has unmapped a buffer that is still sent.
bool is_own_fault(ibv_wc_status status) {
  return status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_LOC_PROT_ERR ||
         status == IBV_WC_MW_BIND_ERR || status == IBV_WC_FATAL_ERR;
}

std::string describe(const ibv_wc& done) {
  switch (done.status) {
    case IBV_WC_RETRY_EXC_ERR:
      return "it does not answer any more (transport retry counter exceeded); has its process ended, or its link?";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "it had no receive posted (receiver-not-ready retry counter exceeded): a fault of ibcoll";
    default:
      return fmt::format("{} (vendor error {})", ibv_wc_status_str(done.status), done.vendor_err);
  }
}

std::string error_text(const ibv_wc& done) {
  return text_or(kNoText, [&] { return describe(done); });
}

}  // namespace

// Throws nothing: a completion that was taken is not there again.
size_t Completions::poll() {
  ibv_wc done[kBatch];
  const int count = ibv_poll_cq(local_.adapter.completions(), kBatch, done);
  for (int i = 0; i < count; ++i) on_completion(done[i]);
  if (count < 0) [[unlikely]]
    lose_device();
  return static_cast<size_t>(std::max(count, 0));
}

// Nothing is known of any connection any more.
void Completions::lose_device() {
  for (const std::unique_ptr<Peer>& peer : local_.peers.all())
    if (peer && peer->connection.has_queue_pair() && !peer->liveness.lost())
      recovery_.lack(
          *peer, error(IBCOLL_ERR_TRANSPORT, "{}, this rank's own device, fails: ibv_poll_cq", local_.adapter.name()));
}

void Completions::on_completion(const ibv_wc& done) {
  const WorkId id(done.wr_id);
  Peer* const peer = local_.peers.find(id.rank);
  if (peer == nullptr) return;
  Connection& connection = peer->connection;
  if (!connection.has_queue_pair() || id.epoch != (connection.epoch() & 0xff)) return;
  if (id.work == Work::kSendMark) connection.draining.sends_done = true;
  if (id.work == Work::kReceiveMark) connection.draining.receives_done = true;
  if (done.status != IBV_WC_SUCCESS) {
    if (id.work != Work::kSendMark && id.work != Work::kReceiveMark) on_error(*peer, done, id.work, id.request);
  } else if (id.work == Work::kReceive) {
    peer->receiving.add_immediate();
    local_.outbox.ready(*peer);
    if (!connection.is(State::kDraining)) {
      if (++connection.receives_used == kReceiveBatch) {
        connection.receives_used = 0;
        const Status status = requests_.post_receives(*peer, Work::kReceive, kReceiveBatch);
        if (!status.ok()) recovery_.lack(*peer, status);
      }
      if (connection.is(State::kGreeting) && connection.handshake.has_theirs) connector_.connected(*peer);
    }
  } else if (id.work == Work::kSend || id.work == Work::kLocal) {
    complete(*peer, id.request);
  }
  if (connection.is(State::kDraining) && connection.draining.done()) recovery_.drained(*peer);
}

void Completions::complete(Peer& peer, uint32_t request) {
  if (sender_.puts_pending())
    peer.sending.queue.complete(request, [&](uint64_t sequence) {
      Outgoing* const out = peer.sending.find(sequence);
      if (out != nullptr && out->sent_pending) sender_.report_sent(peer, *out);
    });
  else
    peer.sending.queue.complete(request);
  peer.liveness.answered();
}

void Completions::on_error(Peer& peer, const ibv_wc& done, Work work, uint32_t request) {
  if (recovery_.look_at_device()) return;
  if (done.status == IBV_WC_WR_FLUSH_ERR) {
    // Only the peer's error shows here: it went first, and will greet anew or be found dead.
    if (!peer.connection.is(State::kDraining)) recovery_.connect_anew(peer);
    return;
  }
  if (is_refusal(done.status) && work == Work::kSend) {
    const uint64_t sequence = peer.sending.queue.message_at(request);
    Outgoing* const out = sequence != 0 ? peer.sending.find(sequence) : nullptr;
    if (out != nullptr && out->kind == SlotKind::kPut) {
      out->refused = true;
      sender_.report_refused(peer, out->bytes, out->to.address, ibv_wc_status_str(done.status));
      recovery_.break_connection(peer, peer.connection.epoch() + 1);
      return;
    }
  }
  if (done.status == IBV_WC_RETRY_EXC_ERR && recovery_.try_again(peer)) return;
  if (is_own_fault(done.status)) return recovery_.lack(peer, error(IBCOLL_ERR_TRANSPORT, "{}", error_text(done)));
  recovery_.fail(peer, error_text(done));
}

void Completions::end_late_drains() {
  const Time time = now();
  const auto is_late = [=](const std::unique_ptr<Peer>& peer) {
    return peer && peer->connection.is(State::kDraining) && time > peer->connection.draining.deadline;
  };
  if (std::none_of(local_.peers.all().begin(), local_.peers.all().end(), is_late)) return;
  // The program may not have polled for long. Completions that came meanwhile count: by one of them, a peer may have
  // been notified that its put has arrived.
  while (poll() > 0) {
  }
  for (const std::unique_ptr<Peer>& peer : local_.peers.all())
    if (is_late(peer)) recovery_.drained(*peer);
}

void Completions::wait_until_drained(Peer& peer) {
  while (peer.connection.is(State::kDraining))
    if (poll() == 0 && now() > peer.connection.draining.deadline) recovery_.drained(peer);
}

}  // namespace ibcoll::verbs
