// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/replay/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "tools/ibcoll_sim/option_values.h"
#include "tools/ibcoll_sim/replay/choices.h"
#include "tools/ibcoll_sim/replay/machine.h"
#include "tools/ibcoll_sim/replay/player.h"
#include "tools/ibcoll_sim/replay/variants.h"

namespace ibcoll::simulator {
namespace {

constexpr uint64_t kFirstParts = 4'000;  // parts of ranks in calls, to see how many events they take
constexpr uint64_t kMostParts = 60'000;
constexpr double kEvents = 200'000;  // of one trial
constexpr std::array kSteps = {4.0, 2.0, 1.4, 1.15};
constexpr double kMostFactor = 1000;
constexpr double kCloser = 0.99;  // of the difference before

Options scaled_machine(const Recording& recording, const Options& defaults, double startup, double bytes) {
  Options machine = recorded_machine(recording.machine, recording.ranks, defaults);
  for (double Options::*const us :
       {&Options::alpha_us, &Options::gap_us, &Options::node_alpha_us, &Options::node_gap_us, &Options::flag_us})
    machine.*us = std::min(machine.*us * startup, kMostUs);
  for (double Options::*const speed : {&Options::bandwidth, &Options::node_bandwidth, &Options::copy_bandwidth})
    machine.*speed = std::clamp(machine.*speed / bytes, 0.001, 1000.0);
  return machine;
}

class Fit {
 public:
  Fit(const Recording& recording, const Options& defaults) : recording_(recording), defaults_(defaults) {}

  Result<FittedMachine> run() {
    excerpt_ = excerpt_of(recording_, kFirstParts);
    if (Status status = look(1, 1); !status.ok()) return status;
    const double each = static_cast<double>(events_) / static_cast<double>(excerpt_.moments.size());
    const double parts = std::min(static_cast<double>(kMostParts), kEvents / std::max(each, 1e-3));
    excerpt_ = excerpt_of(recording_, std::max(kFirstParts, static_cast<uint64_t>(parts)));
    best_ = INFINITY;
    if (Status status = look(1, 1); !status.ok()) return status;
    for (const double step : kSteps)
      for (bool moved = true; moved;) {
        moved = false;
        for (const auto& [startup, bytes] : {std::pair(step, 1.0),
                                             {1 / step, 1.0},
                                             {1.0, step},
                                             {1.0, 1 / step},
                                             {step, 1 / step},
                                             {1 / step, step}}) {
          const double before = best_;
          if (Status status = look(startup_ * startup, bytes_ * bytes); !status.ok()) return status;
          moved = moved || best_ < before;
        }
      }
    return FittedMachine{scaled_machine(recording_, defaults_, startup_, bytes_), startup_, bytes_};
  }

 private:
  Status look(double startup, double bytes) {
    if (std::max({startup, bytes, 1 / startup, 1 / bytes}) > kMostFactor) return {};
    const Options machine = scaled_machine(excerpt_, defaults_, startup, bytes);
    const KnownCalls calls(excerpt_, machine);
    const std::unique_ptr<Choices> choices = recorded_choices(calls);
    Player player(calls, *choices, 1, 0);
    if (Status status = player.run(); !status.ok()) return status;
    events_ = player.events();
    // Both, so that calls which take long now and then count in the sum, and do not decide on each kind.
    const double here = disagreement(excerpt_, player.moments()) + std::abs(excess(excerpt_, player.moments()));
    if (here < kCloser * best_) best_ = here, startup_ = startup, bytes_ = bytes;
    return {};
  }

  const Recording& recording_;
  const Options& defaults_;
  Recording excerpt_;
  uint64_t events_ = 0;
  double best_ = INFINITY, startup_ = 1, bytes_ = 1;
};

}  // namespace

Result<FittedMachine> fitted_machine(const Recording& recording, const Options& defaults) {
  return Fit(recording, defaults).run();
}

double excess(const Recording& recording, const std::vector<Moments>& played) {
  double recorded = 0, replayed = 0;
  for (size_t i = 0; i < played.size(); ++i) {
    recorded += static_cast<double>(recording.moments[i].exit - recording.moments[i].waits);
    replayed += static_cast<double>(played[i].exit - played[i].waits);
  }
  return recorded > 0 ? replayed / recorded - 1 : 0;
}

double disagreement(const Recording& recording, const std::vector<Moments>& played) {
  std::map<std::pair<uint32_t, uint32_t>, std::pair<double, double>> sums;
  for (const RecordedCall& call : recording.calls) {
    auto& [recorded, replayed] = sums[{call.kind, call.site}];
    for (uint64_t i = call.first; i < call.first + static_cast<uint64_t>(recording.size_of(call)); ++i) {
      recorded += static_cast<double>(recording.moments[i].exit - recording.moments[i].waits);
      replayed += static_cast<double>(played[i].exit - played[i].waits);
    }
  }
  double all = 0, apart = 0;
  for (const auto& [key, times] : sums) all += times.first, apart += std::abs(times.second - times.first);
  return all > 0 ? apart / all : 0;
}

}  // namespace ibcoll::simulator
