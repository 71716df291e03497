// SPDX-License-Identifier: BSD-3-Clause
#include "tools/rdma_in_memory/regions.h"

#include <cerrno>

#include "tools/rdma_in_memory/file.h"
#include "tools/rdma_in_memory/index.h"
#include "tools/rdma_in_memory/memory.h"
#include "tools/rdma_in_memory/queue_pair.h"
#include "tools/rdma_in_memory/removal.h"

namespace ibcoll::rdma_in_memory {
namespace {

Indices region_indices(&Layout::regions, kRegions);

struct Region : ibv_mr {
  unsigned access = 0;
};

struct Window : ibv_mw {};

SharedRegion& region_of(uint32_t key) { return File::get().layout().region[key >> 8]; }

// An entry that is used again gets another key.
uint32_t new_key(uint32_t index) {
  SharedRegion& entry = File::get().layout().region[index];
  return index << 8 | ((entry.last_key + 1) & 0xff);
}

// All but the key, which opens the region.
void fill(SharedRegion& entry, uint32_t key, const Domain& domain, unsigned access, uint64_t address, uint64_t bytes) {
  entry.last_key = key;
  entry.process = File::get().process();
  entry.domain = domain.number;
  entry.access = access;
  entry.queue_pair = 0;
  entry.address = address;
  entry.bytes = bytes;
}

}  // namespace

ibv_mw* allocate_window(ibv_pd* domain, ibv_mw_type type) {
  const uint32_t index = type == IBV_MW_TYPE_2 ? region_indices.take() : 0;
  if (index == 0) {
    errno = type == IBV_MW_TYPE_2 ? ENOMEM : EOPNOTSUPP;
    return nullptr;
  }
  auto* const made = new Window();
  made->context = domain->context;
  made->pd = domain;
  made->type = type;
  made->rkey = new_key(index);
  return made;
}

int free_window(ibv_mw* which) {
  auto* const window = static_cast<Window*>(which);
  const bool bound = region_of(window->rkey).key.exchange(0) != 0;
  if (bound) wait_for_writers();
  region_indices.give_back(window->rkey >> 8);
  delete window;
  return 0;
}

ibv_wc_status bind(const SharedQueuePair& on, const ibv_send_wr& request) {
  const ibv_mw_bind_info& info = request.bind_mw.bind_info;
  const auto& region = *static_cast<const Region*>(info.mr);
  const auto& domain = *static_cast<const Domain*>(request.bind_mw.mw->pd);
  SharedRegion& entry = region_of(request.bind_mw.rkey);
  const auto begin = reinterpret_cast<uint64_t>(region.addr);
  const bool inside = info.addr >= begin && info.length <= region.length &&
                      info.addr - begin <= region.length - info.length && info.length > 0;
  const bool fresh = entry.key.load() == 0 && request.bind_mw.rkey >> 8 == request.bind_mw.mw->rkey >> 8;
  if (!inside || !fresh || (region.access & IBV_ACCESS_MW_BIND) == 0 || domain.number != on.domain ||
      region.pd != request.bind_mw.mw->pd)
    return IBV_WC_MW_BIND_ERR;
  fill(entry, request.bind_mw.rkey, domain, info.mw_access_flags, info.addr, info.length);
  entry.queue_pair = on.number.load();
  entry.in_file = region_of(region.lkey).in_file;
  entry.key.store(request.bind_mw.rkey, std::memory_order_release);
  return IBV_WC_SUCCESS;
}

ibv_wc_status invalidate(const SharedQueuePair& on, uint32_t key) {
  SharedRegion& entry = region_of(key);
  if (key == 0 || entry.key.load() != key || entry.queue_pair != on.number.load()) return IBV_WC_LOC_PROT_ERR;
  entry.key.store(0);
  wait_for_writer(on.peer);
  return IBV_WC_SUCCESS;
}

}  // namespace ibcoll::rdma_in_memory

using namespace ibcoll::rdma_in_memory;

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto* const made = new Domain();
  made->context = context;
  made->number = File::get().layout().domains.fetch_add(1) + 1;
  return made;
}

int ibv_dealloc_pd(ibv_pd* domain) {
  delete static_cast<Domain*>(domain);
  return 0;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, size_t bytes, uint64_t remote, unsigned access) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  const bool remote_only = (access & IBV_ACCESS_REMOTE_WRITE) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0;
  int code = bytes == 0 || remote_only ? EINVAL : remote != begin || (access & IBV_ACCESS_ZERO_BASED) ? EOPNOTSUPP : 0;
  if (is_removed()) code = EIO;
  const int moved = code != 0 ? 0 : put_into_file(begin / kPage * kPage, (begin + bytes + kPage - 1) / kPage * kPage);
  if (moved > 0) code = moved;
  const uint32_t index = code == 0 ? region_indices.take() : 0;
  if (index == 0) {
    errno = code != 0 ? code : ENOMEM;
    return nullptr;
  }
  auto* const made = new Region();
  made->context = domain->context;
  made->pd = domain;
  made->addr = address;
  made->length = bytes;
  made->access = access;
  made->lkey = made->rkey = new_key(index);
  SharedRegion& entry = region_of(made->lkey);
  fill(entry, made->lkey, *static_cast<Domain*>(domain), access, begin, bytes);
  entry.in_file = moved == 0;
  entry.key.store(made->lkey, std::memory_order_release);
  return made;
}

ibv_mr*(ibv_reg_mr)(ibv_pd* domain, void* address, size_t bytes, int access) {
  return ibv_reg_mr_iova2(domain, address, bytes, reinterpret_cast<uint64_t>(address), static_cast<unsigned>(access));
}

int ibv_dereg_mr(ibv_mr* which) {
  auto* const region = static_cast<Region*>(which);
  region_of(region->lkey).key.store(0);
  wait_for_writers();
  region_indices.give_back(region->lkey >> 8);
  delete region;
  return 0;
}

}  // extern "C"
