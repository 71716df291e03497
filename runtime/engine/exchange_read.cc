// SPDX-License-Identifier: BSD-3-Clause
// Single-copy reads of an exchange, and the messages that replace them where the kernel refuses them.
#include <cstring>

#include "runtime/engine/engine.h"
#include "runtime/engine/exchange.h"
#include "runtime/engine/team.h"
#include "runtime/machine/simulation.h"

namespace ibcoll {

bool Exchange::begin_read(MemoryRead& read) noexcept {
  const SingleCopyReads::Outcome outcome = reads_.read(read.local, read.address, read.into);
  read.failed = outcome == SingleCopyReads::Outcome::kFailed;
  if (outcome != SingleCopyReads::Outcome::kRefused) return true;
  ask_for(read);
  return read.failed;
}

// Before a rank copies memory of the program that the kernel did not: what is not there would end the process.
bool Exchange::may_access(ConstBytes memory, Access access) noexcept {
  if (Simulation::current) return true;
  const std::byte* const missing = first_inaccessible(memory, access);
  if (!missing) return true;
  team_.suspect(error(IBCOLL_ERR_SYSTEM,
                      "rank {} cannot {} its own buffer in {}: of {} bytes at {}, those from {} on; it may be shorter "
                      "than the call said",
                      team_.rank(), access == Access::kRead ? "read" : "write to", team_.describe_call(op_),
                      memory.size(), static_cast<const void*>(memory.data()), static_cast<const void*>(missing)));
  return false;
}

// The owner sends the bytes as a message. It waits for this rank's next step, and may sleep until a rank rings.
void Exchange::ask_for(MemoryRead& read) noexcept {
  read.failed = !may_access(read.into, Access::kWrite);
  if (read.failed) return;
  const int peer = team_rank_of(read.local);
  announce(peer, read.into, read.local);
  Channel* const c = channel(peer);
  Message* const m = c ? message() : nullptr;
  read.failed = !m || !team_.failure().ok();
  if (read.failed) return;
  m->data = reinterpret_cast<std::byte*>(read.address);
  m->bytes = read.into.size();
  c->wanted.push(m);
  read.wait = {WaitKind::kReceivedFrom, peer, 0};
  if (!pump(*c)) retry_later(*c);
  window_->ring();
}

bool Exchange::pump_wanted(Channel& c) noexcept {
  while (c.wanted.head) {
    const auto address = reinterpret_cast<uint64_t>(c.wanted.head->data);
    if (!team_.send(c.peer, note(NoteKind::kWanted, c.wanted.head->bytes, 0), std::as_bytes(std::span(&address, 1))))
      return false;
    recycle(c.wanted.pop());
  }
  return true;
}

void Exchange::on_wanted(Channel& c, const Note& note, ConstBytes payload) noexcept {
  uint64_t address = 0;
  if (payload.size() == sizeof address) std::memcpy(&address, payload.data(), sizeof address);
  const ConstBytes bytes = reads_.lent(address, note.bytes);
  if (!bytes.data())
    return mismatch(c.peer, note.bytes, 0, "bytes that it asks for, at an address that it was not given");
  if (may_access(bytes, Access::kRead)) put(c.peer, bytes, note.bytes);
}

}  // namespace ibcoll
