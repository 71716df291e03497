// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/channel.h"

namespace ibcoll::verbs {

Status PinnedChannel::make(ibv_pd* domain) {
  if (memory_) return {};
  auto memory = std::make_unique<Channel>();
  const auto failed = [domain](size_t bytes) {
    return verbs_error(ibv_get_device_name(domain->context->device), registering(bytes), errno);
  };
  MemoryRegion landing(
      ibv_reg_mr(domain, &memory->landing, sizeof memory->landing, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  if (!landing) return failed(sizeof memory->landing);
  constexpr size_t kStagingBytes = sizeof(Channel) - offsetof(Channel, returned_credit);
  MemoryRegion staging(ibv_reg_mr(domain, &memory->returned_credit, kStagingBytes, kLocalWrite));
  if (!staging) return failed(kStagingBytes);
  memory_ = std::move(memory);
  landing_ = std::move(landing);
  staging_ = std::move(staging);
  return {};
}

}  // namespace ibcoll::verbs
