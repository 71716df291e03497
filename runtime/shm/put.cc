// SPDX-License-Identifier: BSD-3-Clause
// Exposed memory, and puts into it by one copy.
#include "runtime/base/log.h"
#include "runtime/shm/single_copy.h"
#include "runtime/shm/transport.h"

namespace ibcoll::shm {

RemoteRegion Transport::expose(int peer, std::span<std::byte> memory) {
  const int from = local(peer);
  const RemoteRegion none{reinterpret_cast<uint64_t>(memory.data()), memory.size(), 0};
  if (segment_->may_copy(from, rank_).load(std::memory_order_acquire) != Segment::kMayCopy) return none;
  if (!segment_->ensure_pair(from, rank_).ok()) return none;
  PairBlock& block = segment_->pair(from, rank_);
  for (uint64_t i = 0; i < PairBlock::kExposures; ++i) {
    Exposure& exposure = block.exposures[i];
    const uint64_t word = exposure.word.load(std::memory_order_acquire);
    if ((word & 3) != Exposure::kFree) continue;
    const uint64_t generation = (word >> 2) + 1;
    exposure.address.store(none.address, std::memory_order_relaxed);
    exposure.bytes.store(none.bytes, std::memory_order_relaxed);
    exposure.word.store(generation << 2 | Exposure::kExposed, std::memory_order_release);
    return {none.address, none.bytes, generation * PairBlock::kExposures + i};
  }
  return none;
}

// While the sender writes, its right cannot be revoked, because the kernel moves the bytes on its behalf. It ends with
// the process: a dead one writes nothing.
bool Transport::conceal(int peer, const RemoteRegion& region) {
  if (region.key == 0) return true;
  const int from = local(peer);
  Exposure& exposure = segment_->pair(from, rank_).exposures[region.key % PairBlock::kExposures];
  const uint64_t generation = region.key / PairBlock::kExposures;
  const uint64_t concealed = generation << 2 | Exposure::kFree;
  uint64_t word = generation << 2 | Exposure::kExposed;
  if (exposure.word.compare_exchange_strong(word, concealed, std::memory_order_acq_rel)) return true;
  if (word != (generation << 2 | Exposure::kWriting)) return true;  // concealed before
  if (alive(from)) return false;
  exposure.word.store(concealed, std::memory_order_release);
  return true;
}

PutResult Transport::put(int peer, const RemoteRegion& to, std::span<const std::byte> from, const Note& note,
                         uint64_t) {
  const int to_local = local(peer);
  Outgoing* const out = outgoing(to_local);
  if (!out) return PutResult::kBusy;
  std::byte* const at = reserve(*out, Record::bytes(0));
  if (!at) return PutResult::kBusy;

  Exposure& exposure = out->block->exposures[to.key % PairBlock::kExposures];
  const uint64_t generation = to.key / PairBlock::kExposures;
  uint64_t exposed = generation << 2 | Exposure::kExposed;
  if (to.key == 0 || !exposure.word.compare_exchange_strong(exposed, generation << 2 | Exposure::kWriting,
                                                            std::memory_order_acq_rel)) {
    ++puts_dropped_;
    log(LogLevel::kInfo, "shm: a put of {} bytes to rank {} was dropped: the region is not exposed any more",
        from.size(), peer);
    return PutResult::kDone;
  }
  const uint64_t offset = to.address - exposure.address.load(std::memory_order_relaxed);  // huge: before the region
  const uint64_t bytes = exposure.bytes.load(std::memory_order_relaxed);
  const bool fits = offset <= bytes && from.size() <= bytes - offset;
  Status status;
  // Another process may have the number of one that has ended, and must not be written to.
  if (fits && !from.empty())
    status = !may_use(to_local) ? error(IBCOLL_ERR_UNSUPPORTED, "it was refused before")
             : alive(to_local)  ? write_process(pid(to_local), to.address, from)
                                : error(IBCOLL_ERR_PEER_FAILED, "its process {} on this node is gone", pid(to_local));
  exposure.word.store(generation << 2 | Exposure::kExposed, std::memory_order_release);
  if (!fits) {
    ++puts_dropped_;
    log(LogLevel::kWarning, "shm: a put of {} bytes to rank {} was dropped: it is outside of the exposed region",
        from.size(), peer);
    return PutResult::kDone;
  }
  if (status.code() == IBCOLL_ERR_UNSUPPORTED && may_use(to_local)) refused(to_local, status);
  if (status.code() == IBCOLL_ERR_UNSUPPORTED || (status.code() == IBCOLL_ERR_SYSTEM && alive(to_local)))
    return PutResult::kRefused;
  if (!status.ok()) {
    failed(to_local, status);
    return PutResult::kBusy;
  }
  ++single_copies_;
  write_record(*out, at, note, {});
  return PutResult::kDone;
}

}  // namespace ibcoll::shm
