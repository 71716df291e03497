// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fake_verbs/memory.h"

#include <memory>

#include "tests/fake_verbs/queue_pair.h"

namespace ibcoll::fake_verbs {
namespace {

Window* window_of(uint32_t key) {
  const auto found = fabric().windows.find(key >> 8);
  return found == fabric().windows.end() ? nullptr : found->second;
}

Region* region_of(uint32_t key) {
  const auto found = fabric().regions.find(key);
  return found == fabric().regions.end() ? nullptr : found->second;
}

// What has passed the checks lands before the right to it ends.
void land_all_in(const Region& region) {
  for (QueuePair* queue_pair : fabric().queue_pairs) queue_pair->land_all_in(region);
}

}  // namespace

const std::byte* readable(const ibv_pd* domain, const ibv_sge& sge) {
  const Region* const region = region_of(sge.lkey);
  if (region == nullptr || region->pd != domain || !region->holds(sge.addr, sge.length)) return nullptr;
  return reinterpret_cast<const std::byte*>(sge.addr);
}

Region* writable(const QueuePair& at, uint32_t key, uint64_t address, uint64_t bytes) {
  if ((at.access & IBV_ACCESS_REMOTE_WRITE) == 0) return nullptr;
  if (const Window* const window = window_of(key)) {
    const bool fits = window->region != nullptr && window->key == key && window->queue_pair == at.qp_num &&
                      window->pd == at.pd && address >= window->address && address - window->address <= window->bytes &&
                      bytes <= window->bytes - (address - window->address);
    return fits ? window->region : nullptr;
  }
  Region* const region = region_of(key);
  if (region == nullptr || region->pd != at.pd || (region->access & IBV_ACCESS_REMOTE_WRITE) == 0 ||
      !region->holds(address, bytes))
    return nullptr;
  return region;
}

ibv_wc_status bind(QueuePair& on, const ibv_send_wr& request) {
  auto* const window = static_cast<Window*>(request.bind_mw.mw);
  auto* const region = static_cast<Region*>(request.bind_mw.bind_info.mr);
  const ibv_mw_bind_info& info = request.bind_mw.bind_info;
  const bool fresh = window->region == nullptr && (request.bind_mw.rkey >> 8) == (window->rkey >> 8) &&
                     request.bind_mw.rkey != window->key;
  const bool allowed = region->pd == on.pd && window->pd == on.pd && (region->access & IBV_ACCESS_MW_BIND) != 0 &&
                       (region->access & IBV_ACCESS_LOCAL_WRITE) != 0 && info.length > 0 &&
                       region->holds(info.addr, info.length);
  if (!fresh || !allowed) return IBV_WC_MW_BIND_ERR;
  window->region = region;
  window->address = info.addr;
  window->bytes = info.length;
  window->key = request.bind_mw.rkey;
  window->queue_pair = on.qp_num;
  ++region->windows;
  return IBV_WC_SUCCESS;
}

ibv_wc_status invalidate(QueuePair& on, uint32_t key) {
  Window* const window = window_of(key);
  if (window == nullptr || window->region == nullptr || window->key != key || window->queue_pair != on.qp_num)
    return IBV_WC_LOC_PROT_ERR;
  unbind(*window);
  return IBV_WC_SUCCESS;
}

void unbind(Window& window) {
  if (window.region == nullptr) return;
  land_all_in(*window.region);
  --window.region->windows;
  window.region = nullptr;
}

ibv_mw* alloc_mw(ibv_pd* domain, ibv_mw_type type) {
  const Lock lock(fabric().mutex);
  Rank& rank = rank_of(domain->context);
  if (rank.traits.removed) return refuse<ibv_mw>(EIO);
  if (!rank.traits.windows || type != IBV_MW_TYPE_2) return refuse<ibv_mw>(EOPNOTSUPP);
  if (const int code = rank.faults.alloc_mw ? rank.faults.alloc_mw() : 0; code != 0) return refuse<ibv_mw>(code);
  auto made = std::make_unique<Window>();
  made->context = domain->context;
  made->pd = domain;
  made->type = type;
  made->rkey = made->key = fabric().next_key++ << 8;
  fabric().windows[made->rkey >> 8] = made.get();
  ++fabric().objects;
  return made.release();
}

int dealloc_mw(ibv_mw* window) {
  const Lock lock(fabric().mutex);
  auto* const gone = static_cast<Window*>(window);
  unbind(*gone);
  std::erase_if(fabric().windows, [=](const auto& entry) { return entry.second == gone; });
  for (const QueuePair* queue_pair : fabric().queue_pairs)
    if (queue_pair->will_bind(*gone)) fabric().misuse("a window is deallocated that is still to be bound");
  delete gone;
  --fabric().objects;
  return 0;
}

}  // namespace ibcoll::fake_verbs

using namespace ibcoll::fake_verbs;

extern "C" {

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, size_t bytes, uint64_t remote, unsigned access) {
  const Lock lock(fabric().mutex);
  Rank& rank = rank_of(domain->context);
  if (rank.traits.removed) return refuse<ibv_mr>(EIO);
  const bool remote_only = (access & IBV_ACCESS_REMOTE_WRITE) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0;
  if (bytes == 0 || remote != reinterpret_cast<uint64_t>(address) || remote_only) return refuse<ibv_mr>(EINVAL);
  const int code = rank.faults.reg_mr ? rank.faults.reg_mr(bytes, static_cast<int>(access)) : 0;
  if (code != 0) return refuse<ibv_mr>(code);
  auto made = std::make_unique<Region>();
  made->context = domain->context;
  made->pd = domain;
  made->addr = address;
  made->length = bytes;
  made->access = static_cast<int>(access);
  made->lkey = made->rkey = fabric().next_key++ << 8 | 0x5a;
  fabric().regions[made->lkey] = made.get();
  ++fabric().objects;
  return made.release();
}

ibv_mr*(ibv_reg_mr)(ibv_pd* domain, void* address, size_t bytes, int access) {
  return ibv_reg_mr_iova2(domain, address, bytes, reinterpret_cast<uint64_t>(address), static_cast<unsigned>(access));
}

int ibv_dereg_mr(ibv_mr* region) {
  const Lock lock(fabric().mutex);
  auto* const gone = static_cast<Region*>(region);
  if (gone->windows > 0) return EBUSY;
  for (QueuePair* queue_pair : fabric().queue_pairs) {
    queue_pair->land_all_in(*gone);
    if (queue_pair->reads(*gone)) fabric().misuse("memory is deregistered that a work request still reads");
  }
  fabric().regions.erase(gone->lkey);
  delete gone;
  --fabric().objects;
  return 0;
}

}  // extern "C"
