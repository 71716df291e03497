// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/trace/module.h"

#include "runtime/trace/trace_file.h"

extern "C" ibcoll::Tracer* ibcoll_trace_open(const ibcoll::Config& config, int rank) {
  const auto calls = static_cast<size_t>(config.integer("IBCOLL_TRACE_CALLS"));
  const auto peers = static_cast<size_t>(config.integer("IBCOLL_TRACE_PEERS"));
  return ibcoll::TraceFile::open(config.text("IBCOLL_TRACE"), calls, peers, rank).release();
}
