// SPDX-License-Identifier: BSD-3-Clause
// One device with one port. A rank is a context that has made a protection domain: others only ask.
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tests/fake_verbs/fabric.h"

namespace ibcoll::fake_verbs {
namespace {

// Link-local and IPv4, each for both versions of RoCE; an InfiniBand port has the first.
constexpr size_t kGids = 4;
constexpr uint16_t kFirstLid = 7;

ibv_device& device() {
  static ibv_device only = [] {
    ibv_device made{};
    made.node_type = IBV_NODE_CA;
    made.transport_type = IBV_TRANSPORT_IB;
    std::strcpy(made.name, "fake_0");
    return made;
  }();
  return only;
}

ibv_gid gid_of(int rank, size_t index) {
  ibv_gid gid{};
  if (index < 2) {
    gid.raw[0] = 0xfe, gid.raw[1] = 0x80;
  } else {
    gid.raw[10] = gid.raw[11] = 0xff;
    gid.raw[12] = 10;
  }
  gid.raw[15] = static_cast<uint8_t>(rank + 1);
  return gid;
}

int query_port(ibv_context* context, uint8_t number, ibv_port_attr* port, size_t) {
  const Lock lock(fabric().mutex);
  const Traits& traits = rank_of(context).traits;
  if (traits.removed) return EIO;
  if (number != 1) return EINVAL;
  *port = {};
  port->state = traits.port;
  port->max_mtu = port->active_mtu = traits.mtu;
  port->gid_tbl_len = traits.ethernet ? kGids : 1;
  port->lid = traits.ethernet ? 0 : static_cast<uint16_t>(kFirstLid + context_of(context).rank);
  port->active_speed = 32;  // 25 Gbit/s
  port->active_width = 2;   // 4 lanes
  port->link_layer = traits.ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  return 0;
}

}  // namespace

Context& context_of(ibv_context* context) {
  return *reinterpret_cast<Context*>(reinterpret_cast<std::byte*>(context) - offsetof(verbs_context, context));
}

bool is_address_of(int rank, const ibv_ah_attr& route) {
  if (!fabric().rank(static_cast<size_t>(rank)).traits.ethernet && route.is_global == 0)
    return route.dlid == kFirstLid + rank;
  if (route.is_global == 0 || route.grh.sgid_index >= kGids) return false;
  const ibv_gid gid = gid_of(rank, route.grh.sgid_index);
  return std::memcmp(gid.raw, route.grh.dgid.raw, sizeof gid.raw) == 0;
}

}  // namespace ibcoll::fake_verbs

using namespace ibcoll::fake_verbs;

extern "C" {

ibv_device**(ibv_get_device_list)(int* count) {
  if (count != nullptr) *count = 1;
  return new ibv_device* [2] { &device(), nullptr };
}

void ibv_free_device_list(ibv_device** list) { delete[] list; }

const char* ibv_get_device_name(ibv_device* which) { return which->name; }

ibv_context* ibv_open_device(ibv_device* which) {
  const Lock lock(fabric().mutex);
  if (fabric().rank(static_cast<size_t>(fabric().opened)).traits.removed) return refuse<ibv_context>(EIO);
  auto* const made = new Context();
  made->rank = fabric().opened;
  made->verbs.sz = sizeof(verbs_context);
  made->verbs.query_port = query_port;
  ibv_context& context = made->verbs.context;
  context.device = which;
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context.async_fd = ::eventfd(0, EFD_CLOEXEC);
  context.ops.alloc_mw = alloc_mw;
  context.ops.dealloc_mw = dealloc_mw;
  context.ops.poll_cq = poll_cq;
  context.ops.post_send = post_send;
  context.ops.post_recv = post_receive;
  ++fabric().objects;
  return &context;
}

int ibv_close_device(ibv_context* context) {
  const Lock lock(fabric().mutex);
  ::close(context->async_fd);
  delete &context_of(context);
  --fabric().objects;
  return 0;
}

int ibv_get_async_event(ibv_context* which, ibv_async_event* event) {
  const Lock lock(fabric().mutex);
  Context& context = context_of(which);
  const std::vector<ibv_event_type>& happened = fabric().events[context.rank];
  if (context.events >= happened.size()) {
    errno = EAGAIN;
    return -1;
  }
  *event = {};
  event->event_type = happened[context.events++];
  event->element.port_num = 1;
  return 0;
}

void ibv_ack_async_event(ibv_async_event*) {}

int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
  const Lock lock(fabric().mutex);
  const Traits& traits = rank_of(context).traits;
  if (traits.removed) return EIO;
  *attributes = {};
  attributes->vendor_id = traits.vendor;
  attributes->phys_port_cnt = 1;
  attributes->device_cap_flags = traits.windows ? IBV_DEVICE_MEM_WINDOW_TYPE_2B : 0;
  attributes->max_qp = traits.most_queue_pairs;
  attributes->max_cqe = traits.most_completions;
  attributes->max_mr = 1 << 16;
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, size_t most, uint32_t, size_t) {
  const Lock lock(fabric().mutex);
  const Rank& rank = rank_of(context);
  if (rank.traits.removed) return -EIO;
  const size_t count = std::min(most, rank.traits.ethernet ? kGids : 1);
  for (size_t i = 0; i < count; ++i) {
    entries[i] = {};
    entries[i].gid = gid_of(context_of(context).rank, i);
    entries[i].gid_index = static_cast<uint32_t>(i);
    entries[i].port_num = 1;
    entries[i].gid_type = !rank.traits.ethernet ? IBV_GID_TYPE_IB
                          : i % 2 == 0          ? IBV_GID_TYPE_ROCE_V1
                                                : IBV_GID_TYPE_ROCE_V2;
  }
  return static_cast<ssize_t>(count);
}

ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  const Lock lock(fabric().mutex);
  if (is_removed(context)) return refuse<ibv_pd>(EIO);
  auto* const made = new ibv_pd();
  made->context = context;
  ++fabric().opened;
  ++fabric().objects;
  return made;
}

int ibv_dealloc_pd(ibv_pd* domain) {
  const Lock lock(fabric().mutex);
  delete domain;
  --fabric().objects;
  return 0;
}

ibv_ah* ibv_create_ah(ibv_pd* domain, ibv_ah_attr* route) {
  const Lock lock(fabric().mutex);
  Rank& rank = rank_of(domain->context);
  if (rank.traits.removed) return refuse<ibv_ah>(EIO);
  const int code = rank.faults.create_ah ? rank.faults.create_ah() : 0;
  if (code != 0) return refuse<ibv_ah>(code);
  if (rank.traits.ethernet && route->is_global == 0) return refuse<ibv_ah>(EINVAL);
  auto* const made = new AddressHandle();
  made->context = domain->context;
  made->pd = domain;
  made->route = *route;
  ++fabric().objects;
  return made;
}

int ibv_destroy_ah(ibv_ah* handle) {
  const Lock lock(fabric().mutex);
  delete static_cast<AddressHandle*>(handle);
  --fabric().objects;
  return 0;
}

}  // extern "C"
