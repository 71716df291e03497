// SPDX-License-Identifier: BSD-3-Clause
// Endpoints: made on first use, closed when UCX reports an error, and the orderly end.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/machine/wait_loop.h"
#include "runtime/ucx/transport.h"

namespace ibcoll::ucx {

namespace {

constexpr Time kLeavingTimeout = 2'000'000'000;
constexpr Time kLandingTimeout = 2'000'000'000;
constexpr int kLastReads = 1000;
constexpr Time kQuietBeforeEnd = 10'000'000;
constexpr Time kAfterClose = 1'000'000'000;
constexpr Time kReportTimeout = 1'000'000'000;
constexpr Time kSocketCheckPeriod = 500'000'000;
constexpr Time kAdoptionShare = 10;       // while connections are made, at most this part of the time
constexpr Time kAnswerTime = 20'000'000;  // a peer that is not late has answered by then

// All waits here are for other ranks, which may share the core.
constexpr WaitStrategy kShortSleeps = WaitStrategy::sleeping(20'000);

// The other statuses concern the peer, or the way to it.
bool is_of_this_rank(ucs_status_t status) {
  return status == UCS_ERR_NO_MEMORY || status == UCS_ERR_NO_RESOURCE || status == UCS_ERR_EXCEEDS_LIMIT ||
         status == UCS_ERR_NO_DEVICE || status == UCS_ERR_INVALID_PARAM || status == UCS_ERR_UNSUPPORTED;
}

}  // namespace

Peer* Transport::find_or_make(int rank) {
  if (rank < 0 || rank >= size_ || addresses_.empty()) return nullptr;
  std::unique_ptr<Peer>& slot = peers_[static_cast<size_t>(rank)];
  if (slot == nullptr) {
    auto made = std::make_unique<Peer>();
    // Each peer is in each list once at most. UCX's callbacks add to them, and must not throw.
    for (std::vector<Peer*>* const list :
         {&unconnected_, &broken_, &cut_, &pending_credit_, &with_fragments_, &leaving_})
      if (list->capacity() <= made_peers_) list->reserve(2 * made_peers_ + 8);
    outbox_.reserve_failures(made_peers_);
    ++made_peers_;
    slot = std::move(made);
    slot->transport = this;
    slot->rank = rank;
    has_new_sockets_ = sockets_ != nullptr;
  }
  return slot.get();
}

ucs_status_t Transport::create_endpoint(Peer& peer, ucp_err_handling_mode_t mode) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  const std::vector<std::byte>& address = addresses_[static_cast<size_t>(peer.rank)];
  params.address = reinterpret_cast<const ucp_address_t*>(address.data() + sizeof(ProcessId));
  params.err_mode = mode;
  if (mode == UCP_ERR_HANDLING_MODE_PEER) {
    params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_handler = {&Transport::on_error, &peer};
  }
  SocketWatch::working = sockets_.get();
  return ucp_ep_create(worker_->handle(), &params, &peer.endpoint);
}

bool Transport::connect(Peer& peer) {
  ucs_status_t status = UCS_ERR_UNREACHABLE;
  if (!error_mode_none_) status = create_endpoint(peer, UCP_ERR_HANDLING_MODE_PEER);
  if (status == UCS_ERR_UNREACHABLE || status == UCS_ERR_UNSUPPORTED) {
    status = create_endpoint(peer, UCP_ERR_HANDLING_MODE_NONE);
    if (status == UCS_OK && !error_mode_none_) {
      error_mode_none_ = true;
      log(LogLevel::kInfo,
          "rank {}: ucx: the transports {} cannot report the death of a peer on another machine; such a rank is found "
          "by IBCOLL_TIMEOUT or by the launcher",
          rank_, plan_.tls);
    }
  }
  if (status != UCS_OK) {
    peer.endpoint = nullptr;
    refused(peer, status);
    return false;
  }
  peer.state = Peer::State::kConnected;
  peer.connected_at = now();
  connected_at_.store(peer.connected_at, std::memory_order_relaxed);
  has_new_sockets_ = sockets_ != nullptr;
  ++counters_.connections;
  ProcessId process;
  std::memcpy(&process, addresses_[static_cast<size_t>(peer.rank)].data(), sizeof(process));
  processes_.add_if_local(peer.rank, process);
  return true;
}

void Transport::on_error(void* argument, ucp_ep_h, ucs_status_t status) {
  Peer& peer = *static_cast<Peer*>(argument);
  peer.transport->broken(peer, status);
}

// UCX's callbacks come here: the endpoint is closed later, outside of these.
void Transport::broken(Peer& peer, ucs_status_t status) {
  if (peer.state == Peer::State::kBroken || peer.state == Peer::State::kFailed) return;
  peer.state = Peer::State::kBroken;
  peer.error = peer.cut != UCS_OK ? peer.cut : status;
  broken_.push_back(&peer);
}

void Transport::refused(Peer& peer, ucs_status_t status) {
  if (peer.state != Peer::State::kBroken && peer.state != Peer::State::kFailed && peer.cut == UCS_OK)
    peer.lacks = is_of_this_rank(status);
  broken(peer, status);
}

// UCX then reports the peer as one that has died. If it does not, or no socket is known, the endpoint is closed as it
// is.
void Transport::cut(Peer& peer, ucs_status_t why) {
  if (peer.cut != UCS_OK) return;
  if (peer.state != Peer::State::kConnected || !sockets_ || !sockets_->cut(peer.rank)) return broken(peer, why);
  peer.cut = why;
  peer.report_until = now() + kReportTimeout;
  cut_.push_back(&peer);
}

void Transport::serve_connections() {
  if (sockets_ && sockets_->any_refused())
    for (const int rank : sockets_->refused_ranks())
      if (Peer* const peer = find_or_make(rank)) broken(*peer, UCS_ERR_UNREACHABLE);
  std::erase_if(cut_, [&](Peer* peer) {
    if (peer->state == Peer::State::kConnected && now() > peer->report_until) broken(*peer, peer->cut);
    return peer->state != Peer::State::kConnected;
  });
  while (!broken_.empty()) {
    Peer* peer = broken_.back();
    broken_.pop_back();
    fail(*peer);
  }
  while (!unconnected_.empty()) {
    Peer* peer = unconnected_.back();
    unconnected_.pop_back();
    if (peer->state == Peer::State::kNew) connect(*peer);
  }
  if (has_new_sockets_) adopt_sockets();
  size_t kept = 0;
  for (Peer* peer : leaving_) {
    const bool answered = all_has_arrived(*peer) && send_control(*peer, ControlHeader::Kind::kAllReceived);
    if (!answered && peer->state != Peer::State::kFailed) leaving_[kept++] = peer;
  }
  leaving_.resize(kept);
}

// This rank has lost a message, and the peer would wait for an answer. Other ranks notify it of that with its reason;
// where there are none, it notices that its connections have ended.
void Transport::end_connections(const Peer& peer) noexcept {
  if (!peer.lacks || size_ > 2 || !sockets_) return;
  try {
    (void)sockets_->cut(peer.rank);
  } catch (const std::bad_alloc&) {  // then the peer finds it by IBCOLL_TIMEOUT
  }
}

void Transport::fail(Peer& peer) {
  peer.state = Peer::State::kFailed;
  processes_.remove(peer.rank);
  const std::string silence = silence_of(peer);  // before connections are cut, which counts as a refusal
  end_connections(peer);
  if (peer.endpoint != nullptr && sockets_ && sockets_->refuses(peer.rank)) {
    leave_to_ucx(peer);
  } else if (peer.endpoint != nullptr) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t request = ucp_ep_close_nbx(peer.endpoint, &param);
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);  // UCX frees it when it has ended
    if (UCS_PTR_IS_ERR(request)) worker_->abandon();  // a transport that reports no errors closes nothing by force
    peer.endpoint = nullptr;
  }
  drop_fragments(peer);
  // If a peer has left, and all that it sent has arrived, its end is only a failure for a caller that still sends to
  // it.
  if (!peer.left || !all_has_arrived(peer)) report_failure(peer, silence);
}

std::string Transport::silence_of(const Peer& peer) const noexcept {
  // The kernel's keepalive may find it before this transport checks.
  const Time waited = peer.error == UCS_ERR_ENDPOINT_TIMEOUT ? now() - peer.connected_at : 0;
  return text_or("", [&] {
    std::string why = sockets_ ? sockets_->silence_of(peer.rank, waited) : std::string();
    if (why.empty() && sockets_) why = sockets_->refusal_of(peer.rank);
    return why;
  });
}

void Transport::report_failure(Peer& peer, const std::string& silence) {
  if (!peer.failure.empty()) return;
  peer.lacks = peer.lacks && !peer.left && silence.empty();
  peer.failure = text_or("out of memory", [&] {
    if (peer.lacks) return fmt::format("ucx: {}", ucs_status_string(peer.error));
    if (!peer.left)
      return fmt::format("rank {}: ucx: lost rank {}: {}", rank_, peer.rank,
                         silence.empty() ? ucs_status_string(peer.error) : silence.c_str());
    return fmt::format("rank {}: ucx: rank {} has left the job{}", rank_, peer.rank,
                       all_has_arrived(peer) ? "" : ", and not all that it had sent has arrived");
  });
  outbox_.failed(peer, peer.failure,
                 !peer.lacks                       ? IBCOLL_OK
                 : peer.error == UCS_ERR_NO_MEMORY ? IBCOLL_ERR_NO_MEMORY
                                                   : IBCOLL_ERR_TRANSPORT);
  ++counters_.failed_peers;
  if (peer.lacks)
    log(LogLevel::kInfo, "rank {} cannot reach rank {}: {}", rank_, peer.rank, peer.failure);
  else
    log(LogLevel::kInfo, "{}", peer.failure);
}

bool Transport::needs_polling() const noexcept {
  return unsent_messages_.load(std::memory_order_relaxed) > 0 &&
         now() - connected_at_.load(std::memory_order_relaxed) < kAnswerTime;
}

// UCX checks endpoints itself, every second, but only while it makes progress. A process that has ended may have sent
// messages that have to be read first.
void Transport::check_peers() {
  const std::vector<int> ended = processes_.ended();
  for (int i = 0; i < (ended.empty() ? 1 : kLastReads) && worker_->progress(); ++i) {
  }
  for (const int rank : ended) cut(*peers_[static_cast<size_t>(rank)], UCS_ERR_CONNECTION_RESET);
  if (sockets_) check_sockets();
  serve_connections();
}

void Transport::adopt_sockets() {
  const Time begin = now();
  if (begin < next_adoption_) return;
  has_new_sockets_ = false;
  sockets_->adopt();
  const Time end = now();
  next_adoption_ = end + kAdoptionShare * (end - begin);
}

void Transport::check_sockets() {
  if (now() < next_socket_check_) return;
  next_socket_check_ = now() + kSocketCheckPeriod;
  for (const int rank : sockets_->silent_ranks(now()))
    if (Peer* const peer = find_or_make(rank)) cut(*peer, UCS_ERR_TIMED_OUT);
}

// A receive in progress has some time to end; then the endpoint is closed, which ends it. If UCX holds the memory even
// then, the memory is never returned.
bool Transport::conceal(int, const RemoteRegion& region) {
  Exposures::Exposure* const exposure = exposures_.find(region.key);
  if (exposure == nullptr) return true;
  if (exposure->landing == 0) {
    unpin(exposure->pinned);
    exposures_.remove(region.key);
    return true;
  }
  if (!exposure->concealing) {
    exposure->concealing = true;
    exposure->deadline = now() + kLandingTimeout;
  } else if (now() > exposure->deadline) {
    Peer& writer = *peers_[static_cast<size_t>(exposure->peer)];
    exposure->deadline = now() + kAfterClose;
    if (writer.state != Peer::State::kFailed) {
      cut(writer, UCS_ERR_TIMED_OUT);
    } else if (!std::exchange(exposure->held, true)) {
      log(LogLevel::kError, "rank {}: ucx: UCX still holds memory that rank {} was writing to: a fault of UCX", rank_,
          writer.rank);
    }
  }
  worker_->progress();
  serve_connections();
  return false;
}

bool Transport::everything_left() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const std::unique_ptr<Peer>& peer) {
    return peer == nullptr || peer->state != Peer::State::kConnected || peer->all_received ||
           peer->send.in_flight() == 0;
  });
}

// The messages accepted last may still be in this process. The peers are notified that this rank leaves, so that they
// do not report it as dead, and are asked to confirm that they have received everything.
void Transport::announce_leaving() {
  serve_connections();
  const auto all_agree = [&] {
    bool all = true;
    for (const std::unique_ptr<Peer>& peer : peers_) {
      if (peer == nullptr || peer->state != Peer::State::kConnected || peer->leaving_sent) continue;
      peer->leaving_sent = send_control(*peer, ControlHeader::Kind::kLeaving);
      all = all && peer->leaving_sent;
    }
    return all && everything_left() && leaving_.empty();
  };
  const auto look = [&] {
    const bool moved = worker_->progress();
    if (!with_fragments_.empty()) post_fragments();
    serve_connections();
    return moved;
  };
  if (WaitLoop(kShortSleeps, Deadline::after_ns(kLeavingTimeout)).until(all_agree, look)) return;
  log(LogLevel::kInfo, "rank {}: ucx: left although not all peers confirmed that they have everything", rank_);
  worker_->abandon();
}

void Transport::close_endpoints() {
  for (const std::unique_ptr<Peer>& peer : peers_) {
    if (peer == nullptr || peer->endpoint == nullptr) continue;
    ucp_request_param_t param{};  // flushes
    const ucs_status_ptr_t request = ucp_ep_close_nbx(peer->endpoint, &param);
    peer->endpoint = nullptr;
    peer->state = Peer::State::kFailed;
    if (UCS_PTR_IS_PTR(request)) peer->closing = request;
    if (UCS_PTR_IS_ERR(request)) worker_->abandon();
  }
  const auto look = [&] { return worker_->progress(); };
  const Deadline deadline = Deadline::after_ns(kAfterClose);
  for (const std::unique_ptr<Peer>& peer : peers_) {
    if (peer == nullptr || peer->closing == nullptr) continue;
    ucs_status_ptr_t const request = std::exchange(peer->closing, nullptr);
    const auto closed = [&] { return ucp_request_check_status(request) != UCS_INPROGRESS; };
    WaitLoop(kShortSleeps, deadline).until(closed, look);
    const ucs_status_t status = ucp_request_check_status(request);
    if (status == UCS_INPROGRESS || (status != UCS_OK && !peer->left)) worker_->abandon();  // it died meanwhile
    ucp_request_free(request);
  }
  if (counters_.failed_peers > 0) worker_->abandon();
  // A peer to which nothing was sent may be connecting just now, and UCX answers it.
  WaitLoop(kShortSleeps, Deadline::after_ns(kQuietBeforeEnd)).until([] { return false; }, look);
}

}  // namespace ibcoll::ucx
