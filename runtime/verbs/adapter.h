// SPDX-License-Identifier: BSD-3-Clause
// The device that a rank uses, opened: its port, the one completion queue of all connections, and the memory that it
// knows.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/transport/cost_constants.h"
#include "runtime/transport/transport.h"
#include "runtime/verbs/devices.h"
#include "runtime/verbs/greetings.h"
#include "runtime/verbs/registration.h"

namespace ibcoll::verbs {

class Adapter {
 public:
  explicit Adapter(PortChoice choice) : choice_(std::move(choice)) {}

  // For at most that many connections at a time. NO_MEMORY, SYSTEM: the device, the call and its error, or the limit of
  // locked memory.
  Status open(const Config& config, bool in_host, size_t most_connections);
  // Measures the cost of a message; true: the bytes of one Write land in order.
  bool measure_link();

  const char* name() const { return choice_.port.device.c_str(); }
  const PortChoice& choice() const { return choice_; }
  const Port& port() const { return choice_.port; }
  const Route& route() const { return route_; }
  ibv_context* device() const { return device_.get(); }
  ibv_pd* domain() const { return domain_.get(); }
  WatchedCache& registrations() const { return *registrations_; }
  const LinkModel& model() const { return model_; }
  const std::string& model_reason() const { return model_reason_; }
  // An exposure is a memory window / one on a region from the cache.
  bool opens_windows() const { return choice_.opens_windows; }
  bool windows_on_cache() const { return choice_.opens_windows && choice_.port.good_windows; }

  ibv_cq* completions() const { return completions_.get(); }
  // What the device has reported since: its own end, say, or that of a link. Does not wait.
  std::optional<ibv_async_event> next_event() const;
  // Makes the completion queue so large that this many queue pairs cannot overrun it. An error: the device allows no
  // such queue.
  Status make_room(size_t queue_pairs);

 private:
  Status make_completion_queue(size_t most_connections);
  Status try_memory(const Config& config, size_t most_connections) const;

  PortChoice choice_;
  Route route_;
  LinkModel model_ = cost::kVerbsLink;  // unless the trial succeeds
  std::string model_reason_ = "tried at start; of the slowest rank";
  Device device_;
  bool has_events_ = false;  // and ibv_get_async_event() does not wait for one
  ProtectionDomain domain_;
  CompletionQueue completions_;
  std::unique_ptr<Registrar> registrar_;
  std::unique_ptr<WatchedCache> registrations_;
};

}  // namespace ibcoll::verbs
