// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/engine.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/base/log.h"
#include "runtime/engine/request.h"
#include "runtime/engine/team.h"
#include "runtime/machine/simulation.h"

namespace ibcoll {
namespace {

constexpr size_t kFirstWaits = 64;    // collectives in flight before a list grows
constexpr uint32_t kSmallEarly = 64;  // payload of the small kind of early message

}  // namespace

Engine::Engine(int rank, std::vector<Transport*> route, EngineLimits limits)
    : rank_(rank), size_(static_cast<int>(route.size())), route_(std::move(route)), limits_(limits) {
  limits_.eager_ahead = std::max<uint32_t>(2, limits_.eager_ahead);  // credit is returned for half of them at a time
  limits_.bytes_ahead = std::max(limits_.bytes_ahead, 16 * limits_.eager_bytes);
  memory_waits_.reserve(kFirstWaits);
  arrival_waits_.reserve(kFirstWaits);
  blocked_.reserve(kFirstWaits);
  idle_copies_.reserve(kFirstWaits);
  dead_.resize(route_.size());
  for (Transport* const t : route_)
    if (t && std::find(transports_.begin(), transports_.end(), t) == transports_.end()) transports_.push_back(t);
}

Engine::Engine(int rank, int size, Transport& transport, EngineLimits limits)
    : Engine(rank, std::vector<Transport*>{&transport}, limits) {
  size_ = size;
  route_mask_ = 0;
  dead_.clear();
}

Engine::~Engine() {
  for (EarlyMessage* list : {free_small_, free_large_})
    while (list) ::operator delete(std::exchange(list, list->next));
}

Time Engine::now() const noexcept { return transports_.empty() ? 0 : transports_.front()->now(); }

void Engine::add(Team& team) {
  // For remove(), which cannot fail.
  if (const size_t most = failed_teams_.size() + teams_.size() + 1; most > failed_teams_.capacity())
    failed_teams_.reserve(2 * most);
  teams_[team.epoch()] = &team;
  // Deaths are reported to the teams of their time: this one may have been agreed upon with a rank's last words.
  for (size_t rank = 0; any_dead_ && rank < dead_.size(); ++rank)
    if (const int peer = dead_[rank] ? team.team_rank(static_cast<int>(rank)) : -1; peer >= 0)
      team.on_peer_failed(peer, "its process has ended");
  for (const auto& [rank, why] : lacking_)
    if (team.team_rank(rank) >= 0) team.fail(why);
}

void Engine::remove(Team& team) {
  if (!team.failure().ok()) failed_teams_.emplace_back(team.epoch(), team.failure());
  teams_.erase(team.epoch());
  if (last_team_ == &team) last_team_ = nullptr;
}

// ---------------------------------------------------------------- progress

bool Engine::progress() noexcept {
  bool moved = !blocked_.empty() && retry_blocked();
  moved |= poll_transports();
  moved |= !memory_waits_.empty() && run_memory_waits();
  if (!arrival_waits_.empty()) moved |= moved ? still_busy() : serve_late_peers();
  if (credit_due_) [[unlikely]] {
    credit_due_ = false;
    for (auto& [epoch, team] : teams_) credit_due_ |= !team->report_completed();
  }
  if (failed_) [[unlikely]]
    end_failed();
  return moved || (!idle_copies_.empty() && copy_a_slice());
}

bool Engine::copies_when_idle(Exchange& exchange) noexcept {
  if (idle_copies_.size() == idle_copies_.capacity()) return false;
  idle_copies_.push_back(&exchange);
  return true;
}

void Engine::forget_copies_of(Exchange& exchange) noexcept { std::erase(idle_copies_, &exchange); }

bool Engine::copy_a_slice() noexcept {
  Exchange& exchange = *idle_copies_.back();
  if (!exchange.team().failure().ok()) return false;
  if (exchange.copy_slice(kIdleSlice)) idle_copies_.pop_back();
  ++handled_;
  return true;
}

bool Engine::poll_transports() noexcept {
  bool moved = false;
  for (Transport* const transport : transports_) {
    size_t count = 0;
    try {
      count = transport->poll(events_);
    } catch (const std::bad_alloc&) {  // nothing is lost: the next pass finds it
    }
    for (size_t i = 0; i < count; ++i) dispatch(events_[i]);
    handled_ += count;
    moved |= count > 0;
  }
  return moved;
}

bool Engine::run_memory_waits() noexcept {
  bool moved = false;
  for (size_t i = 0; i < memory_waits_.size();) {
    Request* const request = memory_waits_[i];
    if (!request->team().failure().ok() || !request->exchange().runnable()) {
      ++i;
      continue;
    }
    memory_waits_[i] = memory_waits_.back();
    memory_waits_.pop_back();
    request->waits_for_memory = false;
    run(*request);
    ++handled_;
    moved = true;
  }
  return moved;
}

int Engine::awaited_bell() const noexcept {
  if (memory_waits_.empty() || !blocked_.empty() || credit_due_ || failed_) return Exchange::kNoBell;
  size_t in_flight = 0;
  for (const auto& [epoch, team] : teams_) in_flight += static_cast<size_t>(team->in_flight());
  if (in_flight != memory_waits_.size()) return Exchange::kNoBell;
  int awaited = Exchange::kNoBell;
  for (Request* const request : memory_waits_) {
    const int bell = request->exchange().awaited_bell();
    if (bell == Exchange::kEarlierCollective || bell == awaited) continue;
    if (bell < 0 || awaited >= 0) return Exchange::kNoBell;
    awaited = bell;
  }
  return awaited;
}

bool Engine::awaits_leaders() const noexcept {
  bool any = false;
  for (Request* const request : memory_waits_) {
    const bool part = request->exchange().awaits_part();
    if (!part && request->exchange().awaited_bell() != Exchange::kEarlierCollective) return false;
    any |= part;
  }
  return any;
}

bool Engine::still_busy() noexcept {
  idle_passes_ = 0;
  return true;
}

// Links of early ranks are idle while peers are late: messages for these may go to their landing memory meanwhile.
bool Engine::serve_late_peers() noexcept {
  if (idle_passes_++ == 0) idle_since_ = now();
  if (now() < idle_since_ + kSpillAfter) return false;
  std::vector<Request*>& waits = arrival_waits_;
  for (size_t i = 0; i < waits.size();) {
    Request& request = *waits[i];
    if (request.team().failure().ok() && request.exchange().awaits_arrival()) {
      if (request.exchange().serve_late()) {
        run(request);
        return true;  // the list may have changed
      }
      ++i;
      continue;
    }
    request.waits_for_arrival = false;
    waits[i] = waits.back();
    waits.pop_back();
  }
  return false;
}

void Engine::take_from_memory() noexcept {
  while (run_memory_waits()) {
  }
}

bool Engine::retry_blocked() noexcept {
  bool moved = false;
  for (size_t i = 0; i < blocked_.size();) {
    Channel* const channel = blocked_[i];
    const uint32_t sent = channel->sent;
    if (channel->exchange->team().failure().ok() && !channel->exchange->pump(*channel)) {
      moved |= sent != channel->sent;
      ++i;
      continue;
    }
    moved = true;
    channel->blocked = false;
    blocked_[i] = blocked_.back();
    blocked_.pop_back();
    Exchange& exchange = *channel->exchange;
    if (exchange.team().failure().ok() && exchange.runnable()) run(exchange.team().request_of(exchange));
  }
  return moved;
}

void Engine::forget(Channel& channel) noexcept {
  channel.blocked = false;
  std::erase(blocked_, &channel);
}

void Engine::forget(Request& request) noexcept {
  request.waits_for_memory = false;
  std::erase(memory_waits_, &request);
  if (std::exchange(request.waits_for_arrival, false)) std::erase(arrival_waits_, &request);
}

void Engine::run(Request& request) noexcept {
  const bool ended = request.exchange().resume();
  if (!request.team().failure().ok()) return;  // end_failed() takes over
  if (ended) {
    if (request.exchange().matched()) request.team().finish(request);
  } else if (request.exchange().polls_memory() && !request.waits_for_memory) {
    wait_in(memory_waits_, request.waits_for_memory, request);
  } else if (request.exchange().awaits_arrival() && !request.waits_for_arrival) {
    if (arrival_waits_.empty()) idle_passes_ = 0, idle_since_ = now();
    wait_in(arrival_waits_, request.waits_for_arrival, request);
  }
}

void Engine::wait_in(std::vector<Request*>& waits, bool& listed, Request& request) noexcept {
  listed = list(waits, request);
  if (!listed)
    request.team().fail(error(IBCOLL_ERR_NO_MEMORY, "rank {}: no memory to wait in {}", rank_, request.call()));
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
  return std::none_of(teams_.begin(), teams_.end(), [](const auto& each) { return each.second->in_flight() > 0; });
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

// ---------------------------------------------------------------- events

void Engine::dispatch(const Event& event) noexcept {
  switch (event.kind) {
    case Event::Kind::kSent: {
      Channel& channel = *reinterpret_cast<Channel*>(event.token);
      Exchange& exchange = *channel.exchange;
      exchange.on_sent(channel);
      if (exchange.team().failure().ok() && exchange.runnable()) run(exchange.team().request_of(exchange));
      return;
    }
    case Event::Kind::kPeerFailed:
      on_failure(event);
      return;
    case Event::Kind::kMessage:
      break;
  }
  if (!last_team_ || last_team_->epoch() != event.note.epoch) {
    const auto found = teams_.find(event.note.epoch);
    if (found == teams_.end()) {
      answer_for_freed_team(event);
      return;
    }
    last_team_ = found->second;
  }
  const int peer = last_team_->team_rank(event.peer);
  if (peer < 0) {
    log(LogLevel::kWarning, "a note of rank {}, which is not in the team {} that it names, was dropped", event.peer,
        last_team_->number());
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
    answer = Team::abort_note(epoch, failure, 0);
    text = Team::abort_text(failure);
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
  try {
    lacking_.emplace_back(event.peer, lack);
  } catch (const std::bad_alloc&) {  // teams that are made later find it themselves
  }
  for (auto& [epoch, team] : teams_)
    if (team->team_rank(event.peer) >= 0) team->fail(lack);
}

bool Engine::reaches(int job_rank) const noexcept {
  return !dead(job_rank) &&
         std::none_of(lacking_.begin(), lacking_.end(), [=](const auto& lacking) { return lacking.first == job_rank; });
}

void Engine::peer_failed(int job_rank, std::string_view why) noexcept {
  if (dead_.empty()) dead_.resize(static_cast<size_t>(size_));
  if (dead_[static_cast<size_t>(job_rank)]) return;
  any_dead_ = dead_[static_cast<size_t>(job_rank)] = true;
  log(LogLevel::kInfo, "rank {} failed: {}", job_rank, why);
  take_from_memory();
  for (auto& [epoch, team] : teams_)
    if (const int peer = team->team_rank(job_rank); peer >= 0) team->on_peer_failed(peer, why);
}

void Engine::peer_ended(int job_rank, std::string_view how) noexcept {
  if (!dead(job_rank)) return peer_failed(job_rank, how);
  for (auto& [epoch, team] : teams_)
    if (const int peer = team->team_rank(job_rank); peer >= 0) team->explain_death(peer, how);
}

EarlyMessage* Engine::early_message(int peer, const Note& note, ConstBytes payload) noexcept {
  const auto bytes = static_cast<uint32_t>(payload.size());
  const bool small = bytes <= kSmallEarly;
  EarlyMessage*& list = small ? free_small_ : free_large_;
  EarlyMessage* message = nullptr;
  if (list && list->capacity >= bytes) {
    message = std::exchange(list, list->next);
  } else {
    const auto most = static_cast<uint32_t>(std::max<uint64_t>(limits_.eager_bytes, kSmallEarly + 1));
    const uint32_t capacity = small ? kSmallEarly : std::max(bytes, most);
    message = static_cast<EarlyMessage*>(::operator new(sizeof(EarlyMessage) + capacity, std::nothrow));
    if (!message) return nullptr;
    message->capacity = capacity;
  }
  message->next = nullptr;
  message->note = note;
  message->peer = peer;
  message->bytes = bytes;
  if (bytes && !landing_is_simulated(message->payload(), payload.data()))
    std::memcpy(message->payload(), payload.data(), bytes);
  return message;
}

void Engine::recycle(EarlyMessage* message) noexcept {
  EarlyMessage*& list = message->capacity <= kSmallEarly ? free_small_ : free_large_;
  message->next = std::exchange(list, message);
}

std::string Engine::describe() const {
  std::string text;
  for (const auto& [epoch, team] : teams_) text += team->describe();
  return text;
}

}  // namespace ibcoll
