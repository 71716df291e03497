// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/ucx/transport.h"

#include <algorithm>
#include <chrono>
#include <fstream>

#include "runtime/base/hash.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/machine/descriptors.h"
#include "runtime/machine/network_end.h"
#include "runtime/registration_cache/memlock.h"
#include "runtime/transport/cost_constants.h"

namespace ibcoll::ucx {

namespace {

constexpr uint64_t kOwnDescriptors = 24;
constexpr uint64_t kDescriptorsPerPeer = 3;  // a socket, perhaps one that crosses it, and a pidfd
constexpr Time kAfterFailedPin = 1'000'000'000;
constexpr uint64_t kPinnedByUcx = 80 << 20;  // of each rank, for its own buffers (UCX 1.13, rc_verbs and ud_verbs)

uint64_t key_seed(int rank) {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return static_cast<uint64_t>(now) * kGoldenRatio + static_cast<uint64_t>(rank);
}

// The job times its links when it starts, unless beta is known.
LinkModel guess_model(const DevicePlan& plan) {
  if (plan.rdma || !plan.tcp) return cost::kUcxAdapterLink;
  LinkModel model = cost::kTcpLink;
  const std::string first = plan.net_devices.substr(0, plan.net_devices.find(','));
  double megabits = 0;
  if (plan.net_devices == "lo") {
    model.beta_us_per_byte = cost::kLoopbackByteUs;
    model.beta = LinkModel::Beta::kKnown;
  } else if (std::ifstream("/sys/class/net/" + first + "/speed") >> megabits && megabits > 0) {
    model.beta_us_per_byte = 8.0 / megabits;
    model.beta = LinkModel::Beta::kReported;
  }
  return model;
}

// Before UCX ends itself.
[[gnu::destructor]] void end_with_the_process() { NetworkEnd::come(); }

Result<DevicePlan> plan_here(const Config& config, bool local_job, const std::vector<ReachedAddress>* reached) {
  Result<std::vector<Interface>> interfaces = list_interfaces();
  if (!interfaces.ok()) return interfaces.status();
  return plan_devices(config, UserChoice::from_environment(), local_job, *interfaces, list_rdma_ports(), reached);
}

}  // namespace

Result<std::unique_ptr<Transport>> Transport::open(const NetworkParams& params, LargePuts large) {
  Result<DevicePlan> plan = plan_here(*params.config, params.local_job, params.reached);
  if (!plan.ok()) return plan.status();
  for (const std::string& reason : plan->reasons) log(LogLevel::kInfo, "ucx: {}", reason);
  if (plan->rdma && memlock_limit() < kPinnedByUcx) {
    log(LogLevel::kWarning,
        "ucx: UCX pins some {} MB for RDMA and may not get on with less: {}, or use IBCOLL_UCX_TLS=tcp",
        kPinnedByUcx >> 20, memlock_advice());
  }
  const auto remote = static_cast<uint64_t>(params.size - 1 - params.near);
  Status room = ensure_descriptors(kOwnDescriptors + kDescriptorsPerPeer * remote, "UCX", !params.in_host);
  if (!room.ok()) return error(room.code(), "rank {}: ucx: {}", params.rank, room.text());
  const double peer_timeout = params.config->seconds("IBCOLL_PEER_TIMEOUT");
  const std::vector<uint64_t> others = plan->tcp ? SocketWatch::listening() : std::vector<uint64_t>();
  Result<std::unique_ptr<Worker>> worker = Worker::open(params, *plan, peer_timeout);
  if (!worker.ok()) return worker.status();
  std::unique_ptr<SocketWatch> sockets;
  if (plan->tcp) {
    sockets = std::make_unique<SocketWatch>(static_cast<Time>(peer_timeout * 1e9));
    sockets->find_listeners(others, (*worker)->address());
  }
  std::unique_ptr<Transport> transport(
      new Transport(params, std::move(*plan), large, std::move(*worker), std::move(sockets)));
  if (Status status = transport->register_handlers(); !status.ok()) return status;
  return transport;
}

Transport::Transport(const NetworkParams& params, DevicePlan plan, LargePuts large, std::unique_ptr<Worker> worker,
                     std::unique_ptr<SocketWatch> sockets)
    : rank_(params.rank),
      size_(params.size),
      job_(params.job),
      plan_(std::move(plan)),
      model_(guess_model(plan_)),
      rendezvous_(large == LargePuts::kRendezvous || plan_.rdma || !(plan_.tcp || plan_.shared_memory)),
      fragment_bytes_((rendezvous_ ? kSegment : std::max(kSegment, tcp_segment_bytes(plan_, size_))) - kHeaderRoom),
      sockets_(std::move(sockets)),
      worker_(std::move(worker)),
      memory_(std::make_unique<Memory>(worker_->context(), key_seed(params.rank))),
      peers_(static_cast<size_t>(params.size)) {
  worker_->sockets = sockets_.get();
  if (rendezvous_)
    memory_->registrations = std::make_unique<WatchedCache>(
        memory_->registrar, WatchedCache::Settings::from(*params.config, params.in_host));
}

Transport::~Transport() {
  announce_leaving();
  close_endpoints();
  exposures_.for_each([&](Exposures::Exposure& exposure) {
    if (exposure.landing == 0)
      unpin(exposure.pinned);
    else
      worker_->abandon();  // UCX still holds it
  });
  worker_->end(memory_);
}

Status Transport::register_handlers() {
  Status status = worker_->on_message(kMessageId, &Transport::on_message, this);
  if (status.ok()) status = worker_->on_message(kPutId, &Transport::on_put, this);
  if (status.ok()) status = worker_->on_message(kControlId, &Transport::on_control, this);
  return status;
}

// Returns what the process watch needs, where this rank listens, then UCX's own address.
std::vector<std::byte> Transport::address() const {
  const auto id = std::as_bytes(std::span(&processes_.own(), 1));
  std::vector<std::byte> all(id.begin(), id.end());
  const std::vector<std::byte> tcp = sockets_ ? sockets_->own_addresses() : std::vector<std::byte>(4);
  all.insert(all.end(), tcp.begin(), tcp.end());
  all.insert(all.end(), worker_->address().begin(), worker_->address().end());
  return all;
}

Status Transport::set_addresses(std::vector<std::vector<std::byte>> by_rank) {
  if (by_rank.size() != static_cast<size_t>(size_)) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "rank {}: ucx: {} addresses for {} ranks", rank_, by_rank.size(), size_);
  }
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    const auto tcp = std::span(by_rank[rank]).subspan(std::min(by_rank[rank].size(), sizeof(ProcessId)));
    const size_t tcp_bytes = SocketWatch::bytes_of(tcp);
    if (tcp_bytes == 0 || tcp_bytes == tcp.size()) {
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "rank {}: ucx: the address of rank {} has only {} bytes", rank_, rank,
                   by_rank[rank].size());
    }
    if (sockets_) sockets_->set_addresses_of(static_cast<int>(rank), tcp);
    by_rank[rank].erase(by_rank[rank].begin() + sizeof(ProcessId),
                        by_rank[rank].begin() + static_cast<std::ptrdiff_t>(sizeof(ProcessId) + tcp_bytes));
  }
  if (sockets_) sockets_->admit_ranks();
  addresses_ = std::move(by_rank);
  return {};
}

RemoteRegion Transport::expose(int rank, std::span<std::byte> memory) {
  if (rank < 0 || rank >= size_) return {};
  Registration* pinned = nullptr;
  if (rendezvous_ &&
      memory.size() > fragment_bytes_) {  // now, while the peer is on its way, and not when its data comes
    pinned = pin(memory);
    if (pinned == nullptr) return {};
  }
  const RemoteRegion region = exposures_.add(rank, memory, pinned);
  if (region.key == 0) unpin(pinned);
  return region;
}

// For a rendezvous. UCX would pin by itself, but ends the process if it cannot (1.13). NULL: this rank cannot, which is
// logged once. The next attempt is a second later.
Registration* Transport::pin(std::span<const std::byte> memory) {
  if (next_pin_ != 0 && now() < next_pin_) return nullptr;
  const Result<Registration*> pinned =
      memory_->registrations->acquire({const_cast<std::byte*>(memory.data()), memory.size()});
  next_pin_ = pinned.ok() ? 0 : now() + kAfterFailedPin;
  if (pinned.ok()) return pinned.value();
  if (counters_.failed_pins++ == 0) {
    log(LogLevel::kWarning, "ucx: rank {} cannot pin its buffers and copies instead: {}; {}", rank_,
        pinned.status().text(),
        memlock_limit() != kNoMemlock ? memlock_advice() + ", or see what UCX says with IBCOLL_LOG=info"
                                      : "see what UCX says with IBCOLL_LOG=info, and dmesg");
  }
  return nullptr;
}

void Transport::unpin(Registration* pinned) {
  if (pinned != nullptr) memory_->registrations->release(pinned);
}

Time Transport::now() const {
  return static_cast<Time>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

LinkModel Transport::model() const { return model_; }

Json Transport::describe() const {
  const auto count = [&](Peer::State state) {
    return std::count_if(peers_.begin(), peers_.end(),
                         [&](const auto& p) { return p != nullptr && p->state == state; });
  };
  Json out = {
      {"name", "ucx"},
      {"version", ucp_get_version_string()},
      {"tls", plan_.tls},
      {"devices", plan_.net_devices.empty() ? "all" : plan_.net_devices},
      {"open_to", sockets_ ? sockets_->admitted_text() : "whom these devices let in"},
      {"reasons", plan_.reasons},
      {"connections", count(Peer::State::kConnected)},
      {"reports_dead_peers", !error_mode_none_},
      {"large_puts", rendezvous_ ? "rendezvous" : "fragments"},
      {"slot_bytes", kSlotBytes},
      {"fragment_bytes", fragment_bytes_},
      {"model",
       {{"alpha_us", model_.alpha_us}, {"beta_us_per_byte", model_.beta_us_per_byte}, {"cpu_us", model_.cpu_us}}},
      {"buffer_bytes", pool_.allocated_bytes()},
      {"exposed_regions", exposures_.count()},
      {"counters",
       {{"messages_sent", counters_.messages_sent},
        {"puts_sent", counters_.puts_sent},
        {"bytes_sent", counters_.bytes_sent},
        {"messages_received", counters_.messages_received},
        {"puts_received", counters_.puts_received},
        {"bytes_received", counters_.bytes_received},
        {"failed_pins", counters_.failed_pins},
        {"dropped", counters_.dropped},
        {"no_credit", counters_.no_credit},
        {"credits_returned", counters_.credits_returned},
        {"connections_made", counters_.connections},
        {"failed_peers", counters_.failed_peers}}}};
  if (rendezvous_) out.set("registration_cache", memory_->registrations->describe());
  return out;
}

}  // namespace ibcoll::ucx

ibcoll::NetworkTransport* ibcoll_ucx_open(const ibcoll::NetworkParams& params, ibcoll::Status* status) {
  ibcoll::Result<std::unique_ptr<ibcoll::ucx::Transport>> transport = ibcoll::ucx::Transport::open(params);
  *status = transport.status();
  return transport.ok() ? transport->release() : nullptr;
}

void ibcoll_ucx_devices(const ibcoll::Config& config, ibcoll::Json* devices) {
  ibcoll::ucx::quieten("error");
  const ibcoll::Result<ibcoll::ucx::DevicePlan> plan = ibcoll::ucx::plan_here(config, /*local_job=*/false, nullptr);
  *devices = ibcoll::Json();
  devices->set("reason", plan.ok() ? "usable" : plan.status().text());
  if (plan.ok()) devices->set("choice", plan->reasons);
  if (plan.ok() && plan->tcp)
    devices->set("listens", "on TCP, to ranks of the job only where the kernel filters (docs/security.md)");
}
