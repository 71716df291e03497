// SPDX-License-Identifier: BSD-3-Clause
// Events of librdmacm.
#include "runtime/base/log.h"
#include "runtime/verbs/rdmacm.h"

namespace ibcoll::verbs {
namespace {

constexpr int kRouteTimeout = 2000;  // milliseconds

// False: what came is no greeting.
bool read_greeting(const rdma_cm_event& event, Greeting& greeting) {
  if (event.param.conn.private_data == nullptr || event.param.conn.private_data_len < sizeof greeting) return false;
  std::memcpy(&greeting, event.param.conn.private_data, sizeof greeting);
  return true;
}

}  // namespace

// False: there is none.
bool RdmaCm::take_event() {
  rdma_cm_event* received = nullptr;
  if (rdma_get_cm_event(channel_.get(), &received) != 0) return false;
  // An id can only be destroyed after its events were acknowledged, which takes their private data away.
  rdma_cm_event event = *received;
  Greeting greeting;
  const bool greeted = read_greeting(event, greeting);
  event.param.conn.private_data = greeted ? &greeting : nullptr;
  rdma_ack_cm_event(received);
  if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    on_request(event);
  } else if (event.id != listener_.get()) {
    const int peer = static_cast<int>(reinterpret_cast<intptr_t>(event.id->context));
    const auto found = calls_.find(peer);
    if (found != calls_.end() && found->second.id.get() == event.id) on_event(peer, found->second, event);
  }
  return true;
}

void RdmaCm::on_request(const rdma_cm_event& event) {
  Id id(event.id);
  Greeting theirs;
  const auto refuse = [&] { rdma_reject(id.get(), nullptr, 0); };
  if (!read_greeting(event, theirs) || theirs.job != job_ || theirs.to != static_cast<uint32_t>(rank_) ||
      theirs.from >= static_cast<uint32_t>(size_) || theirs.from == theirs.to)
    return refuse();
  const int peer = static_cast<int>(theirs.from);
  Call& call = calls_[peer];
  if (theirs.epoch < call.epoch || (theirs.epoch == call.epoch && call.by_me() && rank_ < peer)) return refuse();
  id->context = reinterpret_cast<void*>(static_cast<intptr_t>(peer));
  call.id = std::move(id);
  call.state = Call::State::kInvited;
  call.epoch = theirs.epoch;
  call.last_error = {};
  call.theirs = theirs;
  received_.push_back(theirs);
}

void RdmaCm::on_event(int peer, Call& call, const rdma_cm_event& event) {
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_ERROR:
      (void)failed(peer, call, "rdma_resolve_addr", event.status < 0 ? -event.status : EHOSTUNREACH);
      return;
    case RDMA_CM_EVENT_ROUTE_ERROR:
      (void)failed(peer, call, "rdma_resolve_route", event.status < 0 ? -event.status : EHOSTUNREACH);
      return;
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      (void)done(peer, call, "rdma_resolve_route", rdma_resolve_route(call.id.get(), kRouteTimeout));
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED: {
      call.state = Call::State::kAsked;
      call.last_error = {};
      rdma_conn_param chosen = parameters(call.mine);
      (void)done(peer, call, "rdma_connect", rdma_connect(call.id.get(), &chosen));
      return;
    }
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      if (!read_greeting(event, call.theirs)) return end(peer, call, "the answer is no greeting");
      call.state = Call::State::kAnswered;
      received_.push_back(call.theirs);
      return;
    case RDMA_CM_EVENT_ESTABLISHED:
      call.state = Call::State::kDone;
      call.theirs.has_yours = call.theirs.confirmed = 1;
      received_.push_back(call.theirs);
      return;
    case RDMA_CM_EVENT_DISCONNECTED:  // the owner of the queue pair sees what that means
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
    case RDMA_CM_EVENT_ADDR_CHANGE:
      return;
    default:
      end(peer, call, rdma_event_str(event.event));  // the peer refuses, or computes, or has ended
  }
}

}  // namespace ibcoll::verbs
