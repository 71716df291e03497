// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/adapter.h"

#include <fcntl.h>

#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/registration_cache/memlock.h"
#include "runtime/verbs/link_trial.h"
#include "runtime/verbs/peer.h"

namespace ibcoll::verbs {
namespace {

constexpr size_t kFirstConnections = 4;  // for which there is a completion queue from the start

}  // namespace

Status Adapter::open(const Config& config, bool in_host, size_t most_connections) {
  route_.port = static_cast<uint8_t>(port().number);
  route_.gid_index = static_cast<uint8_t>(choice_.gid_index);
  route_.service_level = static_cast<uint8_t>(config.integer("IBCOLL_VERBS_SERVICE_LEVEL"));
  route_.traffic_class = static_cast<uint8_t>(config.integer("IBCOLL_VERBS_TRAFFIC_CLASS"));

  // A program may call fork() for its own purposes; where the kernel copies registered pages at fork, nothing is
  // needed. It holds for all users of verbs in the process, so a host decides itself.
  if (!in_host && ibv_is_fork_initialized() == IBV_FORK_DISABLED)
    if (const int code = ibv_fork_init(); code != 0)
      log(LogLevel::kWarning, "verbs: ibv_fork_init: {}; programs that fork may lose data", std::strerror(code));

  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  for (int i = 0; i < count; ++i)
    if (port().device == ibv_get_device_name(list[i])) device_.reset(ibv_open_device(list[i]));
  const int code = errno;
  if (list) ibv_free_device_list(list);
  if (!device_) return verbs_error(name(), "ibv_open_device", code);
  const int flags = ::fcntl(device()->async_fd, F_GETFL);
  has_events_ = flags >= 0 && ::fcntl(device()->async_fd, F_SETFL, flags | O_NONBLOCK) == 0;
  domain_.reset(ibv_alloc_pd(device()));
  if (!domain_) return verbs_error(name(), "ibv_alloc_pd", errno);
  if (Status status = make_completion_queue(most_connections); !status.ok()) return status;
  if (Status status = try_memory(config, most_connections); !status.ok()) return status;
  registrar_ = std::make_unique<Registrar>(domain(), opens_windows());
  registrations_ = std::make_unique<WatchedCache>(*registrar_, WatchedCache::Settings::from(config, in_host));
  return {};
}

// For the first connections, where the device can make it larger later; else for all that there may be.
Status Adapter::make_completion_queue(size_t most_connections) {
  const auto make = [this](size_t queue_pairs) -> Status {
    const int wanted = std::min(port().most_completions, completions_for(queue_pairs));
    completions_.reset(ibv_create_cq(device(), wanted, nullptr, nullptr, 0));
    return completions_ ? Status{} : verbs_error(name(), fmt::format("ibv_create_cq of {} completions", wanted), errno);
  };
  if (Status status = make(kFirstConnections); !status.ok()) return status;
  if (completions_for(most_connections) <= completions_->cqe) return {};
  // One more: what a device has already costs no driver a question to it.
  const int code = ibv_resize_cq(completions(), std::min(port().most_completions, completions_->cqe + 1));
  if (code == 0) return {};
  log(LogLevel::kInfo,
      "verbs: {}: ibv_resize_cq: {}; there is room for the completions of {} connections from the start", name(),
      std::strerror(code > 0 ? code : errno), most_connections);
  return make(most_connections);
}

Status Adapter::make_room(size_t queue_pairs) {
  const int needed = completions_for(queue_pairs);
  if (completions_->cqe >= needed) return {};
  const int wanted = std::min(port().most_completions, 2 * needed);
  if (const int code = ibv_resize_cq(completions(), wanted); code != 0)
    return verbs_error(name(),
                       text_or("ibv_resize_cq", [&] { return fmt::format("ibv_resize_cq to {} completions", wanted); }),
                       code > 0 ? code : errno);
  return {};
}

// Each connection pins its slots. A limit that is too low for one is an error now; one that is too low for all is an
// error while another network may still be chosen.
Status Adapter::try_memory(const Config& config, size_t most_connections) const {
  PinnedChannel one;
  if (Status status = one.make(domain()); !status.ok()) return status;
  const uint64_t needed = most_connections * sizeof(Channel), limit = memlock_limit();
  if (needed <= limit || config.text("IBCOLL_NET") != "auto") return {};
  return error(
      IBCOLL_ERR_NO_MEMORY,
      "connections to {} ranks pin {} KB, and the limit of locked memory is {} KB (ulimit -l): raise it in "
      "/etc/security/limits.conf (memlock unlimited), or use verbs with --net verbs where each rank talks to few",
      most_connections, needed / 1024, limit / 1024);
}

// Acknowledged at once: the object that it is about may be destroyed only then.
std::optional<ibv_async_event> Adapter::next_event() const {
  ibv_async_event event{};
  if (!has_events_ || ibv_get_async_event(device(), &event) != 0) return std::nullopt;
  ibv_ack_async_event(&event);
  return event;
}

bool Adapter::measure_link() {
  const Result<LinkTrial> tried = try_link(domain(), route_, choice_);
  if (tried.ok()) {
    model_ = tried->model;
    return tried->in_order;
  }
  model_reason_ = "a guess: " + tried.status().text();
  log(LogLevel::kInfo, "verbs: the link's cost is a guess, and so no order of writes is relied on: {}",
      tried.status().text());
  return false;
}

}  // namespace ibcoll::verbs
