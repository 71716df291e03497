// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/short_exchange.h"

#include <cstring>

#include "runtime/engine/incoming.h"

namespace ibcoll {

void ShortExchange::use(const OneExchange& what, const Args& args) {
  what_ = what;
  messages_out_ = messages_in_ = 0;
  parts_.resize(static_cast<size_t>(what.end - what.first));
  for (int peer = what.first; peer < what.end; ++peer) {
    Part& part = parts_[static_cast<size_t>(peer - what.first)];
    part = {};
    if (peer == rank_) continue;
    part.link = links_.link(peer);
    if (what.out) part.out = what.out(args, rank_, peer).size();
    if (what.in) part.in = what.in(args, rank_, peer).size();
    messages_out_ += part.out > 0;
    messages_in_ += part.in > 0;
    if (!links_.credit_of(part.link)) throw std::bad_alloc();
  }
}

inline bool ShortExchange::send(Part& part) noexcept {
  part.counted = links_.credit().may_send(*part.link.credit, op_);
  if (!part.counted) return false;
  const Note note = links_.note(NoteKind::kEager, part.out, op_, signature_, 0);
  if (!links_.send(part.link, note, what_.out(*args_, rank_, part.link.peer))) return false;
  TeamCredit::sent(*part.link.credit, op_, part.out);
  part.sent = true;
  --to_send_;
  return true;
}

bool ShortExchange::send() noexcept {
  for (Part& part : parts_)
    if (part.out > 0 && !send(part)) return false;
  if (what_.own) what_.own(*args_, rank_);
  return true;
}

inline ShortExchange::Part* ShortExchange::part_of(int peer) noexcept {
  const auto at = static_cast<size_t>(peer - what_.first);
  return at < parts_.size() ? &parts_[at] : nullptr;
}

bool ShortExchange::take(int peer, const Note& note, ConstBytes payload) noexcept {
  Part* const part = part_of(peer);
  if (note.op != op_ || note.kind != static_cast<uint16_t>(NoteKind::kEager) || note.signature != signature_ || !part ||
      part->taken || part->in == 0 || part->in != note.bytes || payload.size() != note.bytes) [[unlikely]]
    return false;
  if (const Bytes into = what_.in(*args_, rank_, peer); into.data())
    std::memcpy(into.data(), payload.data(), payload.size());
  else if (what_.combine)
    what_.combine(*args_, rank_, payload.data());
  TeamCredit::has_completed(*part->link.credit, note.completed);
  part->taken = true;
  --awaited_;
  return true;
}

bool ShortExchange::return_credit() noexcept {
  bool due = false;
  for (Part& part : parts_)
    if (part.in > 0) due |= links_.credit().ended(*part.link.credit, op_, part.in, 0);
  return due;
}

bool ShortExchange::hand_over(ExchangeState& to, Incoming& incoming) const noexcept {
  for (const Part& part : parts_) {
    if (!part.counted && !part.taken) continue;
    Channel* const channel = to.channel(part.link.peer);
    if (!channel) return false;
    if (part.counted) Outgoing::has_put(*channel, part.sent);
    if (part.taken) incoming.has_taken(*channel, part.in);
  }
  return true;
}

}  // namespace ibcoll
