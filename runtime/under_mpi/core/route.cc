// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/route.h"

namespace ibcoll::under_mpi {

namespace {

Route installed;

}  // namespace

void install(const Route& route) noexcept { installed = route; }

const Route& route() noexcept { return installed; }

}  // namespace ibcoll::under_mpi
