// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/request.h"

#include <fmt/format.h>

#include <numeric>

#include "runtime/collectives/framework/arguments.h"
#include "runtime/engine/team.h"

namespace ibcoll {

Request::Request(Team& team, const Args& args, const Choice& choice, ibcoll_scheme_t scheme, uint32_t signature)
    : team_(team),
      args_(args),
      choice_(choice),
      algorithm_name_(choice.name()),
      record_(record_of(args, choice, scheme, signature, team.size())),
      scheme_(scheme),
      exchange_(team, signature),
      short_exchange_(team.links(), team.rank()) {
  args_.parameter = choice.parameter;
  // The destructor undoes the rest, and does not run after an exception.
  find_short_way();
  team_.adopt();
  hold_operation();
}

// A request that is still in flight was given up, and its team ends, or lacked the memory to report that. The team must
// not refer to it any more.
Request::~Request() {
  if (in_flight_) team_.finish(*this);
  if (keeps_buffers_) team_.engine().end_rests();
  team_.disown();
  unbind();
}

void Request::hold_operation() noexcept {
  if (holds_operation()) args_.reduction.op->requests.fetch_add(1, std::memory_order_relaxed);
}

void Request::unbind() noexcept {
  if (!holds_operation()) return;
  args_.reduction.op->requests.fetch_sub(1, std::memory_order_release);
  args_.reduction.op = nullptr;
}

void Request::bind(const Args& args) {
  const uint64_t parameter = args_.parameter;
  const bool fixed_order = args_.fixed_order;
  unbind();
  args_ = args;
  args_.parameter = parameter;
  args_.fixed_order = fixed_order;
  hold_operation();
  if (args_.recv.counts || args_.send.counts)
    hold_counts();
  else
    find_short_way();
}

void Request::find_short_way() {
  if (args_.moves_nothing(team_.size())) {
    one_step_ = {.kind = OneStep::Kind::kNothing};
    return;
  }
  const Algorithm& algorithm = *choice_.algorithm;
  const bool one_node = team_.window() && team_.window()->size() == team_.size();
  one_step_ = one_node && algorithm.one_step ? algorithm.one_step(args_, *team_.window()) : OneStep();
  // Where short messages are announced, too; or it is not known yet where blocks begin.
  if (scheme_ == IBCOLL_SCHEME_ZERO_COPY || (args_.send.counts && !args_.send.displacements)) return;
  short_exchange_.use(
      find_one_exchange(algorithm.as_exchange, args_, team_.rank(), team_.size(), team_.engine().limits().eager_bytes),
      args_);
}

void Request::hold_counts() {
  const auto p = static_cast<size_t>(team_.size());
  counts_.clear();
  counts_.reserve(4 * p);  // never moved from here on
  const auto hold = [&](const uint64_t*& array) {
    if (!array) return;
    counts_.insert(counts_.end(), array, array + p);
    array = counts_.data() + counts_.size() - p;
  };
  hold(args_.send.counts);
  hold(args_.send.displacements);
  hold(args_.recv.counts);
  hold(args_.recv.displacements);
  if (args_.send.counts && !args_.send.displacements) {  // reduce_scatter: one block after the other
    const auto end = static_cast<std::ptrdiff_t>(counts_.size());
    counts_.resize(counts_.size() + p);
    std::exclusive_scan(args_.send.counts, args_.send.counts + p, counts_.begin() + end, uint64_t{0});
    args_.send.displacements = counts_.data() + end;
  }
  find_short_way();
}

void Request::enter_flight() noexcept {
  in_flight_ = true;
  done_.store(false, std::memory_order_relaxed);
  status_ = Status();
  seen_at = 0;
}

Status Request::start() noexcept {
  if (team_.refuses()) return team_.refusal();
  if (in_flight_) return busy();
  if (may_start_short() && start_short()) return Status();
  enter_flight();
  trace_.begin();
  if (team_.start(*this)) return Status();
  in_flight_ = false;
  return team_.refusal();
}

// False: nothing has happened.
bool Request::start_short() noexcept {
  const Team::Short how = team_.run_short(*this, 0);
  if (how != Team::Short::kDone) return how == Team::Short::kHandedOver;
  status_ = Status();
  done_.store(true, std::memory_order_release);
  return true;
}

Status Request::busy() const {
  return error(IBCOLL_ERR_BUSY, "rank {}: {} is in flight already; wait for it before it is started again",
               team_.rank(), call());
}

Status Request::overdue() const {
  constexpr Time kDrainTimeout = 10'000'000'000;  // the transports end in 2 seconds what can be ended
  if (!in_flight_ || !team_.refuses() || team_.engine().now() - team_.health().failure().since() <= kDrainTimeout)
    return {};
  return error(
      IBCOLL_ERR_BUFFERS_HELD,
      "rank {}: {} has failed ({}), but its buffers are not free yet: {}; it is still in flight. Let that process "
      "go on or end it, then wait again",
      team_.rank(), call(), team_.health().status().text(), buffers_held_by());
}

std::string Request::buffers_held_by() const {
  const std::string writers = exchange_.incoming().writers();
  if (writers.empty())
    return fmt::format("{} messages of it are still being sent", exchange_.outgoing().puts_pending());
  return fmt::format("rank {} is in the middle of a write to them, and does not go on", writers);
}

bool Request::begin(uint32_t op) noexcept {
  has_had_task_ = true;
  exchange_.reset(op, scheme_, choice_.algorithm->uses_window);
  const bool from_copy = args_.in_place && replaces_input();
  task_ = one_step_ && !one_step_.rest ? run_one_step(exchange_.comm(), args_, one_step_)
                                       : choice_.algorithm->run(exchange_.comm(), from_copy ? with_own_copy() : args_);
  return enter_task();
}

bool Request::begin_published(uint32_t op) noexcept {
  enter_flight();
  exchange_.reset(op, scheme_, choice_.algorithm->uses_window);
  task_ =
      one_step_.rest ? one_step_.rest(exchange_.comm(), args_) : run_one_step(exchange_.comm(), args_, one_step_, true);
  return enter_task();
}

bool Request::begin_exchanged(uint32_t op) noexcept {
  enter_flight();
  return begin(op) && short_exchange_.hand_over(exchange_.state(), exchange_.incoming());
}

bool Request::enter_task() noexcept {
  if (!task_) return false;
  exchange_.stack().enter(task_);
  return true;
}

bool Request::replaces_input() const noexcept {
  const Collective& row = kCatalog[args_.collective];
  return !row.rooted && !row.reduces() && row.send.extent == Extent::kBlocks;
}

// alltoall(v) in place: what this rank sends is what the result replaces, so it sends from a copy.
Args Request::with_own_copy() noexcept {
  Args args = args_;
  args.in_place = false;
  // One after the other, however far apart they are.
  uint64_t total = 0;
  for (int i = 0; i < team_.size(); ++i) total += args.recv.size(i);
  std::byte* const copy = exchange_.comm().scratch(total);
  auto* const displacements =
      reinterpret_cast<uint64_t*>(exchange_.comm().scratch(static_cast<uint64_t>(team_.size()) * sizeof(uint64_t)));
  if (!copy || !displacements) return args;  // the team has failed
  uint64_t at = 0;
  for (int i = 0; i < team_.size(); ++i) {
    displacements[i] = at;
    Comm::copy(Bytes(copy + at, args.recv.size(i)), args.recv[i]);
    at += args.recv.size(i);
  }
  args.send = {copy, args.recv.bytes, args.recv.counts, args.recv.counts ? displacements : nullptr};
  return args;
}

void Request::end(Status status) noexcept {
  if (waits_for_memory || waits_for_arrival) team_.engine().scheduler().forget(*this);
  exchange_.close();
  task_ = Task();
  status_ = std::move(status);
  trace_.end();
  exchange_.release();
  in_flight_ = false;
  if (status_.ok()) done_.store(true, std::memory_order_release);
}

std::string Request::call() const noexcept { return call_text(record_); }

}  // namespace ibcoll
