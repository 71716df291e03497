// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/exchange.h"

#include <cstring>
#include <utility>

namespace ibcoll {

Exchange::Exchange(Team& team, uint32_t signature) noexcept
    : CommBackend(signature, team.engine().limits().call_bytes, team.engine().scratch_pool()),
      state_(*this, team, arena_, signature),
      trace_(team.engine(), team.window()),
      outgoing_(state_, trace_),
      incoming_(state_, trace_, outgoing_),
      node_(state_, team.window()),
      reads_(team),
      comm_(*this, team.members().placement(), team.window(), nullptr, team.rank(), team.size()) {}

void Exchange::reset(uint32_t op, ibcoll_scheme_t scheme, bool uses_window) noexcept {
  state_.begin(op, scheme);
  trace_.reset();
  outgoing_.begin();
  incoming_.begin();
  node_.begin(uses_window);
  reads_.reset();
  idle_copy_.forget();
  wait_ = Wait();
  asked_ = 0;
}

void Exchange::close() noexcept {
  if (state_.first()) {
    outgoing_.close();
    incoming_.close();
  }
  team().engine().scheduler().forget_copy(idle_copy_);
  node_.end();
}

void Exchange::release() noexcept {
  forget_comms();
  incoming_.release();
  state_.release();
  arena_.reset();
}

// ---------------------------------------------------------------- the task

bool Exchange::resume() noexcept {
  if (trace_.in_wait()) [[unlikely]]
    trace_.resumed(wait_ended_by());
  wait_ = Wait();
  const bool ended = stack_.resume([this] { return failed(); });
  if (ended && !failed()) idle_copy_.copy_rest();
  if (stack_.short_of_memory()) [[unlikely]]
    fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory for a part of a collective", team().rank()));
  return ended;
}

void Exchange::put(int peer, ConstBytes piece, uint64_t total) noexcept {
  if (!piece.empty() && !failed()) outgoing_.put(peer, piece, total);  // after a failure nothing is sent
}

void Exchange::copy_when_idle(Bytes to, ConstBytes from) noexcept {
  if (!idle_copy_.done() || from.size() <= IdleCopy::kSlice ||
      !team().engine().scheduler().copies_when_idle(idle_copy_, *this))
    return Comm::copy(to, from);
  idle_copy_.begin(to, from);
}

bool Exchange::begin_read(MemoryRead& read) noexcept {
  const SingleCopyReads::Outcome outcome = reads_.read(read.local, read.address, read.into);
  read.failed = outcome == SingleCopyReads::Outcome::kFailed;
  if (outcome != SingleCopyReads::Outcome::kRefused) return true;
  ask_owner(read);
  return read.failed;
}

// The owner sends the bytes as a message. It waits for this rank's next step, and may sleep until a rank rings.
void Exchange::ask_owner(MemoryRead& read) noexcept {
  read.failed = !state_.may_access(read.into, Access::kWrite);
  if (read.failed) return;
  const int peer = node_.team_rank_of(read.local);
  announce(peer, read.into, read.local);
  if (Channel* const c = state_.channel(peer)) outgoing_.want(*c, read.address, read.into.size());
  read.failed = failed();
  if (read.failed) return;
  read.wait = {WaitKind::kReceivedFrom, peer, 0};
  node_.window().bells().ring();
}

// ---------------------------------------------------------------- waiting

// The local rank whose publication has ended a wait in the node window; -1: a message has ended it.
int Exchange::wait_ended_by() noexcept {
  if (wait_.kind == WaitKind::kPartOrLanding) return take_part_or_landing(wait_);
  return awaits_step(wait_) ? node_.window().steps().lagging() : node_.lagging();
}

int Exchange::awaited_bell() const noexcept {
  if (!incoming_.all_landed() || !outgoing_.all_flushed() || !is_polled(wait_.kind)) return kNoBell;
  return rule_of(wait_).bell(*this, wait_);
}

std::string Exchange::describe_wait() const noexcept {
  return text_or("waits", [this] { return rule_of(wait_).describe(*this, wait_); });
}

void Exchange::ask_awaited() noexcept {
  if (wait_.kind == WaitKind::kNone) return;
  uint64_t count = 0, at = 0;
  awaited([](void* to, int) { ++*static_cast<uint64_t*>(to); }, &count);
  // Each rank begins with another one, and where it ended the last time.
  const uint64_t first = count > kMostAsked ? static_cast<uint64_t>(team().rank()) + asked_ : 0;
  auto ask_one = [&](int peer) {
    if ((at++ + count - first % count) % count < kMostAsked) (void)team().questions().ask_awaited(peer, op());
  };
  awaited([](void* to, int peer) { (*static_cast<decltype(ask_one)*>(to))(peer); }, &ask_one);
  asked_ += kMostAsked;
}

// ---------------------------------------------------------------- notes

void Exchange::on_note(int peer, const Note& note, ConstBytes payload) noexcept {
  Channel* const c = state_.channel(peer);
  if (!c) return;
  if (!state_.is_of_this_call(note)) return team().questions().other_call(peer, op());
  switch (static_cast<NoteKind>(note.kind)) {
    case NoteKind::kAnnounce:
      incoming_.on_advertisement(*c, note, payload);
      break;
    case NoteKind::kEager:
      incoming_.on_eager(*c, note, payload);
      break;
    case NoteKind::kSpill:
      incoming_.on_spill(*c, note, payload);
      break;
    case NoteKind::kFragment:
      incoming_.on_fragment(*c, note, payload);
      break;
    case NoteKind::kLanded:
      incoming_.on_put(*c, note);
      break;
    case NoteKind::kConsumed:
      c->credit.consumed(static_cast<uint32_t>(note.bytes));
      break;
    case NoteKind::kWanted:
      on_wanted(*c, note, payload);
      break;
    default:
      return;
  }
  if (!outgoing_.pump(*c)) state_.retry_later(*c);
}

void Exchange::on_wanted(Channel& c, const Note& note, ConstBytes payload) noexcept {
  uint64_t address = 0;
  if (payload.size() == sizeof address) std::memcpy(&address, payload.data(), sizeof address);
  const ConstBytes bytes = reads_.lent(address, note.bytes);
  if (!bytes.data())
    return mismatch(c.peer, note.bytes, 0, "bytes that it asks for, at an address that it was not given");
  if (state_.may_access(bytes, Access::kRead)) put(c.peer, bytes, note.bytes);
}

// All that the peer sent is here; it will send no more, and take no more.
void Exchange::on_ended(int peer) noexcept {
  const Channel* const c = state_.find(peer);
  if (c && c->in.announced.head)
    mismatch(peer, 0, c->in.announced.head->bytes, "bytes of the next message from it");
  else if (c && c->out.puts.head)
    mismatch(peer, 0, c->out.puts.head->total, "bytes of the next message to it");
  else
    rule_of(wait_).ended(*this, wait_, peer);
}

bool Exchange::matched() noexcept {
  for (const Channel* c = state_.first(); c; c = c->next_peer) {
    if (c->in.unexpected.head)
      mismatch(c->peer, c->in.unexpected.head->bytes, 0, "bytes of one more message from it");
    else if (c->out.advertisements.head)
      mismatch(c->peer, c->out.advertisements.head->bytes, 0, "bytes of one more message to it");
    else if (c->in.announced.head)
      mismatch(c->peer, 0, c->in.announced.head->bytes, "bytes of the next message from it");
    else
      continue;
    return false;
  }
  return true;
}

}  // namespace ibcoll
