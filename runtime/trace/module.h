// SPDX-License-Identifier: BSD-3-Clause
// The way into libibcoll_trace.so.
#pragma once

#include "runtime/engine/tracer.h"

// An OpenTrace.
extern "C" IBCOLL_MODULE_API ibcoll::Tracer* ibcoll_trace_open(const ibcoll::Config& config, int rank);
