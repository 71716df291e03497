// SPDX-License-Identifier: BSD-3-Clause
// The tuning file in a job. Rank 0 alone reads and writes it, and sends its text to all ranks, so that all choose alike.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/context/context.h"

namespace ibcoll {
namespace {

// "ring_pipelined" of "ring_pipelined:65536". The parameter is not kept: it depends on what each job times at start.
std::string_view without_parameter(std::string_view name) { return name.substr(0, name.find(':')); }

}  // namespace

// A problem with the file is logged in one line, and the job continues without it. A damaged or foreign file is not
// overwritten: IBCOLL_TUNING may name the wrong file.
void Context::read_tuning_file() {
  identity_ = {ibcoll_version_string(), hardware_identity(), job_.net ? job_.net->name() : "shm",
               fmt::format("{} ranks on {} nodes, {:.3g} a core", size(), job_.node_count, job_.ranks_per_core)};
  tuning_path_ = tuning_path(config_.text("IBCOLL_TUNING"), identity_);
  if (tuning_path_.empty()) return;
  Result<std::string> text = read_tuning(tuning_path_);
  if (!text.ok()) {
    log(LogLevel::kWarning, "learned choices are not used: {} (IBCOLL_TUNING=off turns this warning off)",
        text.status().text());
    tuning_path_.clear();
    return;
  }
  if (text->empty()) return;
  if (const Result<Tuning> known = Tuning::parse(text.value(), &identity_); !known.ok()) {
    log(LogLevel::kWarning, "learned choices are not used: {} {}; delete the file, or set IBCOLL_TUNING to another one",
        tuning_path_, known.status().text());
    tuning_path_.clear();
    return;
  }
  tuning_text_ = std::move(text.value());
}

Status Context::share_tuning() {
  if (tuning_bytes_ == 0) return {};
  std::vector<std::byte> buffer;
  const Status room = or_fail(*world_, [&]() -> Status {
    buffer.resize(tuning_bytes_);
    return {};
  });
  if (!room.ok()) return room;
  if (rank() == 0)
    std::transform(tuning_text_.begin(), tuning_text_.end(), buffer.begin(),
                   [](char c) { return static_cast<std::byte>(c); });
  Args args;
  args.collective = IBCOLL_BCAST;
  args.bytes = buffer.size();
  args.recv = {buffer.data(), buffer.size(), nullptr, nullptr};
  std::unique_lock<std::mutex> guard = enter();
  if (Status sent = run_own(*world_, args, buffer, guard); !sent.ok()) return sent;
  tuning_text_.assign(reinterpret_cast<const char*>(buffer.data()), buffer.size());
  return or_fail(*world_, [&]() -> Status {
    Result<Tuning> known = Tuning::parse(tuning_text_, nullptr);
    if (!known.ok()) return known.status();
    tuning_ = std::move(known.value());
    tuning_text_.clear();
    return {};
  });
}

// What the team has learned is used by later teams of its layout.
void Context::remember(const TeamHandle& team) noexcept {
  TeamLearning* const learning = team.team->learning();
  if (rank() != 0 || !learning || tuning_path_.empty()) return;
  try {
    for (const LearnedClass& one : learning->classes()) {
      const Learner& learner = one.learner;
      const bool own_operation = one.key.operation == 0;  // each program has its own
      const bool known = learner.frozen() && learner.chosen_us() < Learner::kUnknown;
      if (own_operation || !known) continue;
      const std::string& name = one.candidates[static_cast<size_t>(learner.chosen())].name;
      tuning_.put({layout_of(team.shape), one.key, std::string(without_parameter(name)), learner.learned_from(),
                   static_cast<double>(learner.chosen_us())});
      learned_more_ = true;
    }
  } catch (const std::bad_alloc&) {
    log(LogLevel::kInfo, "the choices of a team are not kept: no memory");
  }
}

void Context::write_tuning_file() noexcept {
  if (!learned_more_) return;
  learned_more_ = false;
  const Status written = or_no_memory([&] { return write_tuning(tuning_path_, tuning_.text(identity_)); });
  if (!written.ok())
    log(LogLevel::kWarning, "the choices of this job are not kept: {} (set IBCOLL_TUNING to another file, or to off)",
        written.text());
}

// A new class begins with the choice of an earlier job, if there is one.
void Context::adopt_known(const TeamHandle& team, LearnedClass& one) const {
  const Tuning::Entry* const known = tuning_.find(layout_of(team.shape), one.key);
  if (!known) return;
  for (size_t i = 0; i < one.candidates.size(); ++i) {
    if (one.candidates[i].choice.algorithm->name != known->algorithm) continue;
    one.learner.adopt(static_cast<int>(i), known->trials);
    one.was_read = true;
  }
}

// Where a choice is learned: the algorithm, and from how many calls.
void Context::explain_learned(const TeamHandle& team, const CallClass& calls, const std::vector<Candidate>& all,
                              Json& decision) const {
  TeamLearning* const learning = team.team->learning();
  if (!learning) return;
  LearnedClass* const one = learning->find(calls);
  const Tuning::Entry* const known = tuning_.find(layout_of(team.shape), calls);
  std::string chosen, reason;
  if (one && !one->learner.frozen() && one->learner.calls() > 0) {
    decision.set("reason", fmt::format("lowest predicted cost; {} of at most {} calls were made to learn the fastest",
                                       one->learner.calls(), Learner::kMostCalls));
    return;
  }
  if (one && one->learner.frozen()) {
    const LearnedClass::Named& named = one->candidates[static_cast<size_t>(one->learner.chosen())];
    chosen = named.choice.algorithm->name;
    const bool read = one->was_read && one->learner.chosen_us() == Learner::kUnknown;
    reason = fmt::format("{} {} calls", read ? "read, learned by an earlier job from" : "learned from",
                         one->learner.learned_from());
  } else if (known) {
    chosen = known->algorithm;
    reason = fmt::format("read, learned by an earlier job from {} calls", known->trials);
  }
  for (const Candidate& candidate : all) {
    if (candidate.choice.algorithm->name != chosen) continue;
    decision.set("algorithm", candidate.choice.name());
    decision.set("reason", reason);
  }
}

}  // namespace ibcoll
