// SPDX-License-Identifier: BSD-3-Clause
// The state of one process: its job, which it joins and leaves here, and the parts that serve its calls.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "runtime/base/config.h"
#include "runtime/context/agreement.h"
#include "runtime/context/answerer.h"
#include "runtime/context/calls.h"
#include "runtime/context/context_lock.h"
#include "runtime/context/host.h"
#include "runtime/context/job_tuning.h"
#include "runtime/context/join.h"
#include "runtime/context/node_windows.h"
#include "runtime/context/progress.h"
#include "runtime/context/selection.h"
#include "runtime/context/teams.h"
#include "runtime/context/waiting.h"
#include "runtime/engine/tracer.h"
#include "runtime/machine/fork_watch.h"
#include "runtime/machine/network_end.h"

namespace ibcoll {

class Context {
 public:
  // Collective: joins the job.
  static Result<std::unique_ptr<Context>> create(const ibcoll_bootstrap_t* callbacks);
  ~Context();
  // Collective: waits for all ranks and closes what is open. Nothing but destruction may follow, and passes of a host
  // until its own part of that is done. `guard` holds the lock.
  Status leave(ContextLock::Guard& guard);

  ContextLock& lock() noexcept { return lock_; }
  ContextLock::Guard enter() noexcept { return lock_.enter(); }
  Calls& calls() noexcept { return calls_; }
  Teams& teams() noexcept { return teams_; }
  Agreement& agreement() noexcept { return agreement_; }
  Progress& progress() noexcept { return progress_; }
  Waiting& waiting() noexcept { return waiting_; }
  TeamHandle& world() noexcept { return *world_; }

  bool in_host() const noexcept { return host_.present(); }
  int rank() const noexcept { return bootstrap_->rank(); }
  int size() const noexcept { return bootstrap_->size(); }
  bool traced() const noexcept { return trace_ != nullptr; }
  // The place that the program called from, for a trace; nullptr without one. The public function returns to
  // `returns_to`. To be called before the lock is taken.
  const void* call_site(const void* returns_to) const noexcept {
    return trace_ ? trace_->call_site(returns_to) : nullptr;
  }
  // The state, for ibcoll_info.
  std::string info_json();

 private:
  Context() = default;
  Status open(const ibcoll_bootstrap_t* callbacks);
  Status read_settings();
  Status make_world();
  void build_parts();
  Status connect();
  Status share_tuning();
  void let_host_decide_deadlines() noexcept;
  Status run_own_barrier(ContextLock::Guard& guard);
  Status part_with_survivors(Status together, bool seen, ContextLock::Guard& guard);
  void write_trace() noexcept;
  void close() noexcept;

  ForkWatch fork_watch_;
  ContextLock lock_;
  // Each use of the network holds the lock.
  NetworkEnd::Caller calls_network_{[](void* lock) { static_cast<ContextLock*>(lock)->close(); }, &lock_};
  Config config_;
  HostProgram host_;
  std::unique_ptr<Bootstrap> bootstrap_;
  JoinedJob job_;
  JobTuning tuning_;               // on rank 0
  uint64_t tuning_bytes_ = 0;      // of its text, on all ranks
  std::unique_ptr<Tracer> trace_;  // nullptr: not traced
  Selection selection_;
  Progress progress_;
  Waiting waiting_{lock_, progress_, host_};
  NodeWindows windows_{job_};
  Calls calls_{selection_, progress_, waiting_};
  Teams teams_{*this, job_, progress_, calls_, windows_};
  Agreement agreement_{bootstrap_, progress_};
  std::unique_ptr<Answerer> answerer_;  // nullptr: not in host mode, where deadlines end what waits for ever
  std::unique_ptr<TeamHandle> world_;
  std::vector<std::byte> parted_;  // for the exchange that ends the job
};

}  // namespace ibcoll
