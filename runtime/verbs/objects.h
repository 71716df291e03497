// SPDX-License-Identifier: BSD-3-Clause
// Owners of verbs objects, and the text of a verbs call that failed.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/log.h"
#include "runtime/base/status.h"

namespace ibcoll::verbs {

// An int, as ibv_reg_mr() is a macro that mixes it with another enumeration.
constexpr int kLocalWrite = IBV_ACCESS_LOCAL_WRITE;

// A destroy call that fails leaks its object: another object still depends on it, which is a bug of ibcoll.
template <auto kDestroy>
struct Destroy {
  template <typename T>
  void operator()(T* object) const noexcept {
    if (const int code = kDestroy(object); code != 0)
      log(LogLevel::kError, "verbs: an object cannot be destroyed: {}", std::strerror(code > 0 ? code : errno));
  }
};

using Device = std::unique_ptr<ibv_context, Destroy<ibv_close_device>>;
using ProtectionDomain = std::unique_ptr<ibv_pd, Destroy<ibv_dealloc_pd>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Destroy<ibv_destroy_cq>>;
using QueuePair = std::unique_ptr<ibv_qp, Destroy<ibv_destroy_qp>>;
using MemoryRegion = std::unique_ptr<ibv_mr, Destroy<ibv_dereg_mr>>;
inline int dealloc_window(ibv_mw* window) { return ibv_dealloc_mw(window); }  // the one that is inline in verbs.h
using MemoryWindow = std::unique_ptr<ibv_mw, Destroy<dealloc_window>>;
using AddressHandle = std::unique_ptr<ibv_ah, Destroy<ibv_destroy_ah>>;

// The advice what to try after `call` has failed with `code`.
std::string advice(std::string_view call, int code);

// "mlx5_0: ibv_reg_mr of 65536 bytes: Cannot allocate memory; <what to try>". NO_MEMORY for ENOMEM, else SYSTEM.
Status verbs_error(std::string_view device, std::string_view call, int code) noexcept;
// "ibv_reg_mr of 65536 bytes"
std::string registering(size_t bytes) noexcept;

}  // namespace ibcoll::verbs
