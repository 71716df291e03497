// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/pmix/pmix_bootstrap.h"

#include <pmix.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "bootstrap/pmix/pending.h"

namespace ibcoll {
namespace {

Status pmix_error(int rank, const char* call, pmix_status_t reason, const char* advice) {
  return error(IBCOLL_ERR_BOOTSTRAP, "rank {}: {}: {}; {}", rank, call, PMIx_Error_string(reason), advice);
}

pmix_proc_t process(const std::string& job, pmix_rank_t rank) {
  pmix_proc_t proc;
  PMIX_LOAD_PROCID(&proc, job.c_str(), rank);
  return proc;
}

// The result of PMIx_Init. The call has no deadline of its own, and nothing ends it: a thread waits for it, which may
// outlive the wish to have it.
struct Beginning {
  std::mutex mutex;
  std::condition_variable over;
  bool done = false;
  pmix_status_t reason = PMIX_SUCCESS;
  pmix_proc_t self{};

  void run() noexcept {
    pmix_proc_t own{};
    const pmix_status_t how = PMIx_Init(&own, nullptr, 0);
    const std::lock_guard lock(mutex);
    self = own, reason = how, done = true;
    over.notify_all();
  }
  // False: it has not come about in time.
  bool wait(double seconds) {
    std::unique_lock lock(mutex);
    return over.wait_for(lock, wait_time(seconds), [this] { return done; });
  }
};

// This process and its PMIx server. Once, up to the end of the process: a rank that left between two contexts would
// break the exchanges in which others make the next one.
class Client {
 public:
  Client() : beginning_(std::make_shared<Beginning>()) {
    std::thread([beginning = beginning_] { beginning->run(); }).detach();
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  void end() const {
    if (::getpid() != process_) return;  // one that was forked off
    if (beginning_->wait(0) && beginning_->reason == PMIX_SUCCESS) PMIx_Finalize(nullptr, 0);
  }
  bool wait(double seconds) const { return beginning_->wait(seconds); }
  // After that:
  pmix_status_t reason() const { return beginning_->reason; }
  const pmix_proc_t& self() const { return beginning_->self; }

 private:
  const pid_t process_ = ::getpid();
  const std::shared_ptr<Beginning> beginning_;
};

std::atomic<const Client*> the_client{nullptr};  // never destroyed: what the process does last may be an exchange
std::mutex starting;

const Client& started_client() {
  const std::lock_guard one_at_a_time(starting);
  if (the_client == nullptr) the_client = new Client;
  return *the_client;
}

// For the keys of exchanges, over all contexts of the process: PMIx keys are written once. And its fences have no
// names, so exchanges of several threads come one after the other.
uint64_t exchanges = 0;
std::mutex exchanging;

}  // namespace

Result<std::unique_ptr<PmixBootstrap>> PmixBootstrap::create(double seconds) {
  const Client& client = started_client();
  if (!client.wait(seconds)) {
    return error(IBCOLL_ERR_TIMEOUT,
                 "PMIx_Init: the PMIx server did not answer within {} s (IBCOLL_TIMEOUT); does the launcher that set "
                 "PMIX_RANK still run, or is it stopped?",
                 seconds);
  }
  const pmix_status_t reason = client.reason();
  if (reason != PMIX_SUCCESS) {
    return error(IBCOLL_ERR_BOOTSTRAP, "PMIx_Init: {}; is the launcher that set PMIX_RANK still running?",
                 PMIx_Error_string(reason));
  }
  std::unique_ptr<PmixBootstrap> bootstrap(
      new PmixBootstrap(client.self().nspace, static_cast<int>(client.self().rank), seconds));
  const Result<uint32_t> size = bootstrap->job_number(PMIX_JOB_SIZE);
  if (!size.ok()) return size.status();
  bootstrap->size_ = static_cast<int>(size.value());
  // Not every launcher gives the number of ranks on this node; without it the job counts as one that spans machines.
  const Result<uint32_t> local = bootstrap->job_number(PMIX_LOCAL_SIZE);
  bootstrap->local_job_ = local.ok() && local.value() == size.value();
  return bootstrap;
}

Result<uint32_t> PmixBootstrap::job_number(const char* key) const {
  const pmix_proc_t whole_job = process(job_, PMIX_RANK_WILDCARD);
  // Asks only for what the server gave at the start, so this does not wait for the server.
  bool at_hand = true;
  pmix_info_t info;
  PMIX_INFO_LOAD(&info, PMIX_OPTIONAL, &at_hand, PMIX_BOOL);
  pmix_value_t* value = nullptr;
  const pmix_status_t reason = PMIx_Get(&whole_job, key, &info, 1, &value);
  if (reason != PMIX_SUCCESS) {
    return error(IBCOLL_ERR_BOOTSTRAP, "rank {}: PMIx_Get({}): {}", rank_, key, PMIx_Error_string(reason));
  }
  const uint32_t number = value->type == PMIX_UINT32 ? value->data.uint32 : 0;
  PMIX_VALUE_RELEASE(value);
  if (number == 0) return error(IBCOLL_ERR_BOOTSTRAP, "rank {}: the PMIx server gives no number as {}", rank_, key);
  return number;
}

Status PmixBootstrap::allgather(std::span<const std::byte> mine, std::span<std::byte> all) {
  if (all.size() != mine.size() * static_cast<size_t>(size_)) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "rank {}: pmix exchange: room for {} bytes, {} ranks of {} bytes", rank_,
                 all.size(), size_, mine.size());
  }
  const std::lock_guard one_at_a_time(exchanging);
  const std::string key = fmt::format("ibcoll.{}", exchanges++);
  if (Status status = publish(key, mine); !status.ok()) return status;
  if (Status status = fence(); !status.ok()) return status;
  return collect(key, mine.size(), all);
}

Status PmixBootstrap::publish(const std::string& key, std::span<const std::byte> mine) const {
  pmix_value_t value;
  value.type = PMIX_BYTE_OBJECT;
  // PMIx_Put copies; the interface only lacks a const.
  value.data.bo.bytes = reinterpret_cast<char*>(const_cast<std::byte*>(mine.data()));
  value.data.bo.size = mine.size();
  pmix_status_t reason = PMIx_Put(PMIX_GLOBAL, key.c_str(), &value);
  if (reason != PMIX_SUCCESS) return pmix_error(rank_, "PMIx_Put", reason, "the job's PMIx server refused the data");
  reason = PMIx_Commit();
  if (reason != PMIX_SUCCESS) return pmix_error(rank_, "PMIx_Commit", reason, "is the launcher still running?");
  return {};
}

Status PmixBootstrap::fence() const {
  const std::shared_ptr<Pending> pending = Pending::create(1, 0);
  if (!pending) return error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory for the PMIx fence", rank_);
  bool collect_data = true;
  pmix_info_t info;
  PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect_data, PMIX_BOOL);
  std::unique_ptr<Pending::Slot> slot = pending->slot(0);
  const pmix_status_t reason = PMIx_Fence_nb(nullptr, 0, &info, 1, Pending::fence_done, slot.get());
  if (reason == PMIX_OPERATION_SUCCEEDED) return {};  // done at once: no call back
  if (reason != PMIX_SUCCESS) return pmix_error(rank_, "PMIx_Fence", reason, "is the launcher still running?");
  static_cast<void>(slot.release());  // the call back owns it, however late it comes
  if (!pending->wait(seconds_)) {
    return error(IBCOLL_ERR_TIMEOUT,
                 "rank {}: PMIx_Fence: not all {} ranks came within {} s (IBCOLL_TIMEOUT); does every rank create its "
                 "context?",
                 rank_, size_, seconds_);
  }
  if (pending->reason() != PMIX_SUCCESS) {
    return pmix_error(rank_, "PMIx_Fence", pending->reason(), "a rank may have ended early");
  }
  return {};
}

Status PmixBootstrap::collect(const std::string& key, size_t bytes, std::span<std::byte> all) const {
  const std::shared_ptr<Pending> pending = Pending::create(static_cast<size_t>(size_), bytes);
  if (!pending) return error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory for the data of {} ranks", rank_, size_);
  for (int peer = 0; peer < size_; ++peer) {
    const pmix_proc_t proc = process(job_, static_cast<pmix_rank_t>(peer));
    std::unique_ptr<Pending::Slot> slot = pending->slot(static_cast<size_t>(peer));
    const pmix_status_t reason = PMIx_Get_nb(&proc, key.c_str(), nullptr, 0, Pending::value_arrived, slot.get());
    if (reason != PMIX_SUCCESS) {
      return error(IBCOLL_ERR_BOOTSTRAP, "rank {}: PMIx_Get of rank {}: {}", rank_, peer, PMIx_Error_string(reason));
    }
    static_cast<void>(slot.release());
  }
  const bool in_time = pending->wait(seconds_);
  if (const int peer = pending->first_failed(); peer >= 0) {
    return error(in_time ? IBCOLL_ERR_BOOTSTRAP : IBCOLL_ERR_TIMEOUT, "rank {}: PMIx_Get of rank {}: {}", rank_, peer,
                 in_time ? PMIx_Error_string(pending->reason()) : "the PMIx server did not answer in time");
  }
  std::memcpy(all.data(), pending->data().data(), all.size());
  return {};
}

}  // namespace ibcoll

extern "C" ibcoll::Bootstrap* ibcoll_pmix_bootstrap(double seconds, ibcoll::Status* status) {
  try {
    ibcoll::Result<std::unique_ptr<ibcoll::PmixBootstrap>> bootstrap = ibcoll::PmixBootstrap::create(seconds);
    if (bootstrap.ok()) return bootstrap.value().release();
    *status = bootstrap.status();
  } catch (const std::system_error& refused) {
    *status = ibcoll::error(IBCOLL_ERR_SYSTEM, "no thread for PMIx_Init: {}; raise the limit of processes (ulimit -u)",
                            refused.what());
  }
  return nullptr;
}

extern "C" void ibcoll_pmix_end() {
  if (const ibcoll::Client* const client = ibcoll::the_client) client->end();
}
