// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/ucx/memory.h"

#include <fmt/format.h>

namespace ibcoll::ucx {

Result<void*> Registrar::pin(std::span<std::byte> pages) {
  ucp_mem_map_params_t params{};
  params.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  params.address = pages.data();
  params.length = pages.size();
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  ucp_mem_h pinned = nullptr;
  const ucs_status_t status = ucp_mem_map(context_, &params, &pinned);
  if (status == UCS_OK) return pinned;
  // UCX calls everything that a device refuses an I/O error.
  const bool shortage = status == UCS_ERR_NO_MEMORY || status == UCS_ERR_IO_ERROR;
  return error(shortage ? IBCOLL_ERR_NO_MEMORY : IBCOLL_ERR_SYSTEM, "ucp_mem_map of {} bytes: {}", pages.size(),
               ucs_status_string(status));
}

}  // namespace ibcoll::ucx
