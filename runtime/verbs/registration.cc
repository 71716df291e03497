// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/registration.h"

namespace ibcoll::verbs {

Registration Registrations::acquire(std::span<std::byte> memory) {
  ibv_mr* const region = ibv_reg_mr(domain_, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  ++(region ? made_ : failed_);
  return {region};
}

void Registrations::release(Registration& registration) {
  if (registration) MemoryRegion(registration.region).reset();
  registration = {};
}

}  // namespace ibcoll::verbs
