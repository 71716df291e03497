// SPDX-License-Identifier: BSD-3-Clause
// The internal headers of Open MPI that the component uses, and all that differs between its versions.
//
// Built and tested with 4.1. What 5.0 names otherwise is written from its sources and has not been tried.
#pragma once

// Open MPI's headers use size_t before they include it.
#include <stddef.h>

#include "mpi.h"
#include "ompi_config.h"
// As ompi_config.h itself does for C++ where it comes before mpi.h.
#ifndef restrict
#define restrict
#endif
#include "opal/threads/thread_usage.h"
// Inline functions pass void* for pointers to other types.
#undef OPAL_ATOMIC_COMPARE_EXCHANGE_STRONG_PTR
#if OMPI_MAJOR_VERSION >= 5
#define OPAL_ATOMIC_COMPARE_EXCHANGE_STRONG_PTR(x, y, z) \
  opal_thread_compare_exchange_strong_ptr((opal_atomic_intptr_t*)(x), (intptr_t*)(y), (intptr_t)(z))
#else
#define OPAL_ATOMIC_COMPARE_EXCHANGE_STRONG_PTR(x, y, z) \
  opal_thread_compare_exchange_strong_ptr((volatile intptr_t*)(x), (void**)(y), (void*)(z))
#endif
#include "ompi/datatype/ompi_datatype.h"
inline int32_t ompi_datatype_copy_content_same_ddt(const ompi_datatype_t* type, size_t count, void* to, void* from) {
  return ompi_datatype_copy_content_same_ddt(type, count, static_cast<char*>(to), static_cast<char*>(from));
}

#include "ompi/communicator/communicator.h"
#include "ompi/group/group.h"
#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/hook/base/base.h"
#include "ompi/mca/hook/hook.h"
#include "ompi/proc/proc.h"
#include "ompi/version.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/runtime/opal_progress.h"
#if OMPI_MAJOR_VERSION >= 5
#include "opal/mca/pmix/pmix-internal.h"
#else
#include "opal/mca/pmix/pmix.h"
#endif

namespace ibcoll::open_mpi {

// A communicator's functions, each beside the module that it belongs to.
using Table = mca_coll_base_comm_coll_t;

// How much it moved; 0 where Open MPI does not say.
#if OMPI_MAJOR_VERSION >= 5
inline int advance_open_mpi() { return opal_progress(); }
#else
inline int advance_open_mpi() {
  opal_progress();
  return 0;
}
#endif

#if OMPI_MAJOR_VERSION >= 5
inline constexpr auto kEveryProcess = PMIX_GLOBAL;
#define IBCOLL_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
#else
inline constexpr auto kEveryProcess = OPAL_PMIX_GLOBAL;
#define IBCOLL_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0
#endif

}  // namespace ibcoll::open_mpi
