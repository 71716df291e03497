// SPDX-License-Identifier: BSD-3-Clause
// Connections: made on first use, made anew after an error completion, given up when the peer does not answer.
//
//   kNew -start-> kGreeting -their greeting, and word that they have ours-> kReady
//   kReady, kGreeting -an error, or a greeting of a later epoch-> kDraining -> kNew -> ... or kFailed
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "runtime/log.h"
#include "runtime/verbs/verbs_transport.h"

namespace ibcoll {

using namespace verbs;

namespace {

constexpr Time kMillisecond = 1'000'000;
constexpr Time kFirstPause = 10 * kMillisecond;  // between greetings
constexpr Time kLongestPause = 160 * kMillisecond;
constexpr Time kDrainPatience = 1'000 * kMillisecond;
constexpr Time kGoodbyePatience = 3'000 * kMillisecond;
constexpr Time kQuiet = 1'000 * kMillisecond;  // after so long a silence a peer's device is asked for a sign of life
constexpr uint32_t kMostInline = 220;

}  // namespace

VerbsTransport::Peer* VerbsTransport::find_or_make(int rank) {
  if (rank < 0 || rank >= size_ || rank == rank_ || addresses_.empty()) return nullptr;
  std::unique_ptr<Peer>& peer = peers_[static_cast<size_t>(rank)];
  if (!peer) {
    peer = std::make_unique<Peer>();
    peer->rank = rank;
    processes_.add(rank, addresses_[static_cast<size_t>(rank)].process);
  }
  return peer.get();
}

// From kNew to kGreeting. False: the peer has failed instead.
bool VerbsTransport::start(Peer& peer) {
  peer.epoch = std::max(peer.epoch + 1, peer.wanted_epoch);
  Status status = queue_pairs_ < settings_.most_queue_pairs
                      ? make_channel(peer)
                      : error(IBCOLL_ERR_TRANSPORT,
                              "it would take queue pair number {}; IBCOLL_VERBS_QUEUE_PAIRS or the device allows {}",
                              queue_pairs_ + 1, settings_.most_queue_pairs);
  if (status.ok()) status = make_queue_pair(peer);
  if (!status.ok()) {
    fail(peer, status.text());
    return false;
  }
  peer.state = Peer::State::kGreeting;
  peer.has_theirs = false;
  peer.mine.job = job_;
  peer.mine.from = static_cast<uint32_t>(rank_);
  peer.mine.to = static_cast<uint32_t>(peer.rank);
  peer.mine.epoch = peer.epoch;
  peer.mine.queue_pair = peer.queue_pair->qp_num;
  peer.mine.first_packet = (peer.queue_pair->qp_num * 2654435761u ^ peer.epoch) & 0xffffff;
  peer.mine.landing_key = peer.landing_region->rkey;
  peer.mine.landing_address = reinterpret_cast<uint64_t>(&peer.channel->landing);
  peer.mine.delivered = delivered(peer);
  peer.mine.mtu = static_cast<uint8_t>(choice_.port.mtu);
  peer.mine.notify = settings_.notify;
  refresh_exposures(peer);
  if (peer.state != Peer::State::kGreeting) return false;
  peer.next_greeting = 0;
  peer.greeting_pause = kFirstPause;
  greeted_.push_back(&peer);
  return true;
}

Status VerbsTransport::make_channel(Peer& peer) {
  if (peer.channel) return {};
  auto channel = std::make_unique<Channel>();
  peer.landing_region.reset(ibv_reg_mr(domain_.get(), &channel->landing, sizeof channel->landing,
                                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  if (!peer.landing_region)
    return verbs_error(device(), fmt::format("ibv_reg_mr of {} bytes", sizeof channel->landing), errno);
  peer.staging_region.reset(ibv_reg_mr(domain_.get(), &channel->told_consumed,
                                       sizeof *channel - offsetof(Channel, told_consumed), kLocalWrite));
  if (!peer.staging_region)
    return verbs_error(device(), fmt::format("ibv_reg_mr of {} bytes", sizeof channel->staging), errno);
  peer.channel = std::move(channel);
  return {};
}

// One completion queue for all connections; every work request of every one may complete with an error at once.
Status VerbsTransport::grow_completion_queue(size_t queue_pairs) {
  const int needed = static_cast<int>(queue_pairs * (kSendDepth + 1 + kReceiveDepth));
  if (completions_->cqe >= needed) return {};
  const int wanted = std::min(choice_.port.most_completions, 2 * needed);
  if (const int code = ibv_resize_cq(completions_.get(), wanted); code != 0)
    return verbs_error(device(), fmt::format("ibv_resize_cq to {} completions", wanted), code);
  return {};
}

Status VerbsTransport::make_queue_pair(Peer& peer) {
  if (Status status = grow_completion_queue(queue_pairs_ + 1); !status.ok()) return status;
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = completions_.get();
  wanted.cap = {kSendDepth + 1, kReceiveDepth, 1, 1, kMostInline};
  wanted.qp_type = IBV_QPT_RC;
  peer.queue_pair.reset(ibv_create_qp(domain_.get(), &wanted));
  if (!peer.queue_pair) {
    wanted.cap = {kSendDepth + 1, kReceiveDepth, 1, 1, 0};  // a device without inline data
    peer.queue_pair.reset(ibv_create_qp(domain_.get(), &wanted));
  }
  if (!peer.queue_pair) return verbs_error(device(), "ibv_create_qp (reliable connection)", errno);
  peer.inline_bytes = wanted.cap.max_inline_data;
  ++queue_pairs_;
  active_.push_back(&peer);
  peer.posted = peer.completed = peer.signaled = 0;
  peer.bounced = {};
  peer.send_drained = peer.receive_drained = false;

  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = route_.port;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  const int code = ibv_modify_qp(peer.queue_pair.get(), &attributes,
                                 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (code != 0) return verbs_error(device(), "ibv_modify_qp to INIT", code);
  for (uint32_t i = 0; i < kSlots; ++i) post_receive(peer, Work::kReceive);
  return {};
}

// Ready to receive, and to send as soon as the peer is known to be ready too.
Status VerbsTransport::get_ready(Peer& peer, const Greeting& theirs) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(std::min<uint8_t>(theirs.mtu, static_cast<uint8_t>(choice_.port.mtu)));
  attributes.dest_qp_num = theirs.queue_pair;
  attributes.rq_psn = theirs.first_packet;
  attributes.min_rnr_timer = 12;
  attributes.ah_attr = route_.to(addresses_[static_cast<size_t>(peer.rank)]);
  int code = ibv_modify_qp(peer.queue_pair.get(), &attributes,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (code != 0) return verbs_error(device(), "ibv_modify_qp to RTR", code);
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = settings_.timeout;
  attributes.retry_cnt = settings_.retries;
  attributes.rnr_retry =
      settings_.retries;  // never 7, which is without end; the soft-RoCE driver takes it so for retry_cnt too
  attributes.sq_psn = peer.mine.first_packet;
  code = ibv_modify_qp(
      peer.queue_pair.get(), &attributes,
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (code != 0) return verbs_error(device(), "ibv_modify_qp to RTS", code);
  peer.has_theirs = true;
  peer.they_want = theirs.notify;
  peer.remote_landing = theirs.landing_address;
  peer.remote_key = theirs.landing_key;
  peer.their_delivered = theirs.delivered;
  peer.rekeyed.assign(theirs.rekey, theirs.rekey + std::min<size_t>(theirs.rekeys, std::size(theirs.rekey)));
  return {};
}

void VerbsTransport::greet(Peer& peer) {
  peer.mine.has_yours = peer.has_theirs;
  peer.mine.confirmed = peer.state == Peer::State::kReady;
  greetings_->send(peer.rank, peer.mine);
}

void VerbsTransport::serve_greetings() {
  for (Greeting theirs; greetings_->receive(theirs);) on_greeting(theirs);
  if (greeted_.empty()) return;
  const Time time = now();
  for (Peer* peer : greeted_) {
    if (time < peer->next_greeting) continue;
    greet(*peer);
    peer->next_greeting = time + peer->greeting_pause;
    peer->greeting_pause = std::min(2 * peer->greeting_pause, kLongestPause);
  }
}

void VerbsTransport::on_greeting(const Greeting& theirs) {
  if (theirs.job != job_ || theirs.to != static_cast<uint32_t>(rank_)) return;
  Peer* const found = find_or_make(static_cast<int>(theirs.from));
  if (found == nullptr || found->state == Peer::State::kFailed || theirs.epoch < found->epoch) return;
  Peer& peer = *found;
  if (theirs.epoch > peer.epoch || peer.state == Peer::State::kNew) {
    peer.wanted_epoch = std::max(peer.wanted_epoch, theirs.epoch);
    if (peer.state == Peer::State::kGreeting || peer.state == Peer::State::kReady) break_connection(peer, theirs.epoch);
    if (peer.state != Peer::State::kNew || !start(peer)) return;  // it repeats its greeting
  }
  if (theirs.epoch != peer.epoch || peer.state == Peer::State::kDraining) return;
  if (!peer.has_theirs) {
    if (Status status = get_ready(peer, theirs); !status.ok()) return fail(peer, status.text());
    bind_windows_now(peer);
    if (peer.state != Peer::State::kGreeting) return;
    greet(peer);
  } else if (theirs.confirmed == 0) {
    greet(peer);
  }
  if (theirs.has_yours != 0 && peer.state == Peer::State::kGreeting) connected(peer);
}

void VerbsTransport::connected(Peer& peer) {
  peer.state = Peer::State::kReady;
  peer.last_heard = now();
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
    }
  }
  peer.posted_up_to = std::min(peer.their_delivered, peer.accepted);
  peer.told_consumed = 0;  // the word may have been lost
  pump(peer);
}

// Into the error state, where nothing is written any more. The completions of what was posted are still to come; marks behind
// them tell when they have.
void VerbsTransport::break_connection(Peer& peer, uint32_t next_epoch) {
  peer.wanted_epoch = std::max(peer.wanted_epoch, next_epoch);
  if (peer.state == Peer::State::kDraining || !peer.queue_pair) return;
  std::erase(greeted_, &peer);
  peer.state = Peer::State::kDraining;
  ++draining_;
  log(LogLevel::kDebug, "verbs: rank {}: the connection to rank {} is broken, epoch {}", rank_, peer.rank, peer.epoch);
  peer.drain_deadline = now() + kDrainPatience;
  post_receive(peer, Work::kReceiveMark);
  ibv_send_wr request = empty_write(peer);
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr_id = work_id(Work::kSendMark, peer, 0);
  ibv_send_wr* bad = nullptr;
  if (!peer.has_theirs || ibv_post_send(peer.queue_pair.get(), &request, &bad) != 0) peer.send_drained = true;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  if (const int code = ibv_modify_qp(peer.queue_pair.get(), &attributes, IBV_QP_STATE); code != 0)
    log(LogLevel::kError, "{}", verbs_error(device(), "ibv_modify_qp to ERR", code).text());
}

// Some drivers do not flush what is posted to a queue pair in the error state. Destroying it ends all it could still do.
void VerbsTransport::end_late_drains() {
  const Time time = now();
  for (const std::unique_ptr<Peer>& peer : peers_)
    if (peer && peer->state == Peer::State::kDraining && time > peer->drain_deadline) drained(*peer);
}

void VerbsTransport::wait_until_drained(Peer& peer) {
  while (peer.state == Peer::State::kDraining) {
    take_completions();
    if (now() > peer.drain_deadline) drained(peer);
  }
}

void VerbsTransport::drained(Peer& peer) {
  std::erase(active_, &peer);
  for (const uint32_t number : peer.exposures) {
    if (!exposure(number).bound) continue;
    exposure(number).window.handle.reset();
    exposure(number).bound = false;
  }
  peer.queue_pair.reset();
  --queue_pairs_;
  --draining_;
  log(LogLevel::kDebug, "verbs: rank {}: the connection to rank {} is drained, epoch {}", rank_, peer.rank, peer.epoch);
  peer.state = Peer::State::kNew;
  if (peer.failing) return give_up(peer);
  // Where nothing is left to say, the next message connects.
  const bool unsaid = peer.accepted > peer.known_consumed() || peer.wanted_epoch > peer.epoch;
  if (unsaid) start(peer);
}

void VerbsTransport::fail(Peer& peer, std::string why) {
  if (peer.state == Peer::State::kFailed || peer.failing) return;
  peer.failing = true;
  peer.failure = fmt::format("rank {}: verbs: lost rank {}: {}", rank_, peer.rank, why);
  std::erase(greeted_, &peer);
  if (!peer.queue_pair) return give_up(peer);
  break_connection(peer, peer.epoch);
}

// A peer that said that it leaves has done its part: only who still wants something of it has to know.
void VerbsTransport::give_up(Peer& peer) {
  peer.state = Peer::State::kFailed;
  processes_.remove(peer.rank);
  bool wanted = !is_leaving(peer);
  for (Outgoing& out : peer.outgoing) {
    if (!out.unsent) continue;
    give_sent(peer, out);
    wanted = true;
  }
  if (wanted) report_failure(peer);
}

void VerbsTransport::report_failure(Peer& peer) {
  if (peer.failure_reported) return;
  peer.failure_reported = true;
  failures_.push_back(&peer);
  ++counters_.failed_peers;
  log(LogLevel::kInfo, "{}", peer.failure);
}

// A device answers for its process, also while that computes; the process's end shows as a missing answer.
void VerbsTransport::check_peers() {
  take_completions();  // its last words
  for (const int rank : processes_.ended()) fail(*peers_[static_cast<size_t>(rank)], "its process has ended");
  const Time time = now();
  for (size_t i = 0; i < active_.size(); ++i) {
    Peer& peer = *active_[i];
    if (peer.state != Peer::State::kReady || peer.left || peer.completed < peer.signaled ||
        time - peer.last_heard < kQuiet)
      continue;
    ibv_send_wr request = empty_write(peer);
    if (post(peer, request, Work::kLocal, 0, true)) peer.last_heard = time;
  }
}

// Whether its goodbye is among the messages that were not handed out.
bool VerbsTransport::is_leaving(const Peer& peer) const {
  if (peer.left) return true;
  const uint64_t end = delivered(peer);
  for (uint64_t sequence = peer.handed_out + 1; sequence <= end; ++sequence)
    if (peer.landed(sequence).header.kind == SlotKind::kLeaving) return true;
  return false;
}

// What was accepted is delivered before this rank leaves, and the peers are told, so that they do not take it for dead.
void VerbsTransport::say_goodbye() {
  std::vector<Peer*> untold;
  for (const std::unique_ptr<Peer>& peer : peers_)
    if (peer && peer->state != Peer::State::kFailed && peer->channel) untold.push_back(peer.get());
  const Time deadline = now() + kGoodbyePatience;
  const auto done = [this](Peer* peer) {
    if (peer->state == Peer::State::kFailed || is_leaving(*peer)) return true;
    if (peer->state == Peer::State::kNew && peer->accepted <= peer->known_consumed()) return true;
    if (peer->state == Peer::State::kGreeting && peer->accepted == 0) return true;
    if (peer->state != Peer::State::kReady || !peer->has_slot()) return false;
    stage(*peer, SlotKind::kLeaving, {}, {});
    pump(*peer);
    return true;
  };
  const auto everything_left = [this] {
    return std::all_of(peers_.begin(), peers_.end(), [this](const std::unique_ptr<Peer>& peer) {
      return !peer || peer->state != Peer::State::kReady || is_leaving(*peer) ||
             (peer->posted_up_to == peer->accepted && peer->completed > peer->signaled);
    });
  };
  while (now() < deadline) {
    std::erase_if(untold, done);
    if (untold.empty() && everything_left()) return;
    if (take_completions() == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
    serve_greetings();
    retry_pumps();
  }
  log(LogLevel::kInfo, "verbs: rank {}: left without an answer of all peers", rank_);
}

}  // namespace ibcoll
