// SPDX-License-Identifier: BSD-3-Clause
// The files of the C interface share this: the handles, and how a Status becomes a status.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "runtime/comm/reduce/user_operation.h"
#include "runtime/context/context.h"
#include "runtime/machine/fork_watch.h"
#include "runtime/machine/network_end.h"

// Never made: a handle is a TeamHandle*, a RequestHandle*.
struct ibcoll_team : ibcoll::TeamHandle {};
struct ibcoll_request : ibcoll::RequestHandle {};
struct ibcoll_context {
  std::unique_ptr<ibcoll::Context> context;
};

namespace ibcoll::api {

// Remembers the text for ibcoll_last_error().
ibcoll_status_t report(const Status& status) noexcept;

template <typename... Values>
ibcoll_status_t refuse(ibcoll_status_t code, fmt::format_string<Values...> format, Values&&... values) noexcept {
  return report(error(code, format, std::forward<Values>(values)...));
}

// No context may be used: in a process that inherited them from its parent, or that has closed what they use.
inline bool closed() noexcept { return ForkWatch::in_child() || NetworkEnd::has_come(); }
ibcoll_status_t refuse_closed();
ibcoll_status_t refuse_in_operation();

enum class InOperation { kRefused, kHarmless };

// Exceptions become a status: the only one that can come is that of memory that runs out. `kInOperation`: the call
// inside an operation of the program; one that waits for the context's lock is refused.
template <InOperation kInOperation = InOperation::kRefused, typename Body>
ibcoll_status_t guarded(Body body) noexcept {
  try {
    if (closed()) [[unlikely]]
      return refuse_closed();
    if (kInOperation == InOperation::kRefused && UserOperation::runs()) [[unlikely]]
      return refuse_in_operation();
    return body();
  } catch (const std::bad_alloc&) {
    return refuse(IBCOLL_ERR_NO_MEMORY, "memory for the call's own data was refused");
  } catch (const std::exception& e) {
    return refuse(IBCOLL_ERR_INTERNAL, "ibcoll itself failed: {}", e.what());
  }
}

using Guard = ContextLock::Guard;

inline TeamHandle* handle(ibcoll_team_t team) { return reinterpret_cast<TeamHandle*>(team); }
inline RequestHandle* handle(ibcoll_request_t request) { return reinterpret_cast<RequestHandle*>(request); }
inline ibcoll_request_t opaque(RequestHandle* request) { return reinterpret_cast<ibcoll_request_t>(request); }
inline ibcoll_team_t opaque(TeamHandle* team) { return reinterpret_cast<ibcoll_team_t>(team); }

// Copies to a caller's buffer, cut and terminated; the length that the whole has.
size_t hand_out(const std::string& from, char* text, size_t bytes);

}  // namespace ibcoll::api
