// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ibcoll {
namespace {

constexpr Time kTick = 10'000'000;       // between two checks of deadlines and peers by ranks that only wait
constexpr uint64_t kCheckOnceIn = 64;    // passes, on average
constexpr uint64_t kWatchOnceIn = 4096;  // passes
constexpr size_t kEvents = 16;           // that a rank takes at once

}  // namespace

SimJob::SimJob(SimJobParams params)
    : params_(std::move(params)),
      events_(kEvents),
      network_(params_.network),
      nodes_(network_, params_.reads, params_.node_bytes),
      random_(sim::Random(params_.network.seed).split(1)),
      ranks_(static_cast<size_t>(network_.size())) {
  for (int rank = 0; rank < size(); ++rank) {
    ranks_[static_cast<size_t>(rank)].engine =
        std::make_unique<Engine>(rank, size(), network_.transport(rank), params_.limits, events_);
    const size_t node = static_cast<size_t>(network_.node(rank));
    if (node >= node_ranks_.size()) node_ranks_.resize(node + 1);
    node_ranks_[node].push_back(rank);
  }
  touched_.resize(node_ranks_.size());
  if (!params_.network.random) machine_ = std::make_unique<sim::Machine>(network_);
}

SimJob::~SimJob() = default;

void SimJob::add_step(int job_rank, SimStep step) {
  ranks_[static_cast<size_t>(job_rank)].steps.push_back(std::move(step));
  first_unfinished_ = std::min(first_unfinished_, job_rank);
  arm(job_rank);
}

// Decides when the next step starts, once what it has to wait for has happened.
void SimJob::arm(int number) {
  Rank& rank = ranks_[static_cast<size_t>(number)];
  if (rank.armed || rank.next == rank.steps.size()) return;
  const SimStep& step = rank.steps[rank.next];
  if (step.after_all && !rank.flying.empty()) return;
  rank.armed = true;
  rank.due = network_.now() + step.delay_ns;
  network_.wake_at(number, rank.due);
}

bool SimJob::start_due(int number) {
  Rank& rank = ranks_[static_cast<size_t>(number)];
  bool started = false;
  while (rank.armed && rank.due <= network_.now()) {
    SimStep step = std::move(rank.steps[rank.next++]);
    if (rank.next == rank.steps.size()) rank.steps.clear(), rank.next = 0;
    rank.armed = false;
    if (step.before_start) step.before_start();
    const Status status = step.request->start();
    started = true;
    if (status.ok()) {
      rank.flying.push_back(std::move(step));
    } else if (step.completed) {
      step.completed(status);
    }
    arm(number);
  }
  return started;
}

bool SimJob::collect_completed(int number) {
  Rank& rank = ranks_[static_cast<size_t>(number)];
  bool any = false;
  for (size_t i = 0; i < rank.flying.size();) {
    if (rank.flying[i].request->in_flight()) {
      ++i;
      continue;
    }
    const SimStep step = std::move(rank.flying[i]);
    rank.flying.erase(rank.flying.begin() + static_cast<long>(i));
    any = true;
    failed_ = failed_ || !step.request->status().ok();
    if (step.completed) step.completed(step.request->status());
  }
  if (any) arm(number);
  return any;
}

// ---------------------------------------------------------------- the loop

Status SimJob::run() {
  Status status = loop();
  for (const Rank& rank : ranks_)
    if (status.ok() && !failed_ && rank.engine->scheduler().questions_that_helped() > 0)
      status = error(IBCOLL_ERR_SYSTEM, "rank {} held a message back until a stalled rank asked: a fault of ibcoll",
                     rank.engine->rank());
  bury_dead();
  return status;
}

Status SimJob::loop() {
  while (!all_finished()) {
    if (passes_ >= params_.most_passes || network_.now() >= params_.deadline_ns) return stuck();
    if (params_.watch && passes_ % kWatchOnceIn == 0)
      if (Status status = params_.watch(*this); !status.ok()) return status;
    const bool late = params_.network.random && random_.one_in(params_.lazy) && !network_.idle();
    if (network_.has_runnable() && !late) {
      pass(network_.take_runnable());
    } else if ((late || !wake_neighbours()) && !network_.advance() && !wake_neighbours()) {
      if (!params_.network.random) return stuck();  // without chance, time alone changes nothing
      tick();
    }
  }
  return Status();
}

Status SimJob::stuck() {
  return error(IBCOLL_ERR_TIMEOUT, "after {} ns and {} passes these wait:\n{}", network_.now(), passes_, describe());
}

// The requests that a dead rank had in flight end, as they would with its process.
void SimJob::bury_dead() {
  for (int number = 0; number < size(); ++number) {
    Rank& rank = ranks_[static_cast<size_t>(number)];
    if (network_.alive(number)) continue;
    for (const SimStep& step : rank.flying) step.request->end(error(IBCOLL_ERR_PEER_FAILED, "it is dead"));
    rank.flying.clear();
  }
}

void SimJob::pass(int number) {
  if (network_.busy_until(number) > network_.now()) return schedule_pass(number);
  ++passes_;
  if (machine_) machine_->run_as(number);
  if (network_.observer() && engine(number).scheduler().waits_for_memory()) network_.observer()->looks(number);
  Rank& rank = ranks_[static_cast<size_t>(number)];
  bool moved = start_due(number);
  moved |= rank.engine->progress();
  if (params_.network.random && random_.one_in(kCheckOnceIn)) rank.engine->check();
  moved |= collect_completed(number);
  if (const Time look = rank.engine->scheduler().spills_at(); look > network_.now()) network_.wake_at(number, look);
  if (!moved) return;
  if (machine_) return schedule_pass(number);  // the flags that it has set are seen later
  network_.wake(number);
  touch(network_.node(number));
}

// Its next pass, after the work of this one.
void SimJob::schedule_pass(int number) {
  Rank& rank = ranks_[static_cast<size_t>(number)];
  const Time at = network_.busy_until(number);
  if (at <= network_.now()) return network_.wake(number);
  if (rank.resumes == at) return;
  rank.resumes = at;
  network_.wake_at(number, at);
}

void SimJob::touch(int node) {
  if (touched_[static_cast<size_t>(node)]) return;
  touched_[static_cast<size_t>(node)] = true;
  touched_nodes_.push_back(node);
}

// Ranks that wait for a flag in their node's memory poll it again after a pass of another rank of the node.
bool SimJob::wake_neighbours() {
  for (const int rank : network_.ranks_with_new_flags()) touch(network_.node(rank));
  network_.ranks_with_new_flags().clear();
  bool any = false;
  for (const int node : std::exchange(touched_nodes_, {})) {
    touched_[static_cast<size_t>(node)] = false;
    for (const int number : node_ranks_[static_cast<size_t>(node)]) {
      if (!engine(number).scheduler().waits_for_memory() || !network_.alive(number)) continue;
      network_.wake(number);
      any = true;
    }
  }
  return any;
}

// Nothing is in flight: time advances, and ranks check their deadlines and peers.
void SimJob::tick() {
  network_.advance_to(network_.now() + kTick);
  for (int number = 0; number < size(); ++number) {
    if (!network_.alive(number)) continue;
    engine(number).check();
    network_.wake(number);
  }
}

void SimJob::drain() {
  constexpr int kQuietTicks = 25;  // 250 ms: longer than a rank is only suspected of a failure
  for (int quiet = 0; quiet < kQuietTicks;) {
    if (network_.has_runnable()) {
      pass(network_.take_runnable());
    } else if (!network_.advance() && !wake_neighbours()) {
      ++quiet;
      tick();
    }
  }
}

bool SimJob::all_finished() {
  while (first_unfinished_ < size() &&
         (!network_.alive(first_unfinished_) || ranks_[static_cast<size_t>(first_unfinished_)].finished()))
    ++first_unfinished_;
  return first_unfinished_ == size();
}

std::string SimJob::describe() {
  std::string text;
  for (int number = 0; number < size(); ++number) {
    if (!network_.alive(number) || ranks_[static_cast<size_t>(number)].finished()) continue;
    const std::string waits = engine(number).describe();
    text += waits.empty() ? fmt::format("rank {} has not started its next step\n", number) : waits;
  }
  return text;
}

}  // namespace ibcoll
