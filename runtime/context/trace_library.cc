// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/trace_library.h"

#include "runtime/base/log.h"
#include "runtime/machine/module.h"

namespace ibcoll {

std::unique_ptr<Tracer> open_trace(const Config& config, int rank) {
  if (config.text("IBCOLL_TRACE").empty()) return nullptr;
  const Result<void*> open = module_function("libibcoll_trace.so", "ibcoll_trace_open");
  if (!open.ok()) {
    log(LogLevel::kError,
        "IBCOLL_TRACE: {}; the program goes on and this rank has no trace: put libibcoll_trace.so of the same build "
        "beside libibcoll.so",
        open.status().text());
    return nullptr;
  }
  return std::unique_ptr<Tracer>(reinterpret_cast<OpenTrace>(open.value())(config, rank));
}

}  // namespace ibcoll
