// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/join.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>

#include "runtime/base/config_values.h"
#include "runtime/base/hash.h"
#include "runtime/base/log.h"
#include "runtime/machine/copy.h"
#include "runtime/machine/module.h"
#include "runtime/machine/topology.h"
#include "runtime/shm/memory_trial.h"
#include "runtime/transport/network_transport.h"

namespace ibcoll {
namespace {

constexpr size_t kMostSettings = 64;
constexpr auto kJoinDeadline = std::chrono::seconds(60);

uint64_t digest_of(std::string_view text) { return Digest().add(text).value(); }

constexpr uint64_t kVersion = uint64_t{IBCOLL_VERSION_MAJOR} << 32 | IBCOLL_VERSION_MINOR << 16 | IBCOLL_VERSION_PATCH;

std::string version_text(uint64_t version) {
  return fmt::format("{}.{}.{}", version >> 32, version >> 16 & 0xffff, version & 0xffff);
}

struct Hello {
  uint64_t version = kVersion;  // the first field of every version
  uint64_t node = 0;            // ranks with the same share memory
  uint64_t machine = 0;         // ranks with the same share cores
  uint64_t nonce = 0;           // rank 0's is the job's
  CpuShare cpus;
  uint64_t settings[kMostSettings] = {};
};

struct Verdict {
  int32_t code = IBCOLL_OK;
  uint32_t address_bytes = 0;
  uint16_t verbs = 0;           // this rank has an RDMA device that it can use
  uint16_t verbs_expected = 0;  // or it could have
  float alpha_us = 0;           // of the network as this rank knows it
  float beta_us_per_byte = 0;
  float cpu_us = 0;
  uint8_t by_ranks = 0;
  float copy_us_per_byte = 0;  // of the node, if this rank has timed it
  float read_us = 0;
  float read_us_per_byte = 0;
  float streamed_copy_us_per_byte = 0;
  float cache_bytes = 0;
  float own_cache_bytes = 0;
  char text[464] = {};  // of the error, or why this rank has no verbs
};

template <typename T>
Result<std::vector<T>> gather(Bootstrap& bootstrap, const T& mine) {
  std::vector<T> all(static_cast<size_t>(bootstrap.size()));
  if (Status status = bootstrap.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
      !status.ok())
    return status;
  return all;
}

// "rank 3 could not join the job: ..."
Status error_of_rank(size_t rank, int32_t code, std::string_view text) {
  return error(static_cast<ibcoll_status_t>(code), "rank {} could not join the job: {}", rank, text);
}

template <size_t kBytes>
void copy_text(std::string text, char (&to)[kBytes]) {
  if (text.size() >= kBytes) text.replace(kBytes - 4, std::string::npos, "...");
  std::memcpy(to, text.data(), text.size());
}

template <size_t kBytes>
std::string_view text_of(const char (&text)[kBytes]) {
  return {text, ::strnlen(text, kBytes)};
}

class Joining {
 public:
  Joining(Bootstrap& bootstrap, const Config& config) : bootstrap_(bootstrap), config_(config) {}

  Result<Job> run() {
    for (Status (Joining::*step)() : {&Joining::meet, &Joining::open_node, &Joining::open_network,
                                      &Joining::connect_transports, &Joining::probe_node, &Joining::time_node}) {
      const Status mine = (this->*step)();
      if (Status status = agree(mine); !status.ok()) return status;
    }
    return std::move(job_);
  }

 private:
  int rank() const { return bootstrap_.rank(); }

  // All ranks leave with the first rank's error, or none does.
  Status agree(const Status& mine) {
    if (lost_) return mine;  // the bootstrap itself failed: nobody can be told
    Verdict verdict;
    verdict.code = mine.code();
    verdict.address_bytes = static_cast<uint32_t>(address_.size());
    verdict.verbs = verbs_ != nullptr;
    verdict.verbs_expected = verbs_expected_;
    if (job_.net) {
      const LinkModel model = job_.net->model();
      verdict.alpha_us = static_cast<float>(model.alpha_us);
      verdict.beta_us_per_byte = static_cast<float>(model.beta_us_per_byte);
      verdict.cpu_us = static_cast<float>(model.cpu_us);
      verdict.by_ranks = model.by_ranks;
    }
    verdict.copy_us_per_byte = static_cast<float>(timed_.copy_us_per_byte);
    verdict.read_us = static_cast<float>(timed_.read_us);
    verdict.read_us_per_byte = static_cast<float>(timed_.read_us_per_byte);
    verdict.streamed_copy_us_per_byte = static_cast<float>(timed_.streamed_copy_us_per_byte);
    verdict.cache_bytes = static_cast<float>(last_level_cache_bytes());
    verdict.own_cache_bytes = static_cast<float>(own_cache_bytes());
    copy_text(mine.ok() ? verbs_reason_ : mine.text(), verdict.text);
    Result<std::vector<Verdict>> all = gather(bootstrap_, verdict);
    if (!all.ok()) return all.status();
    longest_address_ = 0;
    without_verbs_.clear();
    job_.net_model = {0, 0, 0, true};
    job_.cache_bytes = verdict.cache_bytes;
    job_.own_cache_bytes = verdict.own_cache_bytes;
    std::vector<MemoryModel> timed;
    timed.reserve(all->size());
    for (size_t i = 0; i < all->size(); ++i) {
      const Verdict& v = (*all)[i];
      if (v.code != IBCOLL_OK && i == static_cast<size_t>(rank())) return mine;
      if (v.code != IBCOLL_OK) return error_of_rank(i, v.code, text_of(v.text));
      longest_address_ = std::max<size_t>(longest_address_, v.address_bytes);
      job_.net_model.alpha_us = std::max<double>(job_.net_model.alpha_us, v.alpha_us);
      job_.net_model.beta_us_per_byte = std::max<double>(job_.net_model.beta_us_per_byte, v.beta_us_per_byte);
      job_.net_model.cpu_us = std::max<double>(job_.net_model.cpu_us, v.cpu_us);
      job_.net_model.by_ranks = job_.net_model.by_ranks && v.by_ranks != 0;
      timed.push_back({v.copy_us_per_byte, v.read_us, v.read_us_per_byte, v.streamed_copy_us_per_byte});
      job_.cache_bytes = std::min<double>(job_.cache_bytes, v.cache_bytes);
      job_.own_cache_bytes = std::max<double>(job_.own_cache_bytes, v.own_cache_bytes);
      if (v.verbs == 0 && without_verbs_.empty()) without_verbs_ = fmt::format("rank {}: {}", i, text_of(v.text));
      any_expects_verbs_ = any_expects_verbs_ || v.verbs_expected != 0;
    }
    job_.memory_model = middle_of(std::move(timed));
    return {};
  }

  Status lost(Status status) {
    lost_ = true;
    return status;
  }

  // Nodes, cores and settings of all ranks.
  Status meet() {
    Hello mine;
    mine.node = digest_of(node_identity() + "/" + bootstrap_.node());
    mine.machine = digest_of(bootstrap_.local_job() ? "one" : node_identity());
    mine.cpus = cpu_share();
    if (::getentropy(&mine.nonce, sizeof mine.nonce) != 0)
      return error(IBCOLL_ERR_SYSTEM, "getentropy: {}", std::strerror(errno));
    const std::span<const Setting> settings = Config::settings();
    if (settings.size() > kMostSettings)
      return error(IBCOLL_ERR_INTERNAL, "{} settings, but ranks compare {} only", settings.size(), kMostSettings);
    for (size_t i = 0; i < settings.size(); ++i)
      if (settings[i].ranks == Setting::Ranks::kAgree)
        mine.settings[i] = digest_of(normal_form(settings[i], config_.text(settings[i].name)));
    Result<std::vector<Hello>> all = gather(bootstrap_, mine);
    if (!all.ok()) return lost(all.status());
    job_.id = all->front().nonce;
    segment_id_ = all->back().nonce;
    number(*all, mine.node);
    for (size_t i = 0; i < all->size(); ++i)
      if (Status status = compare(all->front(), (*all)[i], i); !status.ok()) return status;
    return {};
  }

  static Status compare(const Hello& first, const Hello& other, size_t rank) {
    if (first.version != other.version)
      return error(IBCOLL_ERR_BOOTSTRAP,
                   "rank 0 has version {} of ibcoll, rank {} has {}; install one version on all hosts",
                   version_text(first.version), rank, version_text(other.version));
    const std::span<const Setting> settings = Config::settings();
    for (size_t i = 0; i < settings.size(); ++i)
      if (first.settings[i] != other.settings[i])
        return error(IBCOLL_ERR_CONFIG,
                     "{} differs between rank 0 and rank {}; it must be the same on all ranks (see "
                     "ibcoll_info -c on both, and ibcoll_run -x)",
                     settings[i].name, rank);
    return {};
  }

  void number(const std::vector<Hello>& all, uint64_t own_node) {
    std::vector<std::string> identities;
    identities.reserve(all.size());
    for (const Hello& hello : all) identities.push_back(std::to_string(hello.node));
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

  // Other users see the names of sockets, and shall not learn the number of the job.
  std::string segment_name() const {
    return fmt::format("ibcoll-{:016x}-{}", segment_id_, job_.nodes[static_cast<size_t>(rank())]);
  }

  // What ranks of this job say to each other to get the segment, unlike the name unseen by others.
  uint64_t segment_key() const { return digest_of(fmt::format("segment of {:016x}", job_.id)); }

  // The leader of each node makes the segment; who has an RDMA device opens it, where several nodes need a network.
  Status open_node() {
    if (locals_.size() > 1 && locals_.front() == rank()) {
      Result<std::unique_ptr<Segment>> made = Segment::create(static_cast<int>(locals_.size()), ring_bytes());
      if (!made.ok()) return made.status();
      segment_ = std::move(*made);
      if (Status status = segment_->offer(segment_name()); !status.ok()) return status;
    }
    const std::string& wanted = config_.text("IBCOLL_NET");
    if (job_.node_count == 1 || (wanted != "auto" && wanted != "verbs")) return {};
    Result<std::unique_ptr<NetworkTransport>> opened = open_module("libibcoll_verbs.so", "ibcoll_verbs_open");
    if (opened.ok()) {
      verbs_ = std::move(*opened);
      verbs_expected_ = true;
      return {};
    }
    verbs_reason_ = opened.status().text();
    verbs_expected_ = opened.status().code() != IBCOLL_ERR_UNSUPPORTED;  // else there is no device
    if (wanted == "auto") return {};
    return error(opened.status().code(), "IBCOLL_NET=verbs: {}", verbs_reason_);
  }

  uint64_t ring_bytes() const { return std::bit_ceil(config_.bytes("IBCOLL_SHM_RING_BYTES")); }

  Result<std::unique_ptr<NetworkTransport>> open_module(const char* file, const char* symbol) {
    const Result<void*> open = module_function(file, symbol);
    if (!open.ok()) return open.status();
    Status status;
    std::unique_ptr<NetworkTransport> opened(reinterpret_cast<OpenNetwork>(open.value())(
        {rank(), bootstrap_.size(), &config_, bootstrap_.local_job(), job_.id, static_cast<int>(locals_.size()) - 1},
        &status));
    if (!opened) return status;
    return opened;
  }

  // Verbs when every rank has it, else UCX: the network transports say where they can be reached.
  Status open_network() {
    const std::string& wanted = config_.text("IBCOLL_NET");
    if (job_.node_count == 1) {
      job_.net_reason = "not used: all ranks are on one node";
      return {};
    }
    if (wanted == "shm")
      return error(IBCOLL_ERR_CONFIG, "IBCOLL_NET=shm, but the job has {} nodes; use IBCOLL_NET=ucx", job_.node_count);
    if (without_verbs_.empty()) {
      job_.net_reason = wanted == "verbs" ? "demanded by IBCOLL_NET" : "every rank has an active RDMA port";
      use(std::move(verbs_));
      return {};
    }
    verbs_.reset();
    return open_ucx(wanted);
  }

  void use(std::unique_ptr<NetworkTransport> network) {
    address_ = network->address();
    network_ = network.get();
    job_.net = std::move(network);
  }

  Status open_ucx(const std::string& wanted) {
    Result<std::unique_ptr<NetworkTransport>> ucx = open_module("libibcoll_ucx.so", "ibcoll_ucx_open");
    if (!ucx.ok() && ucx.status().code() == IBCOLL_ERR_UNSUPPORTED)
      return error(IBCOLL_ERR_UNSUPPORTED,
                   "the job has {} nodes and needs UCX: {}; it has its place beside libibcoll.so, and needs libucx0",
                   job_.node_count, ucx.status().text());
    if (!ucx.ok()) return ucx.status();
    use(std::move(*ucx));
    if (wanted == "ucx")
      job_.net_reason = "demanded by IBCOLL_NET";
    else
      job_.net_reason = fmt::format("verbs is not used: {}", without_verbs_);
    // Where RDMA was to be had, a slower network is news.
    const bool news = any_expects_verbs_ && wanted == "auto" && rank() == 0;
    log(news ? LogLevel::kWarning : LogLevel::kInfo, "ucx is used between nodes: {}", job_.net_reason);
    return {};
  }

  // Segments are handed over, network addresses exchanged.
  Status connect_transports() {
    Status status = exchange_addresses();
    if (lost_) return status;
    if (locals_.size() > 1) {
      const auto deadline = std::chrono::steady_clock::now() + kJoinDeadline;
      const auto self = std::find(locals_.begin(), locals_.end(), rank()) - locals_.begin();
      if (segment_) {
        if (Status served = segment_->serve(segment_key(), deadline); !served.ok()) return served;
      } else {
        Result<std::unique_ptr<Segment>> received =
            Segment::receive(segment_name(), segment_key(), static_cast<int>(self), static_cast<int>(locals_.size()),
                             ring_bytes(), deadline);
        if (!received.ok()) return received.status();
        segment_ = std::move(*received);
      }
      job_.shm = std::make_unique<ShmTransport>(std::move(segment_), locals_, static_cast<int>(self),
                                                config_.text("IBCOLL_SINGLE_COPY") != "off");
      job_.memory = std::make_unique<ShmNodeMemory>(*job_.shm);
    }
    return status;
  }

  Status exchange_addresses() {
    if (longest_address_ == 0) return {};
    const size_t slot = sizeof(uint32_t) + longest_address_;
    std::vector<std::byte> mine(slot), all(slot * static_cast<size_t>(bootstrap_.size()));
    const auto length = static_cast<uint32_t>(address_.size());
    std::memcpy(mine.data(), &length, sizeof length);
    std::memcpy(mine.data() + sizeof length, address_.data(), address_.size());
    if (Status status = bootstrap_.allgather(mine, all); !status.ok()) return lost(std::move(status));
    std::vector<std::vector<std::byte>> addresses;
    for (int i = 0; i < bootstrap_.size(); ++i) {
      const std::byte* const from = all.data() + slot * static_cast<size_t>(i);
      uint32_t bytes = 0;
      std::memcpy(&bytes, from, sizeof bytes);
      bytes = std::min(bytes, static_cast<uint32_t>(longest_address_));
      addresses.emplace_back(from + sizeof bytes, from + sizeof bytes + bytes);
    }
    return network_->set_addresses(std::move(addresses));
  }

  Status probe_node() {
    if (Status status = fit_slots(); !status.ok()) return status;
    return job_.shm ? job_.shm->probe() : Status();
  }

  // A rank alone on its node has no rings, and meets the other ranks' eager messages all the same.
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

  Status time_node() {
    if (job_.shm) timed_ = job_.shm->time_memory();
    return {};
  }

  Bootstrap& bootstrap_;
  const Config& config_;
  Job job_;
  std::vector<int> locals_;  // job ranks of this node
  uint64_t segment_id_ = 0;  // random, and the same on all ranks
  std::unique_ptr<Segment> segment_;
  std::unique_ptr<NetworkTransport> verbs_;  // until it is settled whether all ranks have it
  std::string verbs_reason_;                 // why this rank has none
  bool verbs_expected_ = false;              // it has, or could have, as there is a device
  std::string without_verbs_;                // the first rank that has none, and why
  bool any_expects_verbs_ = false;
  NetworkTransport* network_ = nullptr;  // job_.net
  std::vector<std::byte> address_;
  size_t longest_address_ = 0;
  MemoryModel timed_;  // by this rank
  bool lost_ = false;
};

}  // namespace

Status agree(Bootstrap& bootstrap, const Status& mine) {
  struct Word {
    int32_t code = IBCOLL_OK;
    char text[508] = {};
  } word;
  word.code = mine.code();
  if (!mine.ok()) copy_text(mine.text(), word.text);
  Result<std::vector<Word>> all = gather(bootstrap, word);
  if (!mine.ok()) return mine;
  if (!all.ok()) return all.status();
  for (size_t i = 0; i < all->size(); ++i)
    if ((*all)[i].code != IBCOLL_OK) return error_of_rank(i, (*all)[i].code, text_of((*all)[i].text));
  return {};
}

Result<Job> join_job(Bootstrap& bootstrap, const Config& config) { return Joining(bootstrap, config).run(); }

}  // namespace ibcoll
