// SPDX-License-Identifier: BSD-3-Clause
// Loads the module of traces.
#pragma once

#include <memory>

#include "runtime/base/config.h"
#include "runtime/engine/tracer.h"

namespace ibcoll {

// The trace that IBCOLL_TRACE asks for. nullptr: it is not set; or, after one logged error, the module cannot be loaded
// or the file cannot be opened.
std::unique_ptr<Tracer> open_trace(const Config& config, int rank);

}  // namespace ibcoll
