// SPDX-License-Identifier: BSD-3-Clause
// The plans that a team keeps of calls that run once: for the shapes used last, a request with its algorithm, digest
// and memory, which the next call of that shape takes and gives its own buffers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "runtime/base/hash.h"
#include "runtime/collectives/framework/args.h"
#include "runtime/collectives/framework/repeated_call.h"
#include "runtime/engine/request.h"

namespace ibcoll {

struct TeamHandle;

// The handle that the program holds: a persistent request, or one that runs once.
struct RequestHandle {
  TeamHandle* team = nullptr;
  std::unique_ptr<Request> request;
  bool once = false;  // then it is a Plan
};

// The arguments that must be equal for a call to run by a plan, but for the blocks of an irregular collective whose
// sizes all ranks know: these are compared.
struct PlanKey {
  uint64_t call = 0;     // collective, scheme, root
  uint64_t element = 0;  // of a reduction: type, operation
  uint64_t element_bytes = 0;
  uint64_t bytes = 0;  // of a block; 0 where not all ranks know it
  uint64_t sizes = 0;  // digest of the p sizes that all ranks know

  PlanKey(const Args& args, ibcoll_scheme_t scheme, int p) noexcept;
  bool operator==(const PlanKey&) const = default;
  uint64_t digest() const noexcept;
};

struct Plan : RequestHandle {
  explicit Plan(const PlanKey& for_key) noexcept : key(for_key), digest(for_key.digest()) { once = true; }

  enum class Use {
    kIdle,
    kBlocking,     // a thread is inside of a blocking call
    kNonblocking,  // the program has the request
    kGivenUp       // the blocking call has returned, but a peer may still write to the buffers (Request::overdue)
  };
  const PlanKey key;
  const uint64_t digest;
  Use use = Use::kIdle;
  bool kept = true;               // false: the call demands an algorithm of its own, so no other call takes it
  RepeatedCall last_call;         // that it was made for, or bound to
  Plan** last_call_at = nullptr;  // where calls that repeat it find this plan
  size_t idle_bytes = 0;          // of memory, while idle
  Plan* next = nullptr;           // of the same bucket
  Plan* more_recent = nullptr;    // of those that were given back once, by their last use
  Plan* less_recent = nullptr;
};

class Plans {
 public:
  Plans() noexcept {
    buckets_.fill(nullptr);
    by_call_.fill(nullptr);
  }
  Plans(const Plans&) = delete;
  Plans& operator=(const Plans&) = delete;
  ~Plans() { clear(); }

  // An idle plan whose last call this one repeats: bound to the call's buffers from now on. nullptr: none.
  Plan* find_repeated(const ibcoll_collective_args_t& call) noexcept {
    Plan* const plan = place_of(call);
    if (!plan || plan->use != Plan::Use::kIdle) return nullptr;
    Request& request = *plan->request;
    if (!plan->last_call.allows(call, request.args(), request.team().size())) return nullptr;
    request.move_to(static_cast<const std::byte*>(call.send), static_cast<std::byte*>(call.recv));
    return plan;
  }
  // An idle plan is in use from now on.
  void use(Plan& plan, Plan::Use use) noexcept { set_use(plan, use); }
  // A call by an idle plan has ended at once.
  void touch(Plan& plan) noexcept {
    if (most_recent_ != &plan) make_most_recent(plan);
  }
  // The call is what the plan was made for, or bound to. Its blocks reach so far.
  void remember(Plan& plan, const ibcoll_collective_args_t& call, const Reaches& reaches) noexcept;
  // An idle plan of this shape, which is in use from now on. nullptr: none is idle; `like` is then one in use, if there
  // is any.
  Plan* take(const PlanKey& key, const Args& args, Plan::Use use, const Plan*& like) noexcept;
  // A new plan, in use.
  Plan* add(std::unique_ptr<Plan> plan, Plan::Use use) noexcept;
  // Its blocking call returns, but it is in flight still.
  void give_up(Plan& plan) noexcept { set_use(plan, Plan::Use::kGivenUp); }
  // Its call is complete, and nothing uses it any more.
  void give_back(Plan& plan) noexcept;
  // Makes plans that were given up, and have ended since, idle.
  void reclaim() noexcept;
  void clear() noexcept;

  int count(Plan::Use use) const noexcept { return counts_[static_cast<size_t>(use)]; }
  int size() const noexcept { return counts_[0] + counts_[1] + counts_[2] + counts_[3]; }

 private:
  static constexpr int kLogBuckets = 6;
  static constexpr size_t kBuckets = 1 << kLogBuckets;
  Plan*& bucket(uint64_t digest) noexcept { return buckets_[digest % kBuckets]; }
  Plan*& place_of(const ibcoll_collective_args_t& call) noexcept {
    const uint64_t size = call.bytes ^ call.count;
    const auto other = static_cast<uint64_t>(call.collective) | static_cast<uint64_t>(call.root) << 8;
    return by_call_[(size ^ other << 32) * kGoldenRatio >> (64 - kLogBuckets)];
  }
  static void forget_place(const Plan& plan) noexcept;
  void set_use(Plan& plan, Plan::Use use) noexcept;
  void make_most_recent(Plan& plan) noexcept;
  void unlink(Plan& plan) noexcept;
  void remove(Plan& plan) noexcept;
  void remove_least_recent() noexcept;

  std::array<Plan*, kBuckets> buckets_;
  std::array<Plan*, kBuckets> by_call_;  // by what a call gives, unchecked; of several plans that fit, the last one
  std::array<int, 4> counts_{};          // by Use
  Plan* most_recent_ = nullptr;
  Plan* least_recent_ = nullptr;
  size_t idle_bytes_ = 0;
};

}  // namespace ibcoll
