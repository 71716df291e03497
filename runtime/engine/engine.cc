// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/engine.h"

#include <algorithm>
#include <new>

#include "runtime/base/log.h"
#include "runtime/engine/abort_note.h"
#include "runtime/engine/exchange.h"
#include "runtime/engine/team.h"
#include "runtime/machine/core_hints.h"

namespace ibcoll {
namespace {

constexpr size_t kEventsAtOnce = 16;

EngineLimits usable(EngineLimits limits) {
  limits.eager_ahead = std::max<uint32_t>(2, limits.eager_ahead);  // credit is returned for half of them at a time
  limits.bytes_ahead = std::max(limits.bytes_ahead, 16 * limits.eager_bytes);
  return limits;
}

}  // namespace

Engine::Engine(int rank, std::vector<Transport*> route, EngineLimits limits)
    : rank_(rank),
      size_(static_cast<int>(route.size())),
      route_(std::move(route)),
      limits_(usable(limits)),
      scheduler_(limits_.calls_at_once),
      early_messages_(limits.eager_bytes),
      lost_(size_, true),
      scratch_pool_(std::make_unique<ScratchPool>()),
      own_events_(std::make_unique<Event[]>(kEventsAtOnce)),
      events_(own_events_.get(), kEventsAtOnce) {
  for (Transport* const t : route_)
    if (t && std::find(transports_.begin(), transports_.end(), t) == transports_.end()) transports_.push_back(t);
}

Engine::Engine(int rank, int size, Transport& transport, EngineLimits limits, std::span<Event> events)
    : rank_(rank),
      size_(size),
      route_mask_(0),
      route_{&transport},
      transports_{&transport},
      limits_(usable(limits)),
      scheduler_(limits_.calls_at_once),
      early_messages_(limits.eager_bytes),
      lost_(size, false),
      events_(events) {}

Time Engine::now() const noexcept { return transports_.empty() ? 0 : transports_.front()->now(); }

void Engine::add(Team& team) {
  // For remove(), which cannot fail.
  if (const size_t most = failed_teams_.size() + teams_.size() + 1; most > failed_teams_.capacity())
    failed_teams_.reserve(2 * most);
  teams_[team.members().epoch()] = &team;
  // Deaths are reported to the teams of their time: this one may have been agreed upon with a rank's last words.
  lost_.for_each([&](int rank) { team.on_peer_failed(rank, "its process has ended"); },
                 [&](int rank, const Status& why) {
                   if (team.members().team_rank(rank) >= 0) team.health().fail(why);
                 });
}

void Engine::remove(Team& team) {
  if (!team.failure().ok()) failed_teams_.emplace_back(team.members().epoch(), team.failure());
  teams_.erase(team.members().epoch());
  if (last_team_ == &team) last_team_ = nullptr;
}

void Engine::end_rests() noexcept {
  for (Transport* const transport : transports_) transport->end_rests();
}

// ---------------------------------------------------------------- progress

bool Engine::progress(uint32_t looks) noexcept {
  bool moved = scheduler_.retry_blocked();
  moved |= take_messages(scheduler_.waits_for_messages_only() ? looks : 1);
  ++passes_;
  if (scheduler_.waits_for_memory()) moved |= scheduler_.look_at_memory();
  if (scheduler_.serves_late_peers()) moved |= scheduler_.serve_late_peers(moved, now());
  if (credit_due_) [[unlikely]]
    return_credit();
  if (failed_) [[unlikely]]
    end_failed();
  return moved || scheduler_.copy_a_slice();
}

// If there are several.
bool Engine::poll_transports(uint32_t looks) noexcept {
  for (bool moved = false;; relax()) {
    for (Transport* const transport : transports_) moved |= take_events(*transport, 1);
    if (moved || --looks == 0) return moved;
  }
}

bool Engine::take_events(Transport& transport, uint32_t looks) noexcept {
  size_t count = 0;
  try {
    count = transport.poll_often(events_, looks);
  } catch (const std::bad_alloc&) {  // nothing is lost: the next pass finds it
  }
  for (size_t i = 0; i < count; ++i) dispatch(events_[i]);
  handled_ += count;
  return count > 0;
}

int Engine::awaited_bell() const noexcept {
  if (!scheduler_.waits_for_memory() || credit_due_ || failed_) return Exchange::kNoBell;
  size_t in_flight = 0;
  for (const auto& [epoch, team] : teams_) in_flight += static_cast<size_t>(team->calls().count());
  return scheduler_.awaited_bell(in_flight);
}

void Engine::take_from_memory() noexcept {
  while (scheduler_.look_at_memory()) {
  }
}

void Engine::return_credit() noexcept {
  credit_due_ = false;
  for (auto& [epoch, team] : teams_) credit_due_ |= !team->links().report_completed();
}

void Engine::team_failed() noexcept {
  failed_ = true;
  for (Transport* const transport : transports_) transport->expect_disorder();
}

void Engine::end_failed() noexcept {
  failed_ = false;
  for (auto& [epoch, team] : teams_) failed_ |= !team->end_requests();
}

bool Engine::idle() const noexcept {
  return std::none_of(teams_.begin(), teams_.end(), [](const auto& each) { return !each.second->calls().idle(); });
}

void Engine::check() noexcept {
  for (Transport* const transport : transports_) {
    try {
      transport->check_peers();
    } catch (const std::bad_alloc&) {  // the next check looks again
    }
  }
  const Time at = now();
  for (auto& [epoch, team] : teams_) team->check(at);
}

std::string Engine::describe() const {
  std::string text;
  for (const auto& [epoch, team] : teams_) text += team->describe();
  return text;
}

// ---------------------------------------------------------------- events

void Engine::dispatch(const Event& event) noexcept {
  switch (event.kind) {
    case Event::Kind::kSent: {
      Channel& channel = *reinterpret_cast<Channel*>(event.token);
      channel.exchange->outgoing().on_sent(channel);
      scheduler_.run_if_ready(*channel.exchange);
      return;
    }
    case Event::Kind::kPeerFailed:
      on_failure(event);
      return;
    case Event::Kind::kMessage:
      break;
  }
  if (!last_team_ || last_team_->members().epoch() != event.note.epoch) {
    const auto found = teams_.find(event.note.epoch);
    if (found == teams_.end()) {
      answer_for_freed_team(event);
      return;
    }
    last_team_ = found->second;
  }
  const int peer = last_team_->members().team_rank(event.peer);
  if (peer < 0) {
    log(LogLevel::kWarning, "a note of rank {}, which is not in the team {} that it names, was dropped", event.peer,
        last_team_->members().number());
    return;
  }
  last_team_->on_note(peer, event.note, event.payload);
}

// The team was freed here. Unless it had failed, all its collectives have ended. A failure was sent to all other ranks.
// One that had no room for that message asks.
void Engine::answer_for_freed_team(const Event& event) noexcept {
  if (static_cast<NoteKind>(event.note.kind) != NoteKind::kProbe) return;
  Note answer = event.note;
  answer.bytes = 0;
  answer.completed = answer.op;
  answer.kind = static_cast<uint16_t>(NoteKind::kEnded);
  ConstBytes text;
  for (const auto& [epoch, failure] : failed_teams_) {
    if (epoch != event.note.epoch) continue;
    answer = abort_note(epoch, failure, 0);
    text = abort_text(failure);
    break;
  }
  try {
    (void)transport(event.peer).send(event.peer, answer, text);
  } catch (const std::bad_alloc&) {  // it asks again
  }
}

void Engine::on_failure(const Event& event) noexcept {
  const std::string_view why(reinterpret_cast<const char*>(event.payload.data()), event.payload.size());
  if (lack_of(event) == IBCOLL_OK) return peer_failed(event.peer, why);
  // The peer lives; this rank is to blame.
  const Status lack = error(lack_of(event), "rank {} cannot reach rank {}: {}", rank_, event.peer, why);
  lost_.add_out_of_reach(event.peer, lack);
  for (auto& [epoch, team] : teams_)
    if (team->members().team_rank(event.peer) >= 0) team->health().fail(lack);
}

void Engine::peer_failed(int job_rank, std::string_view why) noexcept {
  if (!lost_.add_dead(job_rank)) return;
  log(LogLevel::kInfo, "rank {} failed: {}", job_rank, why);
  take_from_memory();
  for (auto& [epoch, team] : teams_) team->on_peer_failed(job_rank, why);
}

void Engine::peer_ended(int job_rank, std::string_view how) noexcept {
  if (!lost_.dead(job_rank)) return peer_failed(job_rank, how);
  for (auto& [epoch, team] : teams_) team->explain_death(job_rank, how);
}

}  // namespace ibcoll
