// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/replay/best.h"

#include <algorithm>
#include <numeric>

#include "tools/ibcoll_sim/replay/player.h"
#include "tools/ibcoll_sim/replay/variants.h"

namespace ibcoll::simulator {
namespace {

constexpr uint64_t kMostEvents = 40'000'000;  // of all trials
constexpr size_t kSamples = 3;                // calls of a site
constexpr size_t kMostCandidates = 8;
constexpr double kHopeless = 5;        // times the lowest predicted cost
constexpr double kClearly = 0.97;      // of the present time
constexpr double kWorthwhile = 0.002;  // of the time in collectives

class Search {
 public:
  Search(const KnownCalls& calls, const Choices& current, const std::vector<Moments>& moments, const JobTimes& times)
      : calls_(calls), recording_(calls.recording()), current_(current), moments_(moments), times_(times) {}

  Result<BestOfSites> run() {
    BestOfSites best;
    best.names.resize(recording_.sites.size());
    std::vector<std::vector<uint32_t>> of_site(recording_.sites.size());
    for (uint32_t call = 0; call < recording_.calls.size(); ++call)
      of_site[recording_.calls[call].site].push_back(call);
    std::vector<size_t> order(recording_.sites.size());
    std::iota(order.begin(), order.end(), 0);
    const auto moving = [this](size_t site) { return times_.sites[site].moving; };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return moving(a) > moving(b); });
    for (const size_t site : order) {
      if (of_site[site].empty() || moving(site) < kWorthwhile * times_.sum().all()) continue;
      if (events_ > kMostEvents) {
        ++best.left_out;
        continue;
      }
      Result<std::string> name = best_of(samples(of_site[site]));
      if (!name.ok()) return name.status();
      best.names[site] = std::move(name.value());
    }
    return best;
  }

 private:
  // Calls whose time is at equal steps in the order of times.
  std::vector<uint32_t> samples(std::vector<uint32_t> calls) const {
    std::stable_sort(calls.begin(), calls.end(), [this](uint32_t a, uint32_t b) { return length(a) < length(b); });
    std::vector<uint32_t> taken;
    const size_t count = std::min(kSamples, calls.size());
    for (size_t i = 0; i < count; ++i) taken.push_back(calls[(2 * i + 1) * calls.size() / (2 * count)]);
    return taken;
  }

  // ns, from the last arrival on
  int64_t length(uint32_t number) const {
    const RecordedCall& call = recording_.calls[number];
    int64_t last = 0, exit = 0;
    for (int member = 0; member < recording_.size_of(call); ++member) {
      const Moments& at = moments_[call.first + static_cast<uint64_t>(member)];
      last = std::max(last, at.arrival), exit = std::max(exit, at.exit);
    }
    return exit - last;
  }

  Result<std::string> best_of(const std::vector<uint32_t>& samples) {
    Result<double> least = time_of(samples, "");
    if (!least.ok()) return least.status();
    double limit = kClearly * least.value();
    std::string best;
    const uint32_t kind = recording_.calls[samples.front()].kind;
    const Result<std::vector<ibcoll::Candidate>> all =
        ibcoll::candidates(recording_.kinds[kind].collective, calls_.shape(kind), calls_.model(kind), {});
    if (!all.ok()) return all.status();
    for (size_t i = 0; i < std::min(kMostCandidates, all->size()); ++i) {
      const ibcoll::Candidate& one = all.value()[i];
      if (one.cost_us > kHopeless * all->front().cost_us) break;
      const std::string name = one.choice.algorithm->name;
      const Result<double> time = time_of(samples, name);
      if (!time.ok()) return time.status();
      if (time.value() < limit) limit = time.value(), best = name;
    }
    return best;
  }

  // Seconds that the ranks spend in these calls. `name`: ""; as they run at present.
  Result<double> time_of(const std::vector<uint32_t>& samples, const std::string& name) {
    double sum = 0;
    for (const uint32_t call : samples) {
      const Recording one = one_call(recording_, call, moments_);
      const KnownCalls known(one, calls_.machine());
      const RecordedCall& played = recording_.calls[call];
      const Result<Choice> present = current_.of(played.kind, played.site);
      if (!present.ok()) return present.status();
      const std::string wanted = name.empty() ? present.value().name() : name;
      const std::unique_ptr<Choices> otherwise = recorded_choices(known);
      const std::unique_ptr<Choices> choices = site_choices(known, {wanted}, *otherwise);
      Player player(known, *choices, 1, 0);
      if (Status status = player.run(); !status.ok()) return status;
      events_ += player.events();
      sum += job_times(one, player.moments(), nullptr).sum().all();
    }
    return sum;
  }

  const KnownCalls& calls_;
  const Recording& recording_;
  const Choices& current_;
  const std::vector<Moments>& moments_;
  const JobTimes& times_;
  uint64_t events_ = 0;
};

}  // namespace

Result<BestOfSites> best_of_sites(const KnownCalls& calls, const Choices& current, const std::vector<Moments>& moments,
                                  const JobTimes& times) {
  return Search(calls, current, moments, times).run();
}

}  // namespace ibcoll::simulator
