// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/replay/replay.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>

#include "tools/ibcoll_sim/replay/best.h"
#include "tools/ibcoll_sim/replay/choices.h"
#include "tools/ibcoll_sim/replay/fit.h"
#include "tools/ibcoll_sim/replay/machine.h"
#include "tools/ibcoll_sim/replay/player.h"
#include "tools/ibcoll_sim/replay/variants.h"
#include "tools/ibcoll_sim/watch.h"

namespace ibcoll::simulator {
namespace {

// "ring", or "ring and 2 more": the algorithm of most calls first.
std::vector<std::string> algorithms_of(const Recording& recording, const Player& player) {
  std::vector<std::map<std::string, uint64_t>> of_site(recording.sites.size());
  for (const RecordedCall& call : recording.calls) ++of_site[call.site][player.algorithm(call.kind, call.site)];
  std::vector<std::string> texts;
  for (const auto& names : of_site) {
    std::string text;
    uint64_t most = 0;
    for (const auto& [name, calls] : names)
      if (calls > most) text = name, most = calls;
    if (names.size() > 1) text += fmt::format(" and {} more", names.size() - 1);
    texts.push_back(std::move(text));
  }
  return texts;
}

struct Played {
  Variant variant;
  std::vector<Moments> moments;
};

Result<Played> play(std::string name, const KnownCalls& calls, const Choices& choices, double speedup,
                    double expected_us) {
  const Recording& recording = calls.recording();
  Player player(calls, choices, speedup, expected_us);
  if (Status status = player.run(); !status.ok())
    return error(status.code(), "{}: {}", name, status.text().substr(0, 2000));
  Played played;
  played.variant.name = std::move(name);
  played.variant.times = job_times(recording, player.moments(), &calls);
  played.variant.algorithms = algorithms_of(recording, player);
  played.moments = player.take_moments();
  return played;
}

// Bytes of the steps of a job of so many times the recorded ranks, and of the moments of two runs of it: of the one
// that is drawn, and of another.
uint64_t bytes_of(const Recording& recording, uint64_t copies) {
  uint64_t steps = 0;
  for (const std::vector<Step>& program : recording.programs) steps += program.size();
  const uint64_t moments = 2 * recording.moments.size() * sizeof(Moments);
  if (copies <= 1) return moments;  // the steps are there
  return copies * (moments + steps * sizeof(Step));
}

// Replays what was recorded, on the machine that recorded it.
Status play_recorded(const Options& machine, ReplayResult& result) {
  const KnownCalls calls(result.recording, machine);
  const double total_s = result.variants.front().times.total;
  Result<Played> same = play("replayed as recorded", calls, *recorded_choices(calls), 1, total_s * 1e6);
  if (!same.ok()) return same.status();
  result.error = excess(result.recording, same->moments);
  result.apart = disagreement(result.recording, same->moments);
  result.trusted = std::abs(result.error) <= kMostError && result.apart <= kMostApart;
  result.variants.push_back(std::move(same->variant));
  result.moments = std::move(same->moments);
  return {};
}

// On the machine that is asked for: chosen algorithms, those of a peer, and the best of each site.
Status play_wanted(const Options& options, ReplayResult& result) {
  const ReplayOptions& wanted = options.replay;
  const KnownCalls calls(result.recording, result.machine);
  const Result<std::unique_ptr<Choices>> chosen = wanted_choices(calls, wanted.algorithm);
  if (!chosen.ok()) return chosen.status();
  const double expected_us = result.variants.front().times.total * 1e6;
  const auto add = [&](std::string name, const Choices& choices) -> Result<std::vector<Moments>> {
    Result<Played> played = play(std::move(name), calls, choices, wanted.speedup, expected_us);
    if (!played.ok()) return played.status();
    result.variants.push_back(std::move(played->variant));
    return std::move(played->moments);
  };
  const std::string by = wanted.algorithm == "auto"       ? "chosen by ibcoll"
                         : wanted.algorithm == "recorded" ? "algorithms as recorded"
                                                          : "algorithms as given";
  Result<std::vector<Moments>> first = add(by, *chosen.value());
  if (!first.ok()) return first.status();
  result.drawn = result.variants.size() - 1;
  result.moments = std::move(first.value());
  const Result<BestOfSites> best =
      best_of_sites(calls, *chosen.value(), result.moments, result.variants[result.drawn].times);
  if (!best.ok()) return best.status();
  if (best->left_out > 0)
    result.notes.push_back(
        fmt::format("other algorithms were not tried for {} call sites that take less time", best->left_out));
  if (wanted.peer != "none")
    if (const auto played = add("as " + wanted.peer, *peer_choices(calls, wanted.peer)); !played.ok())
      return played.status();
  return add("best of each site", *site_choices(calls, best->names, *chosen.value())).status();
}

// On the recorded machine, and where the model of that is good enough, on the one that is asked for.
Status play_all(const Options& options, ReplayResult& result) {
  const ReplayOptions& wanted = options.replay;
  const int ranks = result.recording.ranks;
  const Result<FittedMachine> fitted = fitted_machine(result.recording, Options());
  if (!fitted.ok()) return fitted.status();
  const Options& own = fitted->machine;
  result.startup = fitted->startup, result.bytes = fitted->bytes;
  Result<Options> machine = wanted_machine(own, options);
  if (!machine.ok()) return machine.status();
  result.machine = std::move(machine.value());
  const uint64_t bytes = bytes_of(result.recording, static_cast<uint64_t>(result.machine.ranks / ranks));
  if (Status status = fits(result.machine.ranks, "the calls", bytes, memory_available()); !status.ok()) return status;
  if (Status status = play_recorded(own, result); !status.ok() || !result.trusted) return status;
  if (result.machine.ranks != ranks) {
    Result<Recording> larger = with_more_ranks(result.recording, result.machine.ranks, wanted.scaled, wanted.seed);
    if (!larger.ok()) return larger.status();
    result.recording = std::move(larger.value());
    result.moments.clear();  // of fewer ranks
  }
  if (wanted.together) compute_together(result.recording);
  return play_wanted(options, result);
}

}  // namespace

Result<ReplayResult> replay(const Options& options) {
  const ReplayOptions& wanted = options.replay;
  ReplayResult result;
  Result<Recording> read = read_recording(wanted.path, wanted.partial);
  if (!read.ok()) return read.status();
  result.recording = std::move(read.value());
  result.calls = result.recording.calls.size();
  result.notes = result.recording.notes;
  result.variants.push_back({"recorded", job_times(result.recording, result.recording.moments, nullptr), {}});
  Status status = play_all(options, result);
  const bool played = result.variants.size() > 1;
  if (!status.ok() && !interrupted() && !(played && status.code() == IBCOLL_ERR_NO_MEMORY)) return status;
  result.ended = std::move(status);
  return result;
}

}  // namespace ibcoll::simulator
