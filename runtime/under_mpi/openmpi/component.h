// SPDX-License-Identifier: BSD-3-Clause
// The one symbol that Open MPI looks for in mca_coll_ibcoll.so.
#pragma once

#include "runtime/under_mpi/openmpi/open_mpi.h"

extern "C" __attribute__((visibility("default"))) mca_coll_base_component_t mca_coll_ibcoll_component;
