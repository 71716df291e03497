// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/replay/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "runtime/comm/reduce/operation.h"
#include "tools/ibcoll_sim/calls.h"
#include "tools/ibcoll_sim/option_values.h"
#include "tools/ibcoll_sim/replay/machine.h"
#include "tools/ibcoll_sim/replay/peers.h"

namespace ibcoll::simulator {
namespace {

Choice cheapest(const KnownCalls& calls, uint32_t kind) {
  return select(calls.recording().kinds[kind].collective, calls.shape(kind), calls.model(kind), {}).value();
}

class Recorded final : public Choices {
 public:
  explicit Recorded(const KnownCalls& calls) : calls_(calls) {}
  Result<Choice> of(uint32_t kind, uint32_t) const override {
    const std::string& name = calls_.recording().kinds[kind].algorithm;
    if (!name.empty())
      if (const auto choice = applicable_choice(calls_, kind, name)) return *choice;
    return cheapest(calls_, kind);
  }

 private:
  const KnownCalls& calls_;
};

class Wanted final : public Choices {
 public:
  Wanted(const KnownCalls& calls, std::map<ibcoll_collective_t, Forced> forced)
      : calls_(calls), forced_(std::move(forced)) {}
  Result<Choice> of(uint32_t kind, uint32_t) const override {
    const ibcoll_collective_t collective = calls_.recording().kinds[kind].collective;
    const auto forced = forced_.find(collective);
    if (forced == forced_.end()) return cheapest(calls_, kind);
    return select(collective, calls_.shape(kind), calls_.model(kind), forced->second);
  }

 private:
  const KnownCalls& calls_;
  std::map<ibcoll_collective_t, Forced> forced_;
};

class OfPeer final : public Choices {
 public:
  OfPeer(const KnownCalls& calls, std::string peer) : calls_(calls), peer_(std::move(peer)) {}
  Result<Choice> of(uint32_t kind, uint32_t) const override {
    const CallKind& of_kind = calls_.recording().kinds[kind];
    const bool user = of_kind.op && of_kind.op->user_defined();
    const std::string name = peer_algorithm(peer_, of_kind.collective, calls_.shape(kind), user);
    if (!name.empty())
      if (const auto choice = applicable_choice(calls_, kind, name)) return *choice;
    return cheapest(calls_, kind);
  }

 private:
  const KnownCalls& calls_;
  std::string peer_;
};

class OfSites final : public Choices {
 public:
  OfSites(const KnownCalls& calls, std::vector<std::string> names, const Choices& otherwise)
      : calls_(calls), names_(std::move(names)), otherwise_(otherwise) {}
  Result<Choice> of(uint32_t kind, uint32_t site) const override {
    if (!names_[site].empty())
      if (const auto choice = applicable_choice(calls_, kind, names_[site])) return *choice;
    return otherwise_.of(kind, site);
  }

 private:
  const KnownCalls& calls_;
  std::vector<std::string> names_;
  const Choices& otherwise_;
};

Result<Shape> shape_of_kind(const Recording& recording, const CallKind& kind, const Shape& team) {
  const oracle::CallParams params = params_of(recording, kind);
  const BlockList known = known_blocks(params);
  const PairLists pairs = pair_lists(params, 0);
  const Result<Args> args = args_at(params, 0, nullptr, nullptr, known, pairs);
  if (!args.ok()) return args.status();
  return shape_of(team, args.value());
}

}  // namespace

KnownCalls::KnownCalls(const Recording& recording, const Options& machine) : recording_(recording), machine_(machine) {
  std::vector<int> nodes;
  for (int rank = 0; rank < machine.ranks; ++rank) nodes.push_back(machine.node_of(rank));
  std::vector<Shape> teams;
  for (const std::vector<int>& team : recording.teams) {
    placements_.emplace_back(team, nodes);
    models_.push_back(team_model(machine, placements_.back()));
    teams.push_back(team_shape(machine, placements_.back()));
  }
  for (const CallKind& kind : recording.kinds) {
    const Shape& team = teams[static_cast<size_t>(kind.team)];
    const Result<Shape> shape = shape_of_kind(recording, kind, team);
    shapes_.push_back(shape.ok() ? shape.value() : team);  // a call that cannot be made is reported when it is made
  }
}

std::optional<Choice> applicable_choice(const KnownCalls& calls, uint32_t kind, const std::string& name) {
  const ibcoll_collective_t collective = calls.recording().kinds[kind].collective;
  Result<std::vector<ForcedEntry>> entries = parse_forced(collective, name, "a trace", IBCOLL_ERR_INVALID_ARGUMENT);
  if (!entries.ok() || entries->empty()) return {};
  const Result<Choice> choice =
      select(collective, calls.shape(kind), calls.model(kind), {std::move(entries.value()), "a trace"});
  if (!choice.ok()) return {};
  return choice.value();
}

std::unique_ptr<Choices> recorded_choices(const KnownCalls& calls) { return std::make_unique<Recorded>(calls); }

Result<std::unique_ptr<Choices>> wanted_choices(const KnownCalls& calls, const std::string& text) {
  if (text == "recorded") return std::unique_ptr<Choices>(std::make_unique<Recorded>(calls));
  std::map<ibcoll_collective_t, Forced> forced;
  for (const std::string& word : text == "auto" ? std::vector<std::string>{} : words_of(text, ',')) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto row =
        std::find_if(std::begin(kCatalog), std::end(kCatalog), [&](const Collective& one) { return name == one.name; });
    if (equals == std::string::npos || row == std::end(kCatalog))
      return error(IBCOLL_ERR_INVALID_ARGUMENT,
                   "--algorithm: '{}': with --replay, auto, recorded or COLLECTIVE=ALGORITHM,... is wanted", word);
    Result<std::vector<ForcedEntry>> entries =
        parse_forced(row->id, word.substr(equals + 1), "--algorithm", IBCOLL_ERR_INVALID_ARGUMENT);
    if (!entries.ok()) return entries.status();
    if (!entries->empty()) forced[row->id] = {std::move(entries.value()), "--algorithm"};
  }
  return std::unique_ptr<Choices>(std::make_unique<Wanted>(calls, std::move(forced)));
}

std::unique_ptr<Choices> peer_choices(const KnownCalls& calls, const std::string& peer) {
  return std::make_unique<OfPeer>(calls, peer);
}

std::unique_ptr<Choices> site_choices(const KnownCalls& calls, std::vector<std::string> names,
                                      const Choices& otherwise) {
  return std::make_unique<OfSites>(calls, std::move(names), otherwise);
}

}  // namespace ibcoll::simulator
