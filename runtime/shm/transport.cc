// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/transport.h"

#include <fmt/format.h>
#include <time.h>

#include "runtime/base/json.h"

namespace ibcoll::shm {

RemoteRegion Transport::expose(int peer, std::span<std::byte> memory) {
  Segment& segment = ranks_.segment();
  const int from = ranks_.local(peer), self = ranks_.self();
  const RemoteRegion none{reinterpret_cast<uint64_t>(memory.data()), memory.size(), 0};
  if (segment.may_copy(from, self).load(std::memory_order_acquire) != Segment::kMayCopy) return none;
  if (!segment.ensure_pair(from, self).ok()) return none;
  PairBlock& block = segment.pair(from, self);
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
  Segment& segment = ranks_.segment();
  const int from = ranks_.local(peer), self = ranks_.self();
  Exposure& exposure = segment.pair(from, self).exposures[region.key % PairBlock::kExposures];
  const uint64_t generation = region.key / PairBlock::kExposures;
  const uint64_t concealed = generation << 2 | Exposure::kFree;
  uint64_t word = generation << 2 | Exposure::kExposed;
  if (exposure.word.compare_exchange_strong(word, concealed, std::memory_order_acq_rel)) return true;
  if (word != (generation << 2 | Exposure::kWriting)) return true;  // concealed before
  if (ranks_.alive(from)) return false;
  exposure.word.store(concealed, std::memory_order_release);
  return true;
}

void Transport::check_peers() {
  for (const int i : ranks_.processes().ended())
    sender_.give_up(i, error(IBCOLL_ERR_PEER_FAILED, "its process {} on this node is gone", ranks_.pid(i)));
}

Time Transport::now() const {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<Time>(time.tv_sec) * 1'000'000'000 + static_cast<Time>(time.tv_nsec);
}

Json Transport::describe() const {
  Segment& segment = ranks_.segment();
  const NodeRanks::Pairs pairs = ranks_.pairs();
  const Sender::Counters& sent = sender_.counters();
  return {{"name", name()},
          {"ranks_on_node", ranks_.count()},
          {"single_copy_pairs", fmt::format("{} of {}", pairs.allowed, pairs.all)},
          {"single_copy", pairs.why},
          {"ends_noticed_by", ranks_.processes().method()},
          {"heap", fmt::format("{} MB", segment.heap_bytes() >> 20)},
          {"heap_reserved_bytes", segment.reserved()},
          {"slot_bytes", slot_bytes()},
          {"ring_bytes", segment.ring_bytes()},
          {"connections", sender_.connections()},
          {"messages_sent", sent.messages_sent},
          {"single_copy_puts", sent.single_copies},
          {"puts_dropped", sent.puts_dropped}};
}

}  // namespace ibcoll::shm
