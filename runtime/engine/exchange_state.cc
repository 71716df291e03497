// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/exchange_state.h"

#include <new>

#include "runtime/machine/simulation.h"

namespace ibcoll {

Channel* ExchangeState::make_channel(int peer) noexcept {
  Channel* const c = channels_.at(peer);
  if (c)
    c->exchange = &exchange_, c->link = links().link(peer);
  else
    health().fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory for the state of peer {}", team_.rank(), peer));
  return c;
}

Message* ExchangeState::message() noexcept {
  if (Message* const m = free_messages_) {
    free_messages_ = m->next;
    return new (m) Message();
  }
  Message* const m = arena_.create<Message>();
  if (!m) health().fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory for one more message", team_.rank()));
  return m;
}

void ExchangeState::retry_later(Channel& c) noexcept {
  if (c.out.blocked) return;
  c.out.blocked = team_.engine().scheduler().retry(c);
  if (!c.out.blocked)
    health().fail(
        error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to retry a message to rank {}", team_.rank(), c.peer));
}

bool ExchangeState::may_access(ConstBytes memory, Access access) noexcept {
  if (Simulation::current) return true;
  const std::byte* const missing = first_inaccessible(memory, access);
  if (!missing) return true;
  health().suspect(
      error(IBCOLL_ERR_SYSTEM,
            "rank {} cannot {} its own buffer in {}: of {} bytes at {}, those from {} on; it may be shorter "
            "than the call said",
            team_.rank(), access == Access::kRead ? "read" : "write to", team_.calls().describe(op_), memory.size(),
            static_cast<const void*>(memory.data()), static_cast<const void*>(missing)));
  return false;
}

}  // namespace ibcoll
