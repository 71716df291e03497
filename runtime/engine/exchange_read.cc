// SPDX-License-Identifier: BSD-3-Clause
// Single-copy reads of other ranks' memory, and what takes their place where the kernel refuses them.
#include <algorithm>
#include <cstring>

#include "runtime/engine/engine.h"
#include "runtime/engine/exchange.h"
#include "runtime/engine/team.h"

namespace ibcoll {

// Who has given up may use its memory again, and says so before: known before the read, nothing is read; said
// meanwhile, what was read counts for nothing.
bool Exchange::begin_read(Comm::ReadAwaiter& read) noexcept {
  int left = window_->left(read.local);
  if (left == 0 && !read.into.empty()) {
    Status status = window_->memory().read(window_->job_rank(read.local), read.address, read.into);
    if (status.code() == IBCOLL_ERR_UNSUPPORTED) {
      ask_for(read);
      return read.failed;
    }
    if (!status.ok()) {
      team_.suspect(std::move(status));
      read.failed = true;
      return true;
    }
    window_->set_unconfirmed_reads(true);
    left = window_->left(read.local);
  }
  read.failed = left != 0;
  if (read.failed)
    team_.suspect(error(static_cast<ibcoll_status_t>(left), "rank {}: rank {} failed while its memory was read",
                        team_.rank(), team_rank_of(read.local)));
  return true;
}

// The owner sends it as a message. It waits for this rank's next step, perhaps asleep until some rank rings.
void Exchange::ask_for(Comm::ReadAwaiter& read) noexcept {
  const int peer = team_rank_of(read.local);
  announce(peer, read.into, read.local);
  Channel* const c = channel(peer);
  Message* const m = c ? message() : nullptr;
  read.failed = !m || !team_.failure().ok();
  if (read.failed) return;
  m->data = reinterpret_cast<std::byte*>(read.address);
  m->bytes = read.into.size();
  c->wanted.push(m);
  read.wait = {&waits::kReceivedFrom, peer, c->bytes_announced};
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
  for (size_t i = 0; i < std::min<size_t>(lent_count_, lent_.size()); ++i) {
    const uint64_t at = address - reinterpret_cast<uint64_t>(lent_[i].data());  // huge: before it
    if (at > lent_[i].size() || note.bytes > lent_[i].size() - at) continue;
    put(c.peer, lent_[i].subspan(at, note.bytes), note.bytes);
    return;
  }
  mismatch(c.peer, note.bytes, 0, "bytes that it asks for, at an address that it was not given");
}

// Whose process has ended, another one may have its number by now, and be read in its place.
bool Exchange::confirm_reads() noexcept {
  window_->set_unconfirmed_reads(false);
  Status status = window_->memory().confirm();
  if (status.ok()) return true;
  team_.suspect(std::move(status));
  return false;
}

}  // namespace ibcoll
