// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/registration.h"

namespace ibcoll::verbs {

Result<void*> Registrar::pin(std::span<std::byte> pages) {
  const unsigned access = windows_ ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND : IBV_ACCESS_LOCAL_WRITE;
  void* const region = ibv_reg_mr(domain_, pages.data(), pages.size(), access);
  if (region) return region;
  return verbs_error(ibv_get_device_name(domain_->context->device), registering(pages.size()),
                     errno == EAGAIN ? ENOMEM : errno);
}

}  // namespace ibcoll::verbs
