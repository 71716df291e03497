// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/ballots.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bootstrap/ballot_messages.h"
#include "tools/ibcoll_run/allgather_series.h"

namespace ibcoll::run {
namespace {

std::string name_of(Arbiter::Call call) {
  switch (call) {
    case Arbiter::Call::kAgree:
      return "ibcoll_team_agree";
    case Arbiter::Call::kShrink:
    case Arbiter::Call::kForm:
      return "ibcoll_team_shrink";
    case Arbiter::Call::kLeave:
      return "ibcoll_context_destroy";
  }
  return "an unknown call";
}

std::vector<int> list(const std::vector<bool>& ranks) {
  std::vector<int> all;
  for (size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i]) all.push_back(static_cast<int>(i));
  return all;
}

std::vector<int> list(const std::string& packed, size_t size) {
  return list(rendezvous::unpack_ranks(packed, static_cast<int>(size)));
}

}  // namespace

// ---------------------------------------------------------------- one

Ballot::Ballot(Arbiter::Call call, std::string members, const std::vector<bool>& gone)
    : call_(call),
      packed_members_(std::move(members)),
      has_(rendezvous::unpack_ranks(packed_members_, static_cast<int>(gone.size()))),
      members_(list(has_)) {
  for (const int rank : members_) absent_ += gone[static_cast<size_t>(rank)] ? 0 : 1;
}

std::string Ballot::name() const { return fmt::format("{} of ranks {}", name_of(call_), rank_list(members_)); }

std::string Ballot::take(int rank, Vote vote) {
  const bool again = votes_.contains(rank);
  if (!again && has(rank)) --absent_;
  Vote& kept = votes_[rank] = std::move(vote);
  if (again) return fmt::format("rank {} votes twice in {}", rank, name());
  if (kept.call != call_)
    return fmt::format("rank {} calls {}, and others call {}: all ranks of a team make the same calls", rank,
                       name_of(kept.call), name());
  if (kept.members != packed_members_)
    return fmt::format("rank {} calls {} for ranks {}, and others {}", rank, name_of(call_),
                       rank_list(list(kept.members, has_.size())), name());
  kept.members = {};
  return {};
}

void Ballot::leave(int rank, bool accused) {
  if (!has(rank)) return;
  if (!votes_.contains(rank)) {
    --absent_;
  } else if (accused) {
    --silenced_;
  }
}

std::vector<int> Ballot::missing(const std::vector<bool>& gone, const std::vector<bool>& accused) const {
  std::vector<int> all = members_;
  std::erase_if(all, [&](int rank) {
    const auto i = static_cast<size_t>(rank);
    return gone[i] || (votes_.contains(rank) && !accused[i]);
  });
  return all;
}

std::vector<int> Ballot::agree(const std::vector<bool>& gone, uint64_t number) {
  state_ = State::kAgreed;
  verdict_.number = number;
  verdict_.flags = ~uint64_t{0};
  verdict_.dead.resize(gone.size());
  std::vector<int> receivers;
  for (const int rank : members_) {
    const auto i = static_cast<size_t>(rank);
    verdict_.dead[i] = gone[i];
    if (gone[i]) continue;
    receivers.push_back(rank);
    const Vote& vote = votes_.at(rank);
    verdict_.flags &= vote.flags;
    verdict_.offers += vote.offer;
  }
  return receivers;
}

std::vector<int> Ballot::refuse(ibcoll_status_t code, std::string text, const std::vector<bool>& gone) {
  state_ = State::kRefused;
  verdict_.status = Status(code, std::move(text));
  std::vector<int> receivers;
  for (const auto& [rank, vote] : votes_)
    if (!gone[static_cast<size_t>(rank)]) receivers.push_back(rank);
  return receivers;
}

bool Ballot::is_over() const {
  if (state_ != State::kRefused) return state_ == State::kAgreed;
  // Its voters leave. The others leave together by a ballot of their own.
  return absent_ == 0 || call_ == Arbiter::Call::kLeave;
}

// ---------------------------------------------------------------- all

Ballots::Decisions Ballots::vote(int rank, const Arbiter::Key& key, Ballot::Vote vote) {
  Decisions decisions;
  if (gone(rank) || is_accused(rank)) return decisions;
  const auto entry = ballots_.try_emplace(key, vote.call, vote.members, gone_).first;
  Ballot& ballot = entry->second;
  if (ballot.state() != Ballot::State::kOpen) {
    (void)ballot.take(rank, std::move(vote));
    hand_out({rank}, key, ballot, decisions);
  } else if (std::string other = ballot.take(rank, std::move(vote)); !other.empty() || !ballot.has(rank)) {
    if (other.empty()) other = fmt::format("rank {} is no member of {}", rank, ballot.name());
    refuse(entry, IBCOLL_ERR_MISMATCH, std::move(other), decisions);
  } else {
    waits_in_[static_cast<size_t>(rank)] = &entry->first;
    decide_if_complete(ballot, key, decisions);
    if (ballot.state() == Ballot::State::kOpen) end_circle(rank, decisions);
  }
  if (!decisions.empty()) forget_those_that_are_over();
  return decisions;
}

Ballots::Decisions Ballots::withdraw(int rank, const Arbiter::Key& key) {
  Decisions decisions;
  const auto entry = ballots_.find(key);
  if (entry == ballots_.end() || !entry->second.votes_waiting(rank)) return decisions;
  const std::vector<int> missing = entry->second.missing(gone_, accused_);
  refuse(entry, IBCOLL_ERR_TIMEOUT,
         fmt::format("{}: rank{} {} did not call it in time (IBCOLL_TIMEOUT)", entry->second.name(),
                     missing.size() == 1 ? "" : "s", rank_list(missing)),
         decisions);
  forget_those_that_are_over();
  return decisions;
}

bool Ballots::accuse(int accuser, int accused) {
  if (accuser == accused || gone(accuser) || is_accused(accuser) || gone(accused) || is_accused(accused)) return false;
  silence(accused);
  return true;
}

void Ballots::desert(int rank) {
  if (!gone(rank) && !is_accused(rank)) silence(rank);
}

void Ballots::silence(int rank) {
  accused_[static_cast<size_t>(rank)] = true;
  waits_in_[static_cast<size_t>(rank)] = nullptr;
  for (auto& [key, ballot] : ballots_) ballot.accuse(rank);
}

bool Ballots::awaits(int rank) const {
  return !gone(rank) && std::any_of(ballots_.begin(), ballots_.end(), [&](const auto& each) {
    return each.second.state() == Ballot::State::kOpen && each.second.has(rank);
  });
}

Ballots::Decisions Ballots::leave(int rank) {
  Decisions decisions;
  if (gone(rank)) return decisions;
  gone_[static_cast<size_t>(rank)] = true;
  waits_in_[static_cast<size_t>(rank)] = nullptr;
  for (auto& [key, ballot] : ballots_) {
    ballot.leave(rank, is_accused(rank));
    if (ballot.has(rank)) decide_if_complete(ballot, key, decisions);
  }
  forget_those_that_are_over();
  return decisions;
}

void Ballots::decide_if_complete(Ballot& ballot, const Arbiter::Key& key, Decisions& decisions) {
  if (ballot.state() != Ballot::State::kOpen || !ballot.complete()) return;
  std::vector<int> receivers = ballot.agree(gone_, agreed_ + 1);
  if (receivers.empty()) return;
  ++agreed_;
  hand_out(std::move(receivers), key, ballot, decisions);
}

void Ballots::refuse(Entry entry, ibcoll_status_t code, std::string text, Decisions& decisions) {
  std::vector<int> receivers = entry->second.refuse(code, std::move(text), gone_);
  hand_out(std::move(receivers), entry->first, entry->second, decisions);
}

void Ballots::hand_out(std::vector<int> receivers, const Arbiter::Key& key, const Ballot& ballot,
                       Decisions& decisions) {
  for (const int rank : receivers) waits_in_[static_cast<size_t>(rank)] = nullptr;
  Arbiter::Verdict verdict = ballot.verdict();
  verdict.key = key;
  decisions.push_back({std::move(receivers), std::move(verdict)});
}

// Ranks wait in one ballot for a rank that waits in another one, and so on, until one waits for the first: none of these
// would ever be decided. `rank` has just begun to wait, so it is in every such circle. A rank waits in one ballot at a
// time, so a member that waits in another one is missing here.
void Ballots::end_circle(int rank, Decisions& decisions) {
  std::map<const Arbiter::Key*, std::pair<int, const Arbiter::Key*>> found;  // who is awaited, by which ballot
  if (ballots_.size() == 1) return;
  const Arbiter::Key* const first = waits_in_[static_cast<size_t>(rank)];
  std::vector<const Arbiter::Key*> queue = {first};
  for (size_t i = 0; i < queue.size() && !found.contains(first); ++i) {
    for (const int awaited : ballots_.at(*queue[i]).members()) {
      const Arbiter::Key* const in = waits_in_[static_cast<size_t>(awaited)];
      if (in && in != queue[i] && found.try_emplace(in, awaited, queue[i]).second) queue.push_back(in);
    }
  }
  if (!found.contains(first)) return;
  std::string text = "ranks wait for each other in a circle";
  std::vector<const Arbiter::Key*> circle;
  const Arbiter::Key* at = first;
  do {
    const auto& [awaited, by] = found.at(at);
    text += fmt::format("; {} waits for rank {}, which is in {}", ballots_.at(*by).name(), awaited,
                        ballots_.at(*at).name());
    circle.push_back(at);
    at = by;
  } while (at != first);
  for (const Arbiter::Key* const key : circle) refuse(ballots_.find(*key), IBCOLL_ERR_MISMATCH, text, decisions);
}

void Ballots::forget_those_that_are_over() {
  std::erase_if(ballots_, [](const auto& each) { return each.second.is_over(); });
}

}  // namespace ibcoll::run
