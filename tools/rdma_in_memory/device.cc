// SPDX-License-Identifier: BSD-3-Clause
// The device `memory0`, its port, and what it says about itself.
#include <endian.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "tools/rdma_in_memory/completions.h"
#include "tools/rdma_in_memory/file.h"
#include "tools/rdma_in_memory/regions.h"
#include "tools/rdma_in_memory/removal.h"
#include "tools/rdma_in_memory/send.h"

namespace ibcoll::rdma_in_memory {
namespace {

constexpr uint64_t kGuid = 0x0200'0000'0000'0001;
constexpr uint32_t kVendor = 0;  // none

// mlx5dv and others read behind the structure: zeros.
struct Device {
  ibv_device device;
  std::byte zeros[1024];
};

ibv_device& device() {
  static Device only = [] {
    Device made{};
    made.device.node_type = IBV_NODE_CA;
    made.device.transport_type = IBV_TRANSPORT_IB;
    std::strcpy(made.device.name, "memory0");
    std::strcpy(made.device.dev_name, "uverbs_memory0");
    std::strcpy(made.device.dev_path, "/nonexistent/uverbs_memory0");
    std::strcpy(made.device.ibdev_path, "/nonexistent/memory0");
    return made;
  }();
  return only.device;
}

int query_port(ibv_context*, uint8_t number, ibv_port_attr* port, size_t bytes) {
  if (is_removed()) return EIO;
  if (number != 1) return EINVAL;
  ibv_port_attr found{};
  found.state = IBV_PORT_ACTIVE;
  found.max_mtu = found.active_mtu = IBV_MTU_4096;
  found.gid_tbl_len = found.pkey_tbl_len = 1;
  found.lid = found.sm_lid = 1;
  found.max_msg_sz = 1U << 30;
  found.active_width = 2;   // 4 lanes
  found.active_speed = 32;  // 25 Gbit/s
  found.phys_state = 5;     // link up
  found.link_layer = IBV_LINK_LAYER_INFINIBAND;
  found.max_vl_num = 1;
  std::memcpy(port, &found, std::min(bytes, sizeof found));
  return 0;
}

ibv_gid own_gid() {
  ibv_gid gid{};
  gid.global.subnet_prefix = htobe64(0xfe80'0000'0000'0000);
  gid.global.interface_id = htobe64(kGuid);
  return gid;
}

}  // namespace
}  // namespace ibcoll::rdma_in_memory

using namespace ibcoll::rdma_in_memory;

extern "C" {

ibv_device**(ibv_get_device_list)(int* count) {
  const bool there = File::open();
  if (count != nullptr) *count = there ? 1 : 0;
  auto** const list = static_cast<ibv_device**>(std::calloc(2, sizeof(ibv_device*)));
  if (list != nullptr && there) list[0] = &device();
  return list;
}

void ibv_free_device_list(ibv_device** list) { std::free(list); }
const char* ibv_get_device_name(ibv_device* which) { return which->name; }
__be64 ibv_get_device_guid(ibv_device*) { return htobe64(kGuid); }

ibv_context* ibv_open_device(ibv_device* which) {
  if (is_removed()) {
    errno = EIO;
    return nullptr;
  }
  auto* const made = static_cast<verbs_context*>(std::calloc(1, sizeof(verbs_context)));
  if (made == nullptr) return nullptr;
  made->sz = sizeof(verbs_context);
  made->query_port = query_port;
  ibv_context& context = made->context;
  context.device = which;
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context.num_comp_vectors = 1;
  context.cmd_fd = -1;
  context.async_fd = make_event_descriptor();
  ::pthread_mutex_init(&context.mutex, nullptr);
  context.ops.alloc_mw = allocate_window;
  context.ops.dealloc_mw = free_window;
  context.ops.poll_cq = poll;
  context.ops.req_notify_cq = request_notice;
  context.ops.post_send = post_send;
  context.ops.post_recv = post_receive;
  context.ops.post_srq_recv = post_shared_receives;
  return &context;
}

int ibv_close_device(ibv_context* context) {
  ::close(context->async_fd);
  std::free(reinterpret_cast<std::byte*>(context) - offsetof(verbs_context, context));
  return 0;
}

// There is one: the device has been removed.
int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  uint64_t expirations = 0;
  if (::read(context->async_fd, &expirations, sizeof expirations) != sizeof expirations) return -1;
  remove_if_due();
  *event = {};
  event->event_type = IBV_EVENT_DEVICE_FATAL;
  return 0;
}
void ibv_ack_async_event(ibv_async_event*) {}

int ibv_query_device(ibv_context*, ibv_device_attr* found) {
  *found = {};
  std::strcpy(found->fw_ver, "memory");
  found->node_guid = found->sys_image_guid = htobe64(kGuid);
  found->vendor_id = kVendor;
  found->max_mr_size = ~uint64_t{0};
  found->page_size_cap = kPage;
  found->max_qp = kQueuePairs - 1;
  found->max_qp_wr = 1 << 14;
  found->device_cap_flags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  found->max_sge = found->max_sge_rd = kMostSges;
  found->max_cq = kCompletionQueues - 1;
  found->max_cqe = File::kChunk / sizeof(Completion) / 2;
  found->max_mr = found->max_mw = kRegions - 1;
  found->max_pd = 1 << 16;
  found->max_qp_rd_atom = found->max_qp_init_rd_atom = 16;
  found->max_res_rd_atom = 1 << 16;
  found->atomic_cap = IBV_ATOMIC_NONE;
  found->max_ah = 1 << 20;
  found->max_srq = kReceiveQueues - 1;
  found->max_srq_wr = 1 << 14;
  found->max_srq_sge = kMostReceiveSges;
  found->max_pkeys = 1;
  found->phys_port_cnt = 1;
  return 0;
}

int(ibv_query_port)(ibv_context* context, uint8_t number, struct _compat_ibv_port_attr* port) {
  return query_port(context, number, reinterpret_cast<ibv_port_attr*>(port), offsetof(ibv_port_attr, port_cap_flags2));
}

int ibv_query_gid(ibv_context*, uint8_t, int index, ibv_gid* gid) {
  if (index != 0) {
    errno = EINVAL;
    return -1;
  }
  *gid = own_gid();
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context*, ibv_gid_entry* entries, size_t most, uint32_t, size_t) {
  if (most == 0) return 0;
  entries[0] = {};
  entries[0].gid = own_gid();
  entries[0].port_num = 1;
  entries[0].gid_type = IBV_GID_TYPE_IB;
  return 1;
}

int ibv_query_pkey(ibv_context*, uint8_t, int, __be16* key) {
  *key = 0xffff;
  return 0;
}

int ibv_fork_init() { return 0; }
ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }

}  // extern "C"
