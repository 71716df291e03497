// SPDX-License-Identifier: BSD-3-Clause
// Libraries that libibcoll.so loads when a job needs them (transports, PMIx, traces), so that it runs where they are missing.
#pragma once

#include "runtime/base/status.h"

// Which headers were compiled, in libibcoll.so and in each module. The two call each other through C++ interfaces, and
// these may change from one build to the next, under the same version.
extern "C" IBCOLL_MODULE_API const char ibcoll_module_build[];

namespace ibcoll {

// The function `symbol` of the module `file` ("libibcoll_ucx.so"): beside libibcoll.so (or the program that contains
// this code), in ../lib of that place, then wherever the loader looks. The module stays loaded. UNSUPPORTED: why not,
// as when it is of another build.
Result<void*> module_function(const char* file, const char* symbol);

}  // namespace ibcoll
