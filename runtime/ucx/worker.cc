// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/ucx/worker.h"

#include <ucs/config/global_opts.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <span>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/ucx/workarounds/system_calls.h"
#include "runtime/ucx/workarounds/versions.h"

namespace ibcoll::ucx {
namespace {

struct Option {
  const char* name;         // as ucp_config_modify knows it
  const char* environment;  // the user's own choice, which wins
  const char* value;
};

// UCX checks for dead peers every second. Options of a transport that is not used are reported by UCX as invalid, and so
// are those of other versions. WARN_INVALID_CONFIG does not turn that off in all versions.
constexpr Option kOptions[] = {
    {"WARN_INVALID_CONFIG", "UCX_WARN_INVALID_CONFIG", "n"},
    {"KEEPALIVE_INTERVAL", "UCX_KEEPALIVE_INTERVAL", "1s"},
};
// The caches of RDMA devices would have UCX hook the C library (memory_hooks.h), also in jobs that do not use them. In a
// host, where UCX's log level is the host's, that is prevented only where such devices are used.
constexpr Option kRdmaOptions[] = {{"REG_METHODS", "UCX_IB_REG_METHODS", "direct"}};
// connect() must not block. (SYN_CNT is not set: UCX 1.13 writes it over another field.)
constexpr Option kTcpOptions[] = {
    {"CONN_NB", "UCX_TCP_CONN_NB", "y"},
    {"MAX_NUM_EPS", "UCX_TCP_MAX_NUM_EPS", "inf"},
    {"RX_BUFS_GROW", "UCX_TCP_RX_BUFS_GROW", "4"},
};
// Since this version UCX binds a socket to the interface's address before it connects, and ibcoll could bind it to no
// port (socket_watch.h).
constexpr Version kBindsSockets{1, 18};
constexpr Option kBindOptions[] = {{"EP_BIND_SRC_ADDR", "UCX_TCP_EP_BIND_SRC_ADDR", "n"}};
// Without MM_ERROR_HANDLING a dead peer is never noticed; 512 receive buffers at once would be 4 MB per rank.
constexpr Option kSharedMemoryOptions[] = {
    {"MM_ERROR_HANDLING", "UCX_MM_ERROR_HANDLING", "y"},
    {"MM_RX_BUFS_GROW", "UCX_MM_RX_BUFS_GROW", "32"},
};

struct ConfigRelease {
  void operator()(ucp_config_t* config) const { ucp_config_release(config); }
};
using ConfigHandle = std::unique_ptr<ucp_config_t, ConfigRelease>;

Status failed(const char* what, ucs_status_t status) {
  return error(IBCOLL_ERR_SYSTEM, "ucx: {}: {}", what, ucs_status_string(status));
}

Status modify(ucp_config_t* config, const char* name, const char* value) {
  const ucs_status_t status = ucp_config_modify(config, name, value);
  if (status == UCS_OK) return {};
  return error(IBCOLL_ERR_CONFIG, "ucx: {}={}: {}; see ucx_info -c for what is allowed", name, value,
               ucs_status_string(status));
}

Status modify_all(ucp_config_t* config, std::span<const Option> options) {
  for (const Option& option : options) {
    if (std::getenv(option.environment) != nullptr) continue;
    if (Status status = modify(config, option.name, option.value); !status.ok()) return status;
  }
  return {};
}

// A silent host is found by TCP keepalive after half of the time, or what is left of it in probes (socket_watch.h:
// where data is on its way).
Status set_keepalive(ucp_config_t* config, double peer_timeout) {
  constexpr int kProbes = 4;
  const int idle = std::clamp(static_cast<int>(peer_timeout / 2), 1, 30'000);
  const int interval = std::clamp(static_cast<int>((peer_timeout - idle) / kProbes), 1, 30'000);
  const int probes = std::clamp(static_cast<int>((peer_timeout - idle) / interval), 1, kProbes);
  const std::string idle_text = fmt::format("{}s", idle), interval_text = fmt::format("{}s", interval);
  const std::string probes_text = fmt::format("{}", probes);
  const Option options[] = {{"KEEPIDLE", "UCX_TCP_KEEPIDLE", idle_text.c_str()},
                            {"KEEPINTVL", "UCX_TCP_KEEPINTVL", interval_text.c_str()},
                            {"KEEPCNT", "UCX_TCP_KEEPCNT", probes_text.c_str()}};
  return modify_all(config, options);
}

// UCX's own 64 KB need four times the system calls.
constexpr size_t kMostSegment = 256 << 10;
constexpr size_t kSegmentsOfAllPeers = 64 << 20;
constexpr const char* kSegmentVariable = "UCX_TCP_RX_SEG_SIZE";

Status set_segment(ucp_config_t* config, size_t bytes) {
  const std::string text = std::to_string(bytes);
  return bytes == 0 ? Status() : modify(config, "RX_SEG_SIZE", text.c_str());
}

void warn_unless_ok(const Status& status) {
  if (!status.ok()) log(LogLevel::kWarning, "ucx: {}", status.text());
}

}  // namespace

void quieten(const char* level) {
  if (std::getenv("UCX_LOG_LEVEL") != nullptr || log_enabled(LogLevel::kInfo)) return;
  if (ucs_global_opts_set_value("LOG_LEVEL", level) != UCS_OK)
    log(LogLevel::kInfo, "ucx: its log level cannot be set: UCX may print lines of its own");
}

size_t tcp_segment_bytes(const DevicePlan& plan, int size) {
  if (!plan.tcp || plan.rdma || plan.shared_memory || std::getenv(kSegmentVariable) != nullptr) return 0;
  return std::clamp(std::bit_floor(kSegmentsOfAllPeers / static_cast<size_t>(size)), kSegment, kMostSegment);
}

Result<std::unique_ptr<Worker>> Worker::open(const NetworkParams& params, const DevicePlan& plan, double peer_timeout) {
  const bool alone = !params.in_host;
  if (alone) {
    static std::once_flag once;
    quieten("error");
    std::call_once(once, [] { warn_unless_ok(replace_system_calls()); });
  }
  std::unique_ptr<Worker> worker(new Worker);
  if (!alone) worker->high_.emplace();
  Status status = worker->open_context(params, plan, peer_timeout);
  if (status.ok()) status = worker->open_worker();
  if (status.ok()) {
    if (alone) quieten("fatal");  // a peer that dies is an event to ibcoll, and an error to UCX
    return worker;
  }
  return error(status.code(), "rank {}: {} (transports {}, devices {}); ucx_info -d shows what UCX finds here",
               params.rank, status.text(), plan.tls, plan.net_devices.empty() ? "all" : plan.net_devices);
}

Status Worker::open_context(const NetworkParams& job, const DevicePlan& plan, double peer_timeout) {
  const int size = job.size;
  ucp_config_t* raw = nullptr;
  if (const ucs_status_t status = ucp_config_read(nullptr, nullptr, &raw); status != UCS_OK) {
    return failed("ucp_config_read (a malformed UCX_* variable?)", status);
  }
  const ConfigHandle config(raw);
  Status status = modify(raw, "TLS", plan.tls.c_str());
  // Or UCX 1.13 takes memory that is pinned here, and that the program has freed, for a chunk of its own, and frees
  // that chunk when it is unpinned here.
  if (status.ok()) status = modify(raw, "RCACHE_ENABLE", "n");
  if (status.ok() && !plan.net_devices.empty()) status = modify(raw, "NET_DEVICES", plan.net_devices.c_str());
  if (status.ok()) status = modify_all(raw, kOptions);
  if (status.ok() && (!job.in_host || plan.rdma)) status = modify_all(raw, kRdmaOptions);
  if (status.ok() && plan.tcp) status = modify_all(raw, kTcpOptions);
  if (status.ok() && plan.tcp && running_version() >= kBindsSockets) status = modify_all(raw, kBindOptions);
  if (status.ok() && plan.tcp) status = set_keepalive(raw, peer_timeout);
  if (status.ok()) status = set_segment(raw, tcp_segment_bytes(plan, size));
  if (status.ok() && plan.shared_memory) status = modify_all(raw, kSharedMemoryOptions);
  if (!status.ok()) return status;

  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM;
  params.estimated_num_eps = static_cast<size_t>(size);
  params.name = "ibcoll";
  const ucs_status_t answer = ucp_init(&params, raw, &context_);
  return answer == UCS_OK ? Status() : failed("ucp_init", answer);
}

Status Worker::open_worker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // the context's lock sees to it
  if (const ucs_status_t status = ucp_worker_create(context_, &params, &worker_); status != UCS_OK) {
    return failed("ucp_worker_create", status);
  }
  ucp_address_t* address = nullptr;
  size_t length = 0;
  if (const ucs_status_t status = ucp_worker_get_address(worker_, &address, &length); status != UCS_OK) {
    return failed("ucp_worker_get_address", status);
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(address);
  address_.assign(bytes, bytes + length);
  ucp_worker_release_address(worker_, address);
  return {};
}

void Worker::end(std::unique_ptr<Memory>& memory) {
  if (!abandoned_) {
    ucp_worker_destroy(std::exchange(worker_, nullptr));
    return;
  }
  if (memory->registrations) memory->registrations->clear();
  // Never destroyed, and still referenced, so that leak checkers do not report it. Contexts of one process may end in
  // several threads.
  struct Abandoned {
    ucp_worker_h worker;
    ucp_context_h context;
    std::unique_ptr<Memory> memory;
  };
  static auto& mutex = *new std::mutex;
  static auto& abandoned = *new std::vector<Abandoned>;
  const std::lock_guard lock(mutex);
  abandoned.push_back({std::exchange(worker_, nullptr), std::exchange(context_, nullptr), std::move(memory)});
}

Worker::~Worker() {
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

Status Worker::on_message(unsigned id, ucp_am_recv_callback_t handler, void* argument) {
  ucp_am_handler_param_t params{};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = id;
  params.flags = UCP_AM_FLAG_WHOLE_MSG;
  params.cb = handler;
  params.arg = argument;
  const ucs_status_t status = ucp_worker_set_am_recv_handler(worker_, &params);
  return status == UCS_OK ? Status() : failed("ucp_worker_set_am_recv_handler", status);
}

}  // namespace ibcoll::ucx
