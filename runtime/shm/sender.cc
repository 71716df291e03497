// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/sender.h"

#include <algorithm>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/shm/single_copy.h"

namespace ibcoll::shm {

Sender::Sender(NodeRanks& ranks, Failures& failures)
    : ranks_(ranks),
      failures_(failures),
      mask_(ranks.segment().ring_bytes() - 1),
      outgoing_(static_cast<size_t>(ranks.count())),
      stores_(StoreCosts(ranks.count())) {}

int Sender::connections() const noexcept {
  return static_cast<int>(std::ranges::count_if(outgoing_, [](const Outgoing& out) { return out.block != nullptr; }));
}

void Sender::give_up(int to, Status why, ibcoll_status_t of_this_rank) noexcept {
  outgoing_[static_cast<size_t>(to)].block = nullptr;
  failures_.add({to, std::move(why), of_this_rank});
}

// ---------------------------------------------------------------- records

Sender::Outgoing* Sender::open(int to) noexcept {
  if (failures_.known(to)) return nullptr;
  Segment& segment = ranks_.segment();
  const int self = ranks_.self();
  if (Status status = segment.ensure_pair(self, to); !status.ok()) {
    give_up(to, status, status.code());
    return nullptr;
  }
  Outgoing& out = outgoing_[static_cast<size_t>(to)];
  out.block = &segment.pair(self, to);
  out.ring = segment.ring(self, to);
  segment.open(self, to).store(1, std::memory_order_release);
  segment.info(to).open_count.fetch_add(1, std::memory_order_release);
  return &out;
}

// Contiguous room for one record; nullptr: the ring is full.
std::byte* Sender::reserve(Outgoing& out, uint64_t bytes) noexcept {
  const uint64_t to_end = mask_ + 1 - (out.tail & mask_);
  const uint64_t needed = bytes <= to_end ? bytes : to_end + bytes;
  if (out.tail + needed - out.head > mask_ + 1) {
    const uint64_t head = out.block->head.load(std::memory_order_acquire);
    if (out.tail - head > mask_ + 1) [[unlikely]] {
      give_up(static_cast<int>(&out - outgoing_.data()),
              error(IBCOLL_ERR_PEER_FAILED,
                    "it has taken more than was sent to it: shared memory is spoiled; run the program with a memory "
                    "checker"));
      return nullptr;
    }
    out.head = head;
    if (out.tail + needed - out.head > mask_ + 1) return nullptr;
  }
  if (bytes > to_end) {
    reinterpret_cast<Record*>(out.ring + (out.tail & mask_))->length = Record::kFiller;
    out.tail += to_end;
  }
  return out.ring + (out.tail & mask_);
}

void Sender::write_record(Outgoing& out, std::byte* at, const Note& note, std::span<const std::byte> payload) noexcept {
  auto* const record = reinterpret_cast<Record*>(at);
  record->length = payload.size();
  record->note = note;
  stores_.copy(static_cast<int>(&out - outgoing_.data()), {reinterpret_cast<std::byte*>(record + 1), payload.size()},
               payload);
  stores_.fence();
  out.tail += Record::bytes(payload.size());
  out.block->tail.store(out.tail, std::memory_order_release);
  ++counters_.messages_sent;
}

bool Sender::send(int to, const Note& note, std::span<const std::byte> payload) {
  Outgoing* const out = outgoing(to);
  if (!out) return false;
  std::byte* const at = reserve(*out, Record::bytes(payload.size()));
  if (!at) return false;
  write_record(*out, at, note, payload);
  return true;
}

// ---------------------------------------------------------------- puts

PutResult Sender::put(int to, const RemoteRegion& region, std::span<const std::byte> from, const Note& note) {
  Outgoing* const out = outgoing(to);
  if (!out) return PutResult::kBusy;
  std::byte* const at = reserve(*out, Record::bytes(0));
  if (!at) return PutResult::kBusy;

  Exposure& exposure = out->block->exposures[region.key % PairBlock::kExposures];
  const uint64_t generation = region.key / PairBlock::kExposures;
  uint64_t exposed = generation << 2 | Exposure::kExposed;
  if (region.key == 0 || !exposure.word.compare_exchange_strong(exposed, generation << 2 | Exposure::kWriting,
                                                                std::memory_order_acq_rel)) {
    ++counters_.puts_dropped;
    log(LogLevel::kInfo, "shm: a put of {} bytes to rank {} was dropped: the region is not exposed any more",
        from.size(), ranks_.job(to));
    return PutResult::kDone;
  }
  const uint64_t offset = region.address - exposure.address.load(std::memory_order_relaxed);  // huge: before the region
  const uint64_t bytes = exposure.bytes.load(std::memory_order_relaxed);
  const bool fits = offset <= bytes && from.size() <= bytes - offset;
  Status status;
  // Another process may have the number of one that has ended, and must not be written to.
  if (fits && !from.empty())
    status = !ranks_.may_use(to) ? error(IBCOLL_ERR_UNSUPPORTED, "it was refused before")
             : ranks_.alive(to)  ? write_process(ranks_.pid(to), region.address, from)
                                 : error(IBCOLL_ERR_PEER_FAILED, "its process {} on this node is gone", ranks_.pid(to));
  exposure.word.store(generation << 2 | Exposure::kExposed, std::memory_order_release);
  if (!fits) {
    ++counters_.puts_dropped;
    log(LogLevel::kWarning, "shm: a put of {} bytes to rank {} was dropped: it is outside of the exposed region",
        from.size(), ranks_.job(to));
    return PutResult::kDone;
  }
  if (status.code() == IBCOLL_ERR_UNSUPPORTED && ranks_.may_use(to)) ranks_.refused(to, status);
  if (status.code() == IBCOLL_ERR_UNSUPPORTED || (status.code() == IBCOLL_ERR_SYSTEM && ranks_.alive(to)))
    return PutResult::kRefused;
  if (!status.ok()) {
    give_up(to, status);
    return PutResult::kBusy;
  }
  ++counters_.single_copies;
  write_record(*out, at, note, {});
  return PutResult::kDone;
}

}  // namespace ibcoll::shm
