// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/join.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>

#include "runtime/base/config_values.h"
#include "runtime/base/hash.h"
#include "runtime/base/log.h"
#include "runtime/context/combine_trial.h"
#include "runtime/context/join_messages.h"
#include "runtime/context/link_trial.h"
#include "runtime/context/network_choice.h"
#include "runtime/context/networks.h"
#include "runtime/machine/copy.h"
#include "runtime/machine/interfaces.h"
#include "runtime/machine/routes.h"
#include "runtime/machine/topology.h"
#include "runtime/shm/handover.h"
#include "runtime/shm/memory_trial.h"
#include "runtime/transport/cost_constants.h"
#include "runtime/transport/network_transport.h"

namespace ibcoll {
namespace {

constexpr std::chrono::milliseconds kLinkTimeLimit{100};
constexpr int kPassesPerHostCall = 64;  // while a link is timed

uint64_t digest_of(std::string_view text) { return Digest().add(text).value(); }

std::string version_text(uint64_t version) {
  return fmt::format("{}.{}.{}", version >> 32, version >> 16 & 0xffff, version & 0xffff);
}

class Joining {
 public:
  Joining(Bootstrap& bootstrap, const Config& config, const HostProgram& host)
      : bootstrap_(bootstrap), config_(config), host_(host), networks_(config.text("IBCOLL_NET")) {}

  // Each step does its part on this rank, exchanges its message (join_messages.h), and uses the others' messages.
  Result<JoinedJob> run() {
    for (Status (Joining::*step)() :
         {&Joining::meet, &Joining::open_node, &Joining::find_networks, &Joining::open_network, &Joining::connect,
          &Joining::probe_node, &Joining::time_node, &Joining::time_link})
      if (Status status = (this->*step)(); !status.ok()) return status;
    return std::move(job_);
  }

 private:
  // This rank's part of a step. If memory is short, all ranks learn of that in this step or in the next one, so none
  // waits in vain.
  template <typename Body>
  Status attempt(Body body) {
    return job_.lack.ok() ? or_no_memory(body) : job_.lack;
  }
  // Runs what follows from the messages of all ranks.
  template <typename Body>
  void conclude(Body body) {
    job_.lack = attempt([&]() -> Status {
      body();
      return {};
    });
  }

  int rank() const { return bootstrap_.rank(); }

  // ---- step 1

  // Nodes, cores and settings of all ranks. Only with the same version they can read each other's messages.
  Status meet() {
    MeetMessage message;
    const Status mine = attempt([&] { return introduce(message); });
    message.answer = answer_of(mine);
    Result<std::vector<MeetMessage>> all = gather_messages(bootstrap_, message);
    if (!all.ok()) return all.status();
    for (size_t i = 0; i < all->size(); ++i)
      if (Status status = compare_versions(all->front(), (*all)[i], i); !status.ok()) return status;
    if (Status status = first_error(bootstrap_, mine, *all); !status.ok()) return status;
    for (size_t i = 0; i < all->size(); ++i)
      if (Status status = compare_settings(all->front(), (*all)[i], i); !status.ok()) return status;
    job_.id = all->front().nonce;
    segment_id_ = all->back().nonce;
    Status users;
    conclude([&] {
      users = compare_users(*all);
      number(*all, message.node);
    });
    return users;
  }

  Status introduce(MeetMessage& message) const {
    message.node = digest_of(node_identity() + "/" + bootstrap_.node());
    message.machine = digest_of(bootstrap_.local_job() ? "one" : node_identity());
    message.user = ::geteuid();
    message.cpus = cpu_share();
    if (::getentropy(&message.nonce, sizeof message.nonce) != 0)
      return error(IBCOLL_ERR_SYSTEM, "getentropy: {}", std::strerror(errno));
    const std::span<const Setting> settings = Config::settings();
    if (settings.size() > MeetMessage::kMostSettings)
      return error(IBCOLL_ERR_INTERNAL, "{} settings, but ranks compare {} only", settings.size(),
                   MeetMessage::kMostSettings);
    for (size_t i = 0; i < settings.size(); ++i)
      if (settings[i].ranks == Setting::Ranks::kAgree)
        message.settings[i] = digest_of(normal_form(settings[i], config_.text(settings[i].name)));
    return {};
  }

  static Status compare_versions(const MeetMessage& first, const MeetMessage& other, size_t rank) {
    if (first.version != other.version)
      return error(IBCOLL_ERR_BOOTSTRAP,
                   "rank 0 has version {} of ibcoll, rank {} has {}; install one version on all hosts",
                   version_text(first.version), rank, version_text(other.version));
    return {};
  }

  static Status compare_settings(const MeetMessage& first, const MeetMessage& other, size_t rank) {
    const std::span<const Setting> settings = Config::settings();
    for (size_t i = 0; i < settings.size(); ++i)
      if (first.settings[i] != other.settings[i])
        return error(IBCOLL_ERR_CONFIG,
                     "{} differs between rank 0 and rank {}; it must be the same on all ranks (see "
                     "ibcoll_info -c on both, and ibcoll_run -x)",
                     settings[i].name, rank);
    return {};
  }

  // Processes of another user may not have the memory that a node shares.
  static Status compare_users(const std::vector<MeetMessage>& all) {
    std::map<uint64_t, size_t> first_of_node;
    for (size_t i = 0; i < all.size(); ++i) {
      const size_t first = first_of_node.emplace(all[i].node, i).first->second;
      if (all[first].user != all[i].user)
        return error(
            IBCOLL_ERR_CONFIG,
            "rank {} runs as the user with the number {}, and rank {} of the same node as the user {}; start all "
            "ranks as one user",
            first, all[first].user, i, all[i].user);
    }
    return {};
  }

  void number(const std::vector<MeetMessage>& all, uint64_t own_node) {
    std::vector<std::string> identities;
    identities.reserve(all.size());
    for (const MeetMessage& message : all) identities.push_back(std::to_string(message.node));
    job_.nodes = number_nodes(identities);
    job_.node_count = 1 + *std::max_element(job_.nodes.begin(), job_.nodes.end());
    std::map<uint64_t, std::vector<CpuShare>> machines, nodes;
    for (size_t i = 0; i < all.size(); ++i) {
      machines[all[i].machine].push_back(all[i].cpus);
      nodes[all[i].node].push_back(all[i].cpus);
      if (all[i].node == own_node) locals_.push_back(static_cast<int>(i));
    }
    job_.one_cpu = share_one_cpu(nodes[own_node]);
    // Emulated nodes of one machine may each have a part of its cores.
    for (const auto& groups : {machines, nodes})
      for (const auto& [group, ranks] : groups)
        job_.ranks_per_core = std::max(job_.ranks_per_core, ranks_per_core(ranks));
  }

  // Other users see the names of sockets, so the name must not reveal the number of the job.
  std::string segment_name() const {
    return fmt::format("ibcoll-{:016x}-{}", segment_id_, job_.nodes[static_cast<size_t>(rank())]);
  }

  // Proves to the leader that a rank belongs to the job. Unlike the name, other users do not see it.
  uint64_t segment_key() const { return digest_of(fmt::format("segment of {:016x}", job_.id)); }

  // ---- step 2

  // The leader of each node makes the segment; where several nodes need a network, ranks open those that open early.
  Status open_node() {
    OpenNodeMessage message;
    const Status mine = attempt([&] {
      Status made = make_segment();
      return made.ok() && job_.node_count > 1 ? networks_.open_early(network_params(), message) : made;
    });
    Result<std::vector<OpenNodeMessage>> all = end_step(bootstrap_, mine, message);
    if (!all.ok()) return all.status();
    networks_.decide(*all);
    conclude([&] { networks_.explain(*all); });
    return {};
  }

  Status make_segment() {
    if (locals_.size() == 1 || locals_.front() != rank()) return {};
    Result<std::unique_ptr<shm::Segment>> made = shm::Segment::create(static_cast<int>(locals_.size()), ring_bytes());
    if (!made.ok()) return made.status();
    Result<UniqueFd> offer = shm::offer_segment(segment_name(), (*made)->ranks());
    if (!offer.ok()) return offer.status();
    segment_ = std::move(*made);
    segment_offer_ = std::move(*offer);
    return {};
  }

  uint64_t ring_bytes() const { return std::bit_ceil(config_.bytes("IBCOLL_SHM_RING_BYTES")); }

  NetworkParams network_params() const {
    return {rank(),          bootstrap_.size(),
            &config_,        bootstrap_.local_job(),
            job_.id,         static_cast<int>(locals_.size()) - 1,
            host_.present(), reached_ ? &*reached_ : nullptr};
  }

  // ---- step 3

  // Needed where the transport would assume that any interface of one host is joined to any of another.
  Status find_networks() {
    if (job_.node_count == 1 || bootstrap_.local_job() || !networks_.needs_routes()) return {};
    NetworksMessage message;
    std::vector<Interface> interfaces;
    const Status listed = attempt([&]() -> Status {
      Result<std::vector<Interface>> found = list_interfaces();
      if (!found.ok()) return found.status();
      interfaces = std::move(found.value());
      message.addresses = HostAddresses::of(digest_of(network_identity()), interfaces);
      return {};
    });
    Result<std::vector<NetworksMessage>> all = end_step(bootstrap_, listed, message);
    if (!all.ok()) return all.status();
    std::optional<Networks> networks;
    std::vector<std::byte> mine, ways;
    try_twice([&] {  // without it the next exchange cannot be
      std::vector<HostAddresses> addresses;
      addresses.reserve(all->size());
      for (const NetworksMessage& theirs : *all) addresses.push_back(theirs.addresses);
      networks.emplace(std::move(addresses));
      mine = networks->ways_from(rank(), Routes::open());
      ways.resize(mine.size() * all->size());
    });
    if (!mine.empty())
      if (Status status = bootstrap_.allgather(mine, ways); !status.ok()) return status;
    conclude([&] { reached_ = networks->reached(rank(), ways, interfaces); });
    return {};
  }

  // ---- step 4

  Status open_network() {
    const Status mine = attempt([&] { return use_network(); });
    OpenNetworkMessage message;
    message.address_bytes = static_cast<uint32_t>(address_.size());
    if (job_.net) {
      message.link = as_set(job_.net->model());
      message.steady_link = as_set(job_.net->steady_model());
    }
    Result<std::vector<OpenNetworkMessage>> all = end_step(bootstrap_, mine, message);
    if (!all.ok()) return all.status();
    job_.net_model = job_.steady_net_model = {0, 0, 0, true};
    for (const OpenNetworkMessage& theirs : *all) {
      longest_address_ = std::max<size_t>(longest_address_, theirs.address_bytes);
      slow_down(job_.net_model, theirs.link);
      slow_down(job_.steady_net_model, theirs.steady_link);
    }
    return {};
  }

  // As the transport reports it, unless the user has set the bandwidth.
  LinkMessage as_set(const LinkModel& model) const {
    LinkMessage link{static_cast<float>(model.alpha_us), static_cast<float>(model.beta_us_per_byte),
                     static_cast<float>(model.cpu_us), model.by_ranks, model.beta};
    const auto megabits = static_cast<float>(config_.integer("IBCOLL_LINK_MBITS"));
    if (megabits > 0) link.beta_us_per_byte = 8 / megabits, link.beta = LinkModel::Beta::kKnown;
    return link;
  }

  static void slow_down(LinkModel& model, const LinkMessage& to) {
    model.alpha_us = std::max<double>(model.alpha_us, to.alpha_us);
    model.beta_us_per_byte = std::max<double>(model.beta_us_per_byte, to.beta_us_per_byte);
    model.cpu_us = std::max<double>(model.cpu_us, to.cpu_us);
    model.by_ranks = model.by_ranks && to.by_ranks != 0;
    model.beta = std::max(model.beta, to.beta);
  }

  Status use_network() {
    if (job_.node_count == 1) {
      job_.net_reason = "not used: all ranks are on one node";
      return {};
    }
    Result<std::unique_ptr<NetworkTransport>> network = networks_.open(network_params(), job_.node_count);
    if (!network.ok()) return network.status();
    job_.net_reason = networks_.reason();
    address_ = (*network)->address();
    network_ = network->get();
    job_.net = std::move(*network);
    return {};
  }

  // ---- step 5

  // Exchanges network addresses, and hands the segment to the ranks of the node. A rank that cannot use the addresses
  // still takes part in the handover, since the other ranks of its node wait for it; its message then has the error.
  Status connect() {
    Result<std::vector<std::byte>> slots = gather_addresses();
    if (!slots.ok()) return slots.status();
    Status mine = attempt([&] { return set_addresses(*slots); });
    if (Status shared = attempt([&] { return share_segment(); }); !shared.ok()) {
      mine = std::move(shared);
      segment_offer_.reset();  // of a leader: closes the socket on which other ranks wait
    }
    return end_step(bootstrap_, mine, ConnectMessage()).status();
  }

  // A slot per rank: the length of its address, and the address.
  size_t address_slot() const { return sizeof(uint32_t) + longest_address_; }

  Result<std::vector<std::byte>> gather_addresses() {
    if (longest_address_ == 0) return std::vector<std::byte>();
    std::vector<std::byte> mine, all;
    try_twice([&] {
      mine.resize(address_slot());
      all.resize(address_slot() * static_cast<size_t>(bootstrap_.size()));
    });
    const auto length = static_cast<uint32_t>(address_.size());
    std::memcpy(mine.data(), &length, sizeof length);
    std::memcpy(mine.data() + sizeof length, address_.data(), address_.size());
    if (Status status = bootstrap_.allgather(mine, all); !status.ok()) return status;
    return all;
  }

  Status set_addresses(const std::vector<std::byte>& slots) {
    if (slots.empty()) return {};
    std::vector<std::vector<std::byte>> addresses;
    for (size_t at = 0; at < slots.size(); at += address_slot()) {
      const std::byte* const from = slots.data() + at;
      uint32_t bytes = 0;
      std::memcpy(&bytes, from, sizeof bytes);
      bytes = std::min(bytes, static_cast<uint32_t>(longest_address_));
      addresses.emplace_back(from + sizeof bytes, from + sizeof bytes + bytes);
    }
    return network_->set_addresses(std::move(addresses));
  }

  Status share_segment() {
    if (locals_.size() == 1) return {};
    const Deadline deadline = Deadline::after_seconds(config_.seconds("IBCOLL_TIMEOUT"));
    const auto self = std::find(locals_.begin(), locals_.end(), rank()) - locals_.begin();
    // The leader waits for all ranks of its node, and they for it.
    const auto [name, key] = try_twice([this] { return std::pair(segment_name(), segment_key()); });
    shm::Meanwhile meanwhile;
    if (host_.present()) meanwhile = [this] { return host_.advance(); };
    if (segment_) {
      Status served = shm::hand_over(*segment_, std::move(segment_offer_), key, locals_, deadline, meanwhile);
      if (!served.ok()) return served;
    } else {
      Result<std::unique_ptr<shm::Segment>> received = shm::receive_segment(
          name, key, static_cast<int>(self), static_cast<int>(locals_.size()), ring_bytes(), deadline, meanwhile);
      if (!received.ok()) return received.status();
      segment_ = std::move(*received);
    }
    job_.shm = std::make_unique<shm::Transport>(std::move(segment_), locals_, static_cast<int>(self),
                                                config_.text("IBCOLL_SINGLE_COPY") != "off");
    job_.memory = std::make_unique<shm::NodeMemory>(job_.shm->node());
    return {};
  }

  // ---- step 6

  Status probe_node() {
    const Status mine = attempt([&] {
      Status fits = fit_slots();
      return fits.ok() && job_.shm ? job_.shm->node().probe() : fits;
    });
    return end_step(bootstrap_, mine, ProbeMessage()).status();
  }

  // Also for a rank alone on its node: it has no rings, but receives eager messages of other nodes.
  Status fit_slots() const {
    const uint64_t eager = config_.bytes("IBCOLL_EAGER_BYTES");
    for (const Transport* const t :
         {static_cast<const Transport*>(job_.shm.get()), static_cast<const Transport*>(job_.net.get())})
      if (t && eager > t->slot_bytes())
        return error(IBCOLL_ERR_CONFIG,
                     "rank {}: IBCOLL_EAGER_BYTES={} is more than a landing slot of {} holds; set it to {} or less{}",
                     rank(), eager, t->name(), t->slot_bytes(),
                     t == job_.shm.get() ? ", or IBCOLL_SHM_RING_BYTES to four times it" : "");
    return {};
  }

  // ---- step 7

  Status time_node() {
    MemoryModel mine;
    const Status timed_here = attempt([&]() -> Status {
      if (job_.shm) mine = job_.shm->node().time_memory();
      return {};
    });
    TimeMessage message;
    message.copy_us_per_byte = static_cast<float>(mine.copy_us_per_byte);
    message.read_us = static_cast<float>(mine.read_us);
    message.read_us_per_byte = static_cast<float>(mine.read_us_per_byte);
    message.streamed_copy_us_per_byte = static_cast<float>(mine.streamed_copy_us_per_byte);
    message.cache_bytes = static_cast<float>(last_level_cache_bytes());
    message.own_cache_bytes = static_cast<float>(own_cache_bytes());
    message.combine_us_per_byte = static_cast<float>(time_combining_us_per_byte());
    Result<std::vector<TimeMessage>> all = end_step(bootstrap_, timed_here, message);
    if (!all.ok()) return all.status();
    job_.cache_bytes = message.cache_bytes;
    job_.own_cache_bytes = message.own_cache_bytes;
    for (const TimeMessage& theirs : *all) {
      job_.cache_bytes = std::min<double>(job_.cache_bytes, theirs.cache_bytes);
      job_.own_cache_bytes = std::max<double>(job_.own_cache_bytes, theirs.own_cache_bytes);
      job_.combine_us_per_byte = std::max<double>(job_.combine_us_per_byte, theirs.combine_us_per_byte);
    }
    conclude([&] {
      std::vector<MemoryModel> timed;
      timed.reserve(all->size());
      for (const TimeMessage& theirs : *all)
        timed.push_back(
            {theirs.copy_us_per_byte, theirs.read_us, theirs.read_us_per_byte, theirs.streamed_copy_us_per_byte});
      job_.memory_model = shm::middle_of(std::move(timed));
    });
    return {};
  }

  // ---- step 8

  // The speed of a link that all ranks assume, where devices may report a wrong one.
  Status time_link() {
    if (job_.net_model.beta == LinkModel::Beta::kKnown) return {};
    TimeLinkMessage message;
    const Status mine = attempt([&] { return time_own_link(message); });
    Result<std::vector<TimeLinkMessage>> all = end_step(bootstrap_, mine, message);
    if (!all.ok()) return all.status();
    conclude([&] {
      std::vector<double> timed;
      for (const TimeLinkMessage& theirs : *all)
        if (theirs.us_per_byte > 0) timed.push_back(theirs.us_per_byte);
      job_.net_model.beta_us_per_byte = believed_us_per_byte(job_.net_model, std::move(timed));
    });
    return {};
  }

  // The leader of each node times the link of the previous node. If a peer does not keep up, as on a busy machine, the
  // times of the others count, or what the devices report.
  Status time_own_link(TimeLinkMessage& message) {
    if (locals_.front() != rank()) return {};
    std::vector<int> leaders(static_cast<size_t>(job_.node_count), -1);
    for (size_t i = 0; i < job_.nodes.size(); ++i)
      if (int& leader = leaders[static_cast<size_t>(job_.nodes[i])]; leader < 0) leader = static_cast<int>(i);
    const auto own = static_cast<size_t>(job_.nodes[static_cast<size_t>(rank())]), count = leaders.size();
    LinkTrial trial(*job_.net, leaders[(own + count - 1) % count], leaders[(own + 1) % count]);
    const auto end = std::chrono::steady_clock::now() + kLinkTimeLimit;
    for (int passes = 1; !trial.step() && std::chrono::steady_clock::now() < end; ++passes) {
      if (host_.present() && passes % kPassesPerHostCall == 0) host_.advance();
      ::sched_yield();
    }
    message.us_per_byte = static_cast<float>(trial.us_per_byte());
    return trial.failure();
  }

  Bootstrap& bootstrap_;
  const Config& config_;
  const HostProgram& host_;
  JoinedJob job_;
  std::vector<int> locals_;  // job ranks of this node
  uint64_t segment_id_ = 0;  // random, and the same on all ranks
  std::unique_ptr<shm::Segment> segment_;
  UniqueFd segment_offer_;
  NetworkChoice networks_;
  std::optional<std::vector<ReachedAddress>> reached_;  // nullopt: not known, nor needed
  NetworkTransport* network_ = nullptr;                 // job_.net
  std::vector<std::byte> address_;
  size_t longest_address_ = 0;
};

}  // namespace

Status agree(Bootstrap& bootstrap, const Status& mine) {
  Result<std::vector<AgreeMessage>> all = end_step(bootstrap, mine, AgreeMessage());
  return mine.ok() ? all.status() : mine;
}

Result<JoinedJob> join_job(Bootstrap& bootstrap, const Config& config, const HostProgram& host) {
  return Joining(bootstrap, config, host).run();
}

}  // namespace ibcoll
