// SPDX-License-Identifier: BSD-3-Clause
// One UCP context and one UCP worker, made for a device plan.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/machine/descriptors.h"
#include "runtime/transport/network_transport.h"
#include "runtime/ucx/devices.h"
#include "runtime/ucx/memory.h"
#include "runtime/ucx/workarounds/socket_watch.h"

namespace ibcoll::ucx {

// To be called before anything else of UCX: its lines less severe than `level` go, unless the user wants them.
void quieten(const char* level);

inline constexpr size_t kSegment = 64 * 1024;  // the default of UCX over TCP

// The bytes that UCX sends, and receives, over TCP at a time. A receiver has a buffer of that size for each peer whose
// bytes have come in part: it is smaller in larger jobs. 0: the user has set it, or TCP is not all that is used.
size_t tcp_segment_bytes(const DevicePlan& plan, int size);

class Worker {
 public:
  // SYSTEM: what UCX answered, and which devices it was given.
  // `peer_timeout`: seconds after which UCX's own sockets find a silent host to which nothing is sent.
  // In host mode UCX and the process stay as they are.
  static Result<std::unique_ptr<Worker>> open(const NetworkParams& params, const DevicePlan& plan, double peer_timeout);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  ucp_worker_h handle() const { return worker_; }
  ucp_context_h context() const { return context_; }
  const std::vector<std::byte>& address() const { return address_; }
  bool progress() {
    SocketWatch::working = sockets;
    return ucp_worker_progress(worker_) != 0;
  }
  // From now on UCX keeps what it has, also of the memory given to end(), until the process ends. UCX 1.13 ends the
  // process by an assertion when a worker is destroyed after a peer died in the middle of a rendezvous or of a
  // connection.
  void abandon() { abandoned_ = true; }
  // Destroys the worker, which calls back. Nothing but the destructor may follow.
  void end(std::unique_ptr<Memory>& memory);
  // INTERNAL: UCX refused the handler.
  Status on_message(unsigned id, ucp_am_recv_callback_t handler, void* argument);

  SocketWatch* sockets = nullptr;  // whose connections UCX makes

 private:
  Worker() = default;
  Status open_context(const NetworkParams& job, const DevicePlan& plan, double peer_timeout);
  Status open_worker();

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::vector<std::byte> address_;
  bool abandoned_ = false;
  std::optional<HighDescriptors> high_;  // in host mode, where accept() is not replaced
};

}  // namespace ibcoll::ucx
