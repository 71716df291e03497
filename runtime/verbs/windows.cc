// SPDX-License-Identifier: BSD-3-Clause
// Memory windows: bound on the queue pair of their peer before it learns of them, invalid before the memory is the
// caller's again, and new on each new queue pair.
#include <utility>

#include "runtime/verbs/completions.h"
#include "runtime/verbs/exposures.h"
#include "runtime/verbs/recovery.h"

namespace ibcoll::verbs {
namespace {

constexpr Time kBindTimeout = 1'000'000'000;

}  // namespace

bool Exposures::bind(Peer& peer, bool signaled) {
  const std::vector<uint32_t>& unbound = peer.exposed.unbound();
  while (!unbound.empty()) {
    Exposure& bound = at(unbound.front());
    ibv_send_wr* const request = requests_.link(peer, {}, Work::kLocal, 0, signaled && unbound.size() == 1);
    if (!request) return false;
    request->opcode = IBV_WR_BIND_MW;
    request->bind_mw.mw = bound.window.handle.get();
    request->bind_mw.rkey = bound.key;
    request->bind_mw.bind_info = {bound.registration ? region_of(*bound.registration) : bound.exact.get(),
                                  reinterpret_cast<uint64_t>(bound.memory.data()), bound.memory.size(),
                                  IBV_ACCESS_REMOTE_WRITE};
    bound.bound = true;
    peer.exposed.bound_first();
  }
  return true;
}

void Exposures::bind_now(Peer& peer) {
  const Time deadline = now() + kBindTimeout;
  const auto all_posted = [&] {
    const bool all = bind(peer, true);
    requests_.flush(peer);
    return all;
  };
  const SendQueue& queue = peer.sending.queue;
  while (peer.connection.handshake.has_theirs && !all_posted() && now() < deadline) completions_.poll();
  while (peer.connection.is(State::kGreeting) && queue.completed() < queue.posted() && now() < deadline)
    completions_.poll();
}

// Until the device writes there no more. The invalidation waits for all that was posted before; a connection on
// which nothing completes any more is broken instead, as no write outlives that, and what was not delivered is sent
// again over the next one.
void Exposures::invalidate(Peer& peer, Exposure& exposure) {
  Time deadline = now() + kBindTimeout;
  const SendQueue& queue = peer.sending.queue;
  uint64_t seen = queue.completed();
  const auto still_bound = [&] {
    if (std::exchange(seen, queue.completed()) != queue.completed()) deadline = now() + kBindTimeout;
    return exposure.bound && peer.connection.receives() && now() < deadline;
  };
  ibv_send_wr request{};
  request.opcode = IBV_WR_LOCAL_INV;
  request.invalidate_rkey = exposure.key;
  bool posted = false;
  while (still_bound() && !(posted = requests_.post(peer, request, Work::kLocal, 0, true))) completions_.poll();
  const uint64_t mine = queue.posted();
  while (still_bound() && queue.completed() < mine) completions_.poll();
  if (posted && queue.completed() >= mine) return;
  if (peer.connection.receives()) recovery_.break_connection(peer, peer.connection.epoch() + 1);
  if (peer.connection.is(State::kDraining)) completions_.wait_until_drained(peer);
}

void Exposures::unbind(Peer& peer) {
  for (const uint32_t number : peer.exposed.all()) {
    if (!at(number).bound) continue;
    at(number).window.handle.reset();
    at(number).bound = false;
  }
  for (const uint32_t number : peer.exposed.resting()) {
    at(number).window.handle.reset();
    release(at(number));
  }
  peer.exposed.resting().clear();
}

Status Exposures::renew(Peer& peer) {
  Rekeys& keys = peer.channel->rekeys;
  keys.epoch = peer.connection.epoch();
  keys.count = 0;
  if (!local_.adapter.opens_windows()) return {};
  peer.exposed.bind_none();
  for (const uint32_t number : peer.exposed.all()) {
    Exposure& exposed = at(number);
    if (keys.epoch > 1) {
      exposed.window.handle.reset();
      exposed.bound = false;
      if (keys.count == std::size(keys.keys) || !make_key(exposed))
        return error(IBCOLL_ERR_TRANSPORT, "{} regions cannot be exposed again after the connection broke",
                     peer.exposed.all().size());
      keys.keys[keys.count++] = {number, exposed.advertised, exposed.key};
    }
    peer.exposed.bind_later(number);
  }
  peer.connection.handshake.mine.rekeys = static_cast<uint16_t>(keys.count);
  return {};
}

}  // namespace ibcoll::verbs
