// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/progress.h"

#include "runtime/context/signal_report.h"

namespace ibcoll {

void Progress::open(std::unique_ptr<Engine> engine, Bootstrap& bootstrap, Transport* network) {
  engine_ = std::move(engine);
  ended_ranks_ = std::make_unique<EndedRanks>(bootstrap, *engine_);
  network_ = network;
}

void Progress::close() noexcept {
  world_ = nullptr;
  engine_.reset();
  network_ = nullptr;
}

void Progress::after_a_pass() noexcept {
  constexpr uint32_t kPassesPerClock = 64;     // passes for one look at the clock
  constexpr Time kBetweenChecks = 10'000'000;  // whatever else moves
  if (report_asked()) [[unlikely]]
    report_if_asked(*this);
  const bool suspects = world_ && !world_->failure().ok() && !world_->refuses();
  if (suspects) [[unlikely]]
    ended_ranks_->poll();  // all ranks are about to be notified of the failure: the launcher may know its cause
  if (++passes_ % kPassesPerClock != 0) return;
  const Time now = engine_->now();
  if (now - checked_at_ < kBetweenChecks) return;
  checked_at_ = now;
  check();
}

void Progress::check() noexcept {
  ended_ranks_->poll();
  engine_->check();
}

void Progress::apply_verdict(const std::vector<bool>& dead) noexcept {
  ended_ranks_->apply(dead);
  for (size_t rank = 0; rank < dead.size(); ++rank)
    if (dead[rank] && !engine_->lost().dead(static_cast<int>(rank)))
      engine_->peer_ended(static_cast<int>(rank), "ibcoll_run says that it has ended");
}

void Progress::spread_failure(Team& team) noexcept {
  constexpr int kMostPasses = 2 * TeamFailure::kMostTries;
  for (int passes = 0;
       passes < kMostPasses && team.refuses() && team.health().failure().state() != TeamFailure::State::kNotified;
       ++passes)
    engine_->progress();
  drain_later();
}

Status Progress::fail_for_memory(Team& team) noexcept {
  team.health().fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: memory for a collective was refused", engine_->rank()));
  spread_failure(team);
  return team.refusal();
}

}  // namespace ibcoll
