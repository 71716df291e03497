// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/plans.h"

#include <algorithm>

#include "runtime/engine/team.h"

namespace ibcoll {
namespace {

// Idle ones of a team. Scratch memory is the program's: a call that needs more takes longer than its set-up.
constexpr int kMostIdle = 64;
constexpr size_t kMostIdleBytes = 1 << 20;

}  // namespace

PlanKey::PlanKey(const Args& args, ibcoll_scheme_t scheme, int p) noexcept
    : call(static_cast<uint64_t>(args.root) << 32 | static_cast<uint64_t>(scheme) << 16 |
           static_cast<uint64_t>(args.collective)) {
  if (const ibcoll_op_t op = args.reduction.op) {
    element = static_cast<uint64_t>(args.reduction.type) << 32 | static_cast<uint64_t>(op->commutative) << 16 |
              static_cast<uint64_t>(op->index + 1);
    element_bytes = args.reduction.element_bytes();
  }
  if (!kCatalog[args.collective].irregular()) bytes = args.bytes;
  if (const uint64_t* const known = args.known_sizes())
    for (int i = 0; i < p; ++i) sizes = (sizes ^ known[i]) * kGoldenRatio + 1;
}

uint64_t PlanKey::digest() const noexcept {
  uint64_t digest = call * kGoldenRatio ^ bytes;
  digest = digest * kGoldenRatio ^ element;
  digest = digest * kGoldenRatio ^ sizes ^ element_bytes;
  return scramble(digest);
}

void Plans::forget_place(const Plan& plan) noexcept {
  if (plan.last_call_at && *plan.last_call_at == &plan) *plan.last_call_at = nullptr;
}

void Plans::remember(Plan& plan, const ibcoll_collective_args_t& call, const Reaches& reaches) noexcept {
  plan.last_call.remember(call, plan.request->args(), reaches);
  forget_place(plan);
  plan.last_call_at = &place_of(call);
  *plan.last_call_at = &plan;
}

Plan* Plans::take(const PlanKey& key, const Args& args, Plan::Use use, const Plan*& like) noexcept {
  const uint64_t digest = key.digest();
  const uint64_t* const sizes = args.known_sizes();
  for (Plan* plan = bucket(digest); plan; plan = plan->next) {
    if (plan->digest != digest || !plan->kept || plan->key != key) continue;
    Request& request = *plan->request;
    if (sizes && !std::equal(sizes, sizes + request.team().size(), request.args().known_sizes())) continue;
    like = plan;
    if (plan->use != Plan::Use::kIdle) continue;
    set_use(*plan, use);
    return plan;
  }
  return nullptr;
}

Plan* Plans::add(std::unique_ptr<Plan> plan, Plan::Use use) noexcept {
  Plan*& first = bucket(plan->digest);
  plan->next = first;
  plan->use = use;
  ++counts_[static_cast<size_t>(use)];
  first = plan.release();
  return first;
}

void Plans::give_back(Plan& plan) noexcept {
  plan.request->unbind();
  plan.idle_bytes = plan.request->exchange().arena().bytes();
  if (!plan.kept || plan.idle_bytes > kMostIdleBytes) return remove(plan);
  set_use(plan, Plan::Use::kIdle);
  make_most_recent(plan);
  while (count(Plan::Use::kIdle) > kMostIdle || idle_bytes_ > kMostIdleBytes) remove_least_recent();
}

void Plans::reclaim() noexcept {
  for (Plan* first : buckets_)
    for (Plan *plan = first, *next = nullptr; plan; plan = next) {
      next = plan->next;
      if (plan->use == Plan::Use::kGivenUp && !plan->request->in_flight()) give_back(*plan);
    }
}

void Plans::clear() noexcept {
  for (Plan*& first : buckets_)
    while (first) remove(*first);
}

void Plans::set_use(Plan& plan, Plan::Use use) noexcept {
  if (plan.use == Plan::Use::kIdle) idle_bytes_ -= plan.idle_bytes;
  if (use == Plan::Use::kIdle) idle_bytes_ += plan.idle_bytes;
  --counts_[static_cast<size_t>(plan.use)];
  plan.use = use;
  ++counts_[static_cast<size_t>(use)];
}

// The plan becomes the most recent of those that were given back once. Most calls repeat the last one.
void Plans::make_most_recent(Plan& plan) noexcept {
  if (most_recent_ == &plan) return;
  unlink(plan);
  plan.less_recent = most_recent_;
  (most_recent_ ? most_recent_->more_recent : least_recent_) = &plan;
  most_recent_ = &plan;
}

void Plans::unlink(Plan& plan) noexcept {
  if (most_recent_ == &plan) most_recent_ = plan.less_recent;
  if (least_recent_ == &plan) least_recent_ = plan.more_recent;
  if (plan.more_recent) plan.more_recent->less_recent = plan.less_recent;
  if (plan.less_recent) plan.less_recent->more_recent = plan.more_recent;
  plan.more_recent = plan.less_recent = nullptr;
}

void Plans::remove_least_recent() noexcept {
  Plan* plan = least_recent_;
  while (plan->use != Plan::Use::kIdle) plan = plan->more_recent;
  remove(*plan);
}

void Plans::remove(Plan& plan) noexcept {
  set_use(plan, Plan::Use::kNonblocking);
  --counts_[static_cast<size_t>(plan.use)];
  unlink(plan);
  forget_place(plan);
  Plan** at = &bucket(plan.digest);
  while (*at != &plan) at = &(*at)->next;
  *at = plan.next;
  delete &plan;
}

}  // namespace ibcoll
