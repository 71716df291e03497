/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_BOOTSTRAPS_ALLTOALL_H
#define TESTS_BOOTSTRAPS_ALLTOALL_H

#include <ibcoll.h>

/* Creates a context from `params` (NULL: found by itself), runs an alltoall of `bytes` bytes per pair and destroys the
 * context. Returns the number of wrong bytes, or -1 after an error that it printed; stores the number of ranks. */
long checked_alltoall(const ibcoll_context_params_t* params, size_t bytes, int* ranks);

#endif
