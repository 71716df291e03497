// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/team_learning.h"

#include <algorithm>
#include <new>

#include "runtime/collectives/framework/arguments.h"
#include "runtime/engine/request.h"
#include "runtime/engine/team.h"

namespace ibcoll {
namespace {

std::vector<double> costs_of(const std::vector<Candidate>& candidates) {
  std::vector<double> costs;
  costs.reserve(candidates.size());
  for (const Candidate& candidate : candidates) costs.push_back(candidate.cost_us);
  return costs;
}

Args merge_args(LearnedClass& one) {
  Args args;
  args.collective = IBCOLL_ALLREDUCE;
  args.internal = true;
  args.count = one.mine.size();
  args.bytes = sizeof one.mine;
  args.reduction = Reduction(IBCOLL_MAX, IBCOLL_FLOAT);
  args.send.base = reinterpret_cast<std::byte*>(one.mine.data());
  args.recv.base = reinterpret_cast<std::byte*>(one.merged.data());
  return args;
}

}  // namespace

LearnedClass::LearnedClass(const CallClass& for_key, const std::vector<Candidate>& all)
    : key(for_key), learner(costs_of(all)) {
  candidates.reserve(all.size());
  for (const Candidate& candidate : all) candidates.push_back({candidate.choice, candidate.choice.name()});
}

LearnedClass::~LearnedClass() = default;

LearnedClass* TeamLearning::find(const CallClass& key) noexcept {
  for (LearnedClass& one : classes_)
    if (one.key == key) return &one;
  return nullptr;
}

LearnedClass& TeamLearning::add(const CallClass& key, const std::vector<Candidate>& candidates) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(candidates.size(), kMostCandidates));
  LearnedClass& one = classes_.emplace_back(key, std::vector(candidates.begin(), candidates.begin() + count));
  try {
    const Args args = merge_args(one);
    one.merge = std::make_unique<Request>(team_, args, merge_, IBCOLL_SCHEME_COPY,
                                          call_signature(args, merge_.name(), IBCOLL_SCHEME_COPY, team_.size()));
  } catch (...) {
    classes_.pop_back();
    throw;
  }
  one.merge->in_background = true;
  return one;
}

bool TeamLearning::merging() const noexcept {
  return std::any_of(classes_.begin(), classes_.end(), [](const LearnedClass& one) { return one.merge->in_flight(); });
}

bool TeamLearning::admit(Request& request) noexcept {
  LearnedClass& one = *request.learned();
  if (!one.admitted) [[unlikely]] {
    one.predicted = one.predicted || admitted_ == kMostClasses;
    if (one.predicted) return request.use_predicted(), true;
    one.admitted = true;
    ++admitted_;
  }
  if (!one.learner.ready()) [[unlikely]] {
    if (!one.merge->done()) return false;
    try {
      one.learner.decide(one.merged);
    } catch (const std::bad_alloc&) {
      team_.fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to choose an algorithm", team_.rank()));
      return false;
    }
  }
  const Learner::Call call = one.learner.next();
  if (call.merge) [[unlikely]] {
    one.mine = one.learner.times();
    (void)one.merge->start();  // where the team has failed, so does the call
  }
  request.use(call);
  return true;
}

}  // namespace ibcoll
