// SPDX-License-Identifier: BSD-3-Clause
// Which algorithm each call of a replay runs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/collectives/framework/select.h"
#include "tools/ibcoll_sim/options.h"
#include "tools/ibcoll_sim/replay/recording.h"

namespace ibcoll::simulator {

// What selection knows about the calls of a recording on a machine. Both outlive it.
class KnownCalls {
 public:
  KnownCalls(const Recording& recording, const Options& machine);
  const Placement& placement(int team) const { return placements_[static_cast<size_t>(team)]; }
  const Shape& shape(uint32_t kind) const { return shapes_[kind]; }
  const CostModel& model(uint32_t kind) const { return models_[static_cast<size_t>(recording_.kinds[kind].team)]; }
  const Recording& recording() const { return recording_; }
  const Options& machine() const { return machine_; }

 private:
  const Recording& recording_;
  const Options& machine_;
  std::vector<Placement> placements_;  // by team
  std::vector<CostModel> models_;      // by team
  std::vector<Shape> shapes_;          // by kind
};

// By kind and call site.
class Choices {
 public:
  virtual ~Choices() = default;
  virtual Result<Choice> of(uint32_t kind, uint32_t site) const = 0;
};

// The algorithm that ran, with its parameter; where that is not known, or does not apply, the one of lowest predicted
// cost.
std::unique_ptr<Choices> recorded_choices(const KnownCalls& calls);
// `text`: "auto", "recorded", or COLLECTIVE=ALGORITHM,..., and for others the lowest predicted cost.
Result<std::unique_ptr<Choices>> wanted_choices(const KnownCalls& calls, const std::string& text);
// The one that `peer` takes, see peers.h; where ibcoll has none like it, that of lowest predicted cost.
std::unique_ptr<Choices> peer_choices(const KnownCalls& calls, const std::string& peer);
// `names`, by call site, where they are not empty and apply; else `otherwise`.
std::unique_ptr<Choices> site_choices(const KnownCalls& calls, std::vector<std::string> names,
                                      const Choices& otherwise);

// "ring_pipelined:65536" as a choice, with the parameter that it takes by itself where the name has none. None: there is
// no such algorithm, or it does not apply.
std::optional<Choice> applicable_choice(const KnownCalls& calls, uint32_t kind, const std::string& name);

}  // namespace ibcoll::simulator
