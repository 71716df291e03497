// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tools/ibcoll_sim/replay/replay.h"
#include "tools/options/csv_field.h"

namespace ibcoll::simulator {
namespace {

std::string seconds(double s) { return fmt::format("{:.6f}", s); }

// Sites in the order of their time, as the last replay that has all of them takes it.
std::vector<size_t> site_order(const ReplayResult& result) {
  const Variant& by = result.variants[std::min(result.drawn, result.variants.size() - 1)];
  std::vector<size_t> order(result.recording.sites.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return by.times.sites[a].all() > by.times.sites[b].all(); });
  return order;
}

// On the recorded machine, at least.
bool was_played(const ReplayResult& result) { return result.variants.size() > 1; }

std::string machine_text(const Options& machine) {
  return fmt::format(
      "{} ranks on {} nodes; between nodes {:.3g} us and {:.3g} GB/s, within {:.3g} us and {:.3g} GB/s, copies {:.3g} "
      "GB/s, flags {:.3g} us",
      machine.ranks, machine.nodes, machine.alpha_us, machine.bandwidth, machine.node_alpha_us, machine.node_bandwidth,
      machine.copy_bandwidth, machine.flag_us);
}

std::string table(const ReplayResult& result) {
  std::string text = fmt::format("# {} calls of {} call sites; seconds of a rank, the mean over the ranks\n",
                                 result.calls, result.recording.sites.size());
  if (was_played(result)) {
    text += fmt::format("# machine: {}\n", machine_text(result.machine));
    text += fmt::format("# replayed as recorded: {:+.0f} % in all; call sites and sizes differ by {:.0f} %\n",
                        100 * result.error, 100 * result.apart);
  }
  text += fmt::format("{:<24} {:>12} {:>15} {:>12} {:>12} {:>12}\n", "", "total", "in collectives", "late ranks",
                      "moving data", "bound");
  for (const Variant& variant : result.variants) {
    const SiteTimes sum = variant.times.sum();
    text += fmt::format("{:<24} {:>12} {:>15} {:>12} {:>12} {:>12}\n", variant.name, seconds(variant.times.total),
                        seconds(sum.all()), seconds(sum.late), seconds(sum.moving),
                        &variant == &result.variants.front() ? "-" : seconds(sum.bound));
  }
  for (const size_t site : site_order(result)) {
    const CallSite& place = result.recording.sites[site];
    const SiteTimes& known = result.variants.back().times.sites[site];
    text += fmt::format("\n{} at {}: {} calls of {:.0f} bytes\n", kCatalog[place.collective].name, place.text,
                        known.calls, known.mean_bytes);
    for (const Variant& variant : result.variants) {
      const SiteTimes& times = variant.times.sites[site];
      const bool played = &variant != &result.variants.front();
      text += fmt::format("  {:<35} {:>15} {:>12} {:>12} {:>12}{}\n", variant.name, seconds(times.all()),
                          seconds(times.late), seconds(times.moving), played ? seconds(times.bound) : "-",
                          played ? "  " + variant.algorithms[site] : "");
    }
  }
  return text;
}

std::string csv(const ReplayResult& result) {
  std::string text = "variant,collective,site,calls,mean_bytes,algorithm,late_s,moving_s,bound_s\n";
  for (const Variant& variant : result.variants)
    for (const size_t site : site_order(result)) {
      const SiteTimes& times = variant.times.sites[site];
      const CallSite& place = result.recording.sites[site];
      text += fmt::format("{},{},{},{},{:.1f},{},{:.9f},{:.9f},{:.9f}\n", variant.name, kCatalog[place.collective].name,
                          csv_field(place.text), times.calls, times.mean_bytes,
                          variant.algorithms.empty() ? "" : csv_field(variant.algorithms[site]), times.late,
                          times.moving, times.bound);
    }
  return text;
}

using Json = nlohmann::ordered_json;

Json json_times(const SiteTimes& times) {
  return {
      {"in_collectives_s", times.all()}, {"late_s", times.late}, {"moving_s", times.moving}, {"bound_s", times.bound}};
}

std::string json(const ReplayResult& result) {
  Json all = {{"calls", result.calls}, {"ranks", result.recording.ranks}, {"notes", result.notes}};
  if (was_played(result))
    all.update({{"machine", machine_text(result.machine)},
                {"fitted_startup", result.startup},
                {"fitted_bytes", result.bytes},
                {"error", result.error},
                {"apart", result.apart},
                {"trusted", result.trusted}});
  if (!result.ended.ok()) all["ended"] = result.ended.text();
  all["variants"] = Json::array();
  for (const Variant& variant : result.variants) {
    Json one = {{"name", variant.name}, {"total_s", variant.times.total}};
    one.update(json_times(variant.times.sum()));
    one["sites"] = Json::array();
    for (const size_t site : site_order(result)) {
      const SiteTimes& times = variant.times.sites[site];
      const CallSite& place = result.recording.sites[site];
      Json row = {{"collective", kCatalog[place.collective].name},
                  {"site", place.text},
                  {"calls", times.calls},
                  {"mean_bytes", times.mean_bytes}};
      if (!variant.algorithms.empty()) row["algorithm"] = variant.algorithms[site];
      row.update(json_times(times));
      one["sites"].push_back(std::move(row));
    }
    all["variants"].push_back(std::move(one));
  }
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string replay_report(const Options& options, const ReplayResult& result) {
  switch (options.format) {
    case Options::Format::kCsv:
      return csv(result);
    case Options::Format::kJson:
      return json(result);
    default:
      return table(result);
  }
}

}  // namespace ibcoll::simulator
