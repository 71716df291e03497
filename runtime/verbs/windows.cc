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
constexpr uint64_t kNotPosted = ~uint64_t{0};

}  // namespace

bool Exposures::bind(Peer& peer, bool signaled) {
  const std::vector<uint32_t>& unbound = peer.exposed.unbound();
  while (!unbound.empty()) {
    Exposure& bound = at(unbound.front());
    ibv_send_wr* const request = requests_.link(peer, {}, Work::kLocal, 0, signaled && unbound.size() == 1);
    if (!request) return false;
    request->opcode = IBV_WR_BIND_MW;
    request->imm_data = 0;  // of what was linked here before; soft-RoCE refuses any other
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

// While this window is bound on the present connection and its requests go on: one has completed in the last second.
class Exposures::Bound {
 public:
  Bound(const Peer& peer, const Exposure& exposure) : peer_(peer), exposure_(exposure) {}
  bool lasts() {
    const uint64_t completed = peer_.sending.queue.completed();
    if (std::exchange(seen_, completed) != completed) deadline_ = now() + kBindTimeout;
    return exposure_.bound && peer_.connection.receives() && now() < deadline_;
  }

 private:
  const Peer& peer_;
  const Exposure& exposure_;
  uint64_t seen_ = peer_.sending.queue.completed();
  Time deadline_ = now() + kBindTimeout;
};

// Returns how many requests have to complete until they are; kNotPosted where they will not.
uint64_t Exposures::invalidate(Peer& peer, std::span<const uint32_t> numbers) {
  size_t posted = 0;
  const auto all_posted = [&] {
    for (; posted < numbers.size(); ++posted) {
      ibv_send_wr* const request = requests_.link(peer, {}, Work::kLocal, 0, posted + 1 == numbers.size());
      if (!request) break;
      request->opcode = IBV_WR_LOCAL_INV;
      request->invalidate_rkey = at(numbers[posted]).key;
    }
    requests_.flush(peer);
    return posted == numbers.size();
  };
  for (Bound bound(peer, at(numbers.front())); bound.lasts(); completions_.poll())
    if (all_posted()) return peer.sending.queue.posted();
  return kNotPosted;
}

// Until the device writes there no more. The invalidation waits for all that was posted before; a connection on
// which nothing completes any more is broken instead, as no write outlives that, and what was not delivered is sent
// again over the next one.
void Exposures::await_invalidation(Peer& peer, uint32_t number, uint64_t requests) {
  const auto done = [&] { return peer.sending.queue.completed() >= requests; };
  for (Bound bound(peer, at(number)); requests != kNotPosted && !done() && bound.lasts();) completions_.poll();
  if (done()) return;
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
    at(number).bound = false;
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
