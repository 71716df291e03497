// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/transport.h"

#include <algorithm>
#include <chrono>

#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/registration_cache/memlock.h"
#include "runtime/verbs/addresses.h"
#include "runtime/verbs/link_trial.h"

namespace ibcoll::verbs {
namespace {

constexpr uint32_t kPollsPerGreeting = 8;  // while none is awaited: a look at a completion queue less in the others
constexpr size_t kFirstConnections = 4;    // for which there is a completion queue from the start

}  // namespace

Result<std::unique_ptr<Transport>> Transport::open(const NetworkParams& params) {
  Result<PortChoice> choice = choose_port(*params.config, list_ports());
  if (!choice.ok()) return choice.status();
  for (const std::string& reason : choice->reasons) log(LogLevel::kInfo, "verbs: {}", reason);
  std::unique_ptr<Transport> transport(new Transport(params, std::move(*choice)));
  if (Status status = transport->prepare(*params.config); !status.ok()) return status;
  return transport;
}

Transport::Transport(const NetworkParams& params, PortChoice choice)
    : rank_(params.rank),
      size_(params.size),
      near_(params.near),
      in_host_(params.in_host),
      job_(params.job),
      choice_(std::move(choice)),
      peers_(static_cast<size_t>(params.size)) {}

Status Transport::prepare(const Config& config) {
  route_.port = static_cast<uint8_t>(choice_.port.number);
  route_.gid_index = static_cast<uint8_t>(choice_.gid_index);
  route_.service_level = static_cast<uint8_t>(config.integer("IBCOLL_VERBS_SERVICE_LEVEL"));
  route_.traffic_class = static_cast<uint8_t>(config.integer("IBCOLL_VERBS_TRAFFIC_CLASS"));
  settings_.timeout = static_cast<uint8_t>(config.integer("IBCOLL_VERBS_TIMEOUT"));
  settings_.retries = static_cast<uint8_t>(config.integer("IBCOLL_VERBS_RETRIES"));
  const int by_completions = choice_.port.most_completions / completions_for(1);
  settings_.most_queue_pairs = static_cast<uint32_t>(std::min<int64_t>(
      {config.integer("IBCOLL_VERBS_QUEUE_PAIRS"), by_completions, choice_.port.most_queue_pairs - 1}));

  // A program may call fork() for its own purposes; where the kernel copies registered pages at fork, nothing is
  // needed. It holds for all users of verbs in the process, so a host decides itself.
  if (!in_host_ && ibv_is_fork_initialized() == IBV_FORK_DISABLED)
    if (const int code = ibv_fork_init(); code != 0)
      log(LogLevel::kWarning, "verbs: ibv_fork_init: {}; programs that fork may lose data", std::strerror(code));

  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  for (int i = 0; i < count; ++i)
    if (choice_.port.device == ibv_get_device_name(list[i])) device_.reset(ibv_open_device(list[i]));
  const int code = errno;
  if (list) ibv_free_device_list(list);
  if (!device_) return verbs_error(device(), "ibv_open_device", code);
  domain_.reset(ibv_alloc_pd(device_.get()));
  if (!domain_) return verbs_error(device(), "ibv_alloc_pd", errno);
  if (Status status = make_completion_queue(); !status.ok()) return status;
  if (Status status = try_memory(config); !status.ok()) return status;
  registrar_ = std::make_unique<Registrar>(domain_.get(), choice_.opens_windows);
  registrations_ = std::make_unique<WatchedCache>(*registrar_, WatchedCache::Settings::from(config, in_host_));
  Result<std::unique_ptr<ConnectionManager>> connections =
      config.text("IBCOLL_VERBS_CONNECT") == "rdmacm" ? RdmaCm::open(rank_, size_, job_, choice_, config)
                                                      : Greetings::open(domain_.get(), route_, choice_.port.mtu);
  if (!connections.ok()) return connections.status();
  connections_ = std::move(*connections);
  const bool in_order = measure_link();
  // librdmacm takes the service level that the subnet manager says, which has not been asked about.
  gate_notify(config, in_order && config.text("IBCOLL_VERBS_CONNECT") != "rdmacm");
  return {};
}

size_t Transport::most_connections() const noexcept {
  return std::min(static_cast<size_t>(size_ - 1 - near_), size_t{settings_.most_queue_pairs});
}

// For the first connections, where the device can make it larger later; else for all that there may be.
Status Transport::make_completion_queue() {
  const auto make = [this](size_t queue_pairs) -> Status {
    const int wanted = std::min(choice_.port.most_completions, completions_for(queue_pairs));
    completions_.reset(ibv_create_cq(device_.get(), wanted, nullptr, nullptr, 0));
    return completions_ ? Status{}
                        : verbs_error(device(), fmt::format("ibv_create_cq of {} completions", wanted), errno);
  };
  if (Status status = make(kFirstConnections); !status.ok()) return status;
  if (completions_for(most_connections()) <= completions_->cqe) return {};
  // One more: what a device has already costs no driver a question to it.
  const int code = ibv_resize_cq(completions_.get(), std::min(choice_.port.most_completions, completions_->cqe + 1));
  if (code == 0) return {};
  log(LogLevel::kInfo,
      "verbs: {}: ibv_resize_cq: {}; there is room for the completions of {} connections from the start", device(),
      std::strerror(code > 0 ? code : errno), most_connections());
  return make(most_connections());
}

// Each connection pins its slots. What is too little for one is told now; what is too little for all, before another
// network is out of the question.
Status Transport::try_memory(const Config& config) {
  PinnedChannel one;
  if (Status status = one.make(domain_.get()); !status.ok()) return status;
  const uint64_t connections = most_connections();
  const uint64_t needed = connections * sizeof(Channel), limit = memlock_limit();
  if (needed <= limit || config.text("IBCOLL_NET") != "auto") return {};
  return error(
      IBCOLL_ERR_NO_MEMORY,
      "connections to {} ranks pin {} KB, and the limit of locked memory is {} KB (ulimit -l): raise it in "
      "/etc/security/limits.conf (memlock unlimited), or use verbs with --net verbs where each rank talks to few",
      connections, needed / 1024, limit / 1024);
}

// Polling memory needs a device that writes the bytes of a message in order.
void Transport::gate_notify(const Config& config, bool in_order) {
  const std::string& choice = config.text("IBCOLL_VERBS_NOTIFY");
  const char* const promise =
      in_order ? "the device writes messages in order" : "the device promises no order of writes";
  settings_.notify = choice == "memory" || (choice == "auto" && in_order) ? Notify::kMemory : Notify::kImmediate;
  notify_reason_ = choice == "auto" ? promise : fmt::format("by IBCOLL_VERBS_NOTIFY; {}", promise);
  if (settings_.notify == Notify::kMemory && !in_order)
    log(LogLevel::kWarning,
        "verbs: IBCOLL_VERBS_NOTIFY=memory, but {} does not promise to write a message in order: data may be wrong; "
        "IBCOLL_VERBS_NOTIFY=imm is safe",
        device());
}

Transport::~Transport() {
  if (!connections_) return;
  say_goodbye();
  for (const std::unique_ptr<Peer>& peer : peers_) {
    if (!peer || !peer->connection.has_queue_pair()) continue;
    peer->liveness.leave();
    if (!peer->liveness.lost())
      peer->liveness.lose(fmt::format("rank {}: verbs: closes the connection to rank {}", rank_, peer->rank),
                          IBCOLL_OK);
    break_connection(*peer, 0);
  }
  for (const std::unique_ptr<Peer>& peer : peers_)
    if (peer && peer->connection.has_queue_pair()) wait_until_drained(*peer);
  for (Exposure& exposure : exposures_) {
    exposure.window.handle.reset();
    unpin(exposure);
  }
}

std::vector<std::byte> Transport::address() const {
  Address own = address_of(choice_);
  own.process = processes_.own();
  connections_->tell_address(own);
  const auto bytes = std::as_bytes(std::span(&own, 1));
  return {bytes.begin(), bytes.end()};
}

Status Transport::set_addresses(std::vector<std::vector<std::byte>> by_rank) {
  if (by_rank.size() != static_cast<size_t>(size_))
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "verbs: {} addresses for {} ranks", by_rank.size(), size_);
  std::vector<Address> addresses(by_rank.size());
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank].size() != sizeof(Address))
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "verbs: the address of rank {} has {} bytes, not {}", rank,
                   by_rank[rank].size(), sizeof(Address));
    std::memcpy(&addresses[rank], by_rank[rank].data(), sizeof(Address));
  }
  const auto self = static_cast<size_t>(rank_);
  for (size_t rank = 0; rank < by_rank.size(); ++rank)
    if (Status status = check_reach(rank_, addresses[self], static_cast<int>(rank), addresses[rank]); !status.ok())
      return status;
  connections_->set_addresses(addresses);
  addresses_ = std::move(addresses);
  return {};
}

size_t Transport::poll(std::span<Event> events) {
  outbox_.take_back([this](Peer* peer) {
    peer->receiving.release();
    tell_consumed(*peer);
    ring(*peer);
  });
  registrations_->collect();
  take_completions();
  if (settings_.notify == Notify::kMemory) look_at_slots();
  if (!greeted_.empty() || ++polls_ % kPollsPerGreeting == 0) serve_greetings();
  if (draining_ > 0) end_late_drains();
  retry_pumps();
  if (unsent_.load(std::memory_order_relaxed)) count_unsent();
  return outbox_.hand_out(events, [this](Peer& peer, Event& event) { return hand_out_message(peer, event); });
}

Time Transport::now() const { return static_cast<Time>(std::chrono::steady_clock::now().time_since_epoch().count()); }

// With windows, a bind and an invalidation; without them a region is pinned and unpinned each time
// (measured on soft-RoCE: alltoall of 4 ranks is faster through slots at 20 KB, and as fast at 40 KB).
size_t Transport::least_worth_exposing() const {
  return choice_.opens_windows && choice_.port.good_windows ? 0 : 40960;
}

LinkModel Transport::model() const { return model_; }

// True when the device writes the bytes of a message in order.
bool Transport::measure_link() {
  const Result<LinkTrial> tried = try_link(domain_.get(), route_, choice_);
  if (tried.ok()) {
    model_ = tried->model;
    return tried->in_order;
  }
  model_reason_ = "a guess: " + tried.status().text();
  log(LogLevel::kInfo, "verbs: the link's cost is a guess, and so no order of writes is relied on: {}",
      tried.status().text());
  return false;
}

Json Transport::describe() const {
  const Counters& c = counters_;
  return {{"name", name()},
          {"device", fmt::format("{}:{}", choice_.port.device, choice_.port.number)},
          {"address", choice_.global ? gid_text(choice_.gid) : fmt::format("LID {}", choice_.port.lid)},
          {"gid_index", choice_.gid_index},
          {"mtu", 128 << choice_.port.mtu},
          {"notify", settings_.notify == Notify::kMemory ? "memory" : "imm"},
          {"notify_reason", notify_reason_},
          {"alpha_us", model_.alpha_us},
          {"beta_us_per_byte", model_.beta_us_per_byte},
          {"cpu_us", model_.cpu_us},
          {"model_reason", model_reason_},
          {"exact_ranges", !choice_.opens_windows      ? "a memory region each"
                           : choice_.port.good_windows ? "memory windows"
                                                       : "memory windows, on a memory region each"},
          {"reasons", choice_.reasons},
          {"connect", connections_->name()},
          {"most_queue_pairs", settings_.most_queue_pairs},
          {"queue_pairs", queue_pairs_},
          {"connections", c.connections - c.reconnections},
          {"reconnections", c.reconnections},
          {"messages_sent", c.messages_sent},
          {"puts_sent", c.puts_sent},
          {"bytes_sent", c.bytes_sent},
          {"messages_received", c.messages_received},
          {"puts_received", c.puts_received},
          {"puts_refused", c.puts_refused},
          {"puts_dropped", c.puts_dropped},
          {"bytes_received", c.bytes_received},
          {"no_credit", c.no_credit},
          {"credits_told", c.credits_told},
          {"puts_copied", c.puts_copied},
          {"not_exposed", c.not_exposed},
          {"registration_cache", registrations_->describe()},
          {"failed_peers", c.failed_peers}};
}

}  // namespace ibcoll::verbs
