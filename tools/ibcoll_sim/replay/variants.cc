// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/replay/variants.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "runtime/sim/random.h"

namespace ibcoll::simulator {
namespace {

// How much longer or shorter a block is on `factor` times the ranks. Per rank: where a rank has a block for each rank,
// all of them together stay as long; else its block does. Per job: what all ranks have together stays as long, or what
// each has a copy of.
double block_factor(const Collective& row, ReplayOptions::Scaled scaled, double factor) {
  const bool many_sent = row.send.extent == Extent::kBlocks, many_received = row.recv.extent == Extent::kBlocks;
  if (scaled == ReplayOptions::Scaled::kFixed) return 1;
  if (scaled == ReplayOptions::Scaled::kPerRank) return many_sent ? 1 / factor : 1;
  if (many_sent && many_received) return 1 / factor / factor;
  return many_sent || many_received ? 1 / factor : 1;
}

uint64_t scaled_bytes(uint64_t bytes, double factor, uint64_t unit) {
  if (bytes == 0 || factor == 1) return bytes;
  const auto units = static_cast<uint64_t>(static_cast<double>(bytes) * factor / static_cast<double>(unit));
  return std::max<uint64_t>(1, units) * unit;
}

class Larger {
 public:
  Larger(const Recording& from, int ranks, ReplayOptions::Scaled scaled, uint64_t seed)
      : from_(from), copies_(ranks / from.ranks), scaled_(scaled), random_(seed) {
    made_.ranks = ranks;
    made_.machine = from.machine;
    made_.sites = from.sites;
    made_.notes = from.notes;
  }

  Recording make() {
    make_teams();
    make_calls();
    for (int rank = 0; rank < made_.ranks; ++rank) made_.programs.push_back(program_of(rank));
    return std::move(made_);
  }

 private:
  bool of_all(int team) const { return static_cast<int>(from_.teams[static_cast<size_t>(team)].size()) == from_.ranks; }

  void make_teams() {
    for (size_t team = 0; team < from_.teams.size(); ++team) {
      first_team_.push_back(static_cast<int>(made_.teams.size()));
      std::vector<int> all;
      for (int copy = 0; copy < copies_; ++copy) {
        std::vector<int> ranks = from_.teams[team];
        for (int& rank : ranks) rank += copy * from_.ranks;
        if (of_all(static_cast<int>(team)))
          all.insert(all.end(), ranks.begin(), ranks.end());
        else
          made_.teams.push_back(std::move(ranks));
      }
      if (!all.empty()) made_.teams.push_back(std::move(all));
    }
  }

  uint32_t list_of(uint32_t number, int times, double factor, uint64_t unit) {
    std::vector<uint64_t> list;
    for (int i = 0; i < times; ++i)
      for (const uint64_t bytes : from_.lists[number]) list.push_back(scaled_bytes(bytes, factor, unit));
    const auto [at, is_new] = lists_.emplace(std::move(list), static_cast<uint32_t>(made_.lists.size()));
    if (is_new) made_.lists.push_back(at->first);
    return at->second;
  }

  // Kinds of the first copy of a team; those of others follow it.
  void make_kinds() {
    for (const CallKind& old : from_.kinds) {
      const bool all = of_all(old.team);
      CallKind kind = old;
      kind.algorithm.clear();  // of another number of ranks
      oracle::CallParams one;
      one.type = kind.type, one.opaque_bytes = kind.opaque_bytes;
      const uint64_t unit = kind.row().reduces() ? one.element_bytes() : 1;
      const double factor = all ? block_factor(kind.row(), scaled_, copies_) : 1;
      kind.bytes = scaled_bytes(old.bytes, factor, unit);
      kind.lists.clear();
      const bool of_pairs = kind.row().sizes == SizesKnown::kToPairs;
      for (int i = 0; i < (all && of_pairs ? copies_ : 1); ++i)
        for (const uint32_t list : old.lists) kind.lists.push_back(list_of(list, all ? copies_ : 1, factor, unit));
      first_kind_.push_back(static_cast<uint32_t>(made_.kinds.size()));
      for (int copy = 0; copy < (all ? 1 : copies_); ++copy) {
        kind.team = first_team_[static_cast<size_t>(old.team)] + copy;
        made_.kinds.push_back(kind);
      }
    }
  }

  void make_calls() {
    make_kinds();
    uint64_t first = 0;
    for (const RecordedCall& old : from_.calls) {
      const bool all = of_all(from_.kinds[old.kind].team);
      first_call_.push_back(static_cast<uint32_t>(made_.calls.size()));
      for (int copy = 0; copy < (all ? 1 : copies_); ++copy) {
        RecordedCall call = old;
        call.kind = first_kind_[old.kind] + static_cast<uint32_t>(copy);
        call.first = first;
        first += static_cast<uint64_t>(made_.size_of(call));
        made_.calls.push_back(call);
      }
    }
  }

  std::vector<Step> program_of(int rank) {
    const int copy = rank / from_.ranks;
    const std::vector<Step>& old = from_.programs[static_cast<size_t>(rank % from_.ranks)];
    std::vector<Step> program = old;
    std::map<std::pair<uint32_t, Step::What>, std::vector<size_t>> of_site;
    for (size_t i = 0; i < program.size(); ++i) {
      Step& step = program[i];
      const RecordedCall& call = from_.calls[step.call];
      of_site[{call.site, step.what}].push_back(i);
      const bool all = of_all(from_.kinds[call.kind].team);
      step.call = first_call_[old[i].call] + static_cast<uint32_t>(all ? 0 : copy);
      if (all) step.member += static_cast<uint32_t>(copy * from_.ranks);
    }
    if (copy == 0) return program;
    for (auto& [site, steps] : of_site) {
      std::vector<size_t> order = steps;
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
      for (size_t i = 0; i < steps.size(); ++i) program[steps[i]].gap_ns = old[order[i]].gap_ns;
    }
    return program;
  }

  const Recording& from_;
  int copies_;
  ReplayOptions::Scaled scaled_;
  sim::Random random_;
  Recording made_;
  std::vector<int> first_team_;       // by old team
  std::vector<uint32_t> first_kind_;  // by old kind
  std::vector<uint32_t> first_call_;  // by old call
  std::map<std::vector<uint64_t>, uint32_t> lists_;
};

}  // namespace

void compute_together(Recording& recording) {
  std::map<std::pair<uint32_t, Step::What>, std::pair<int64_t, int64_t>> sums;  // and numbers, by call
  for (const std::vector<Step>& program : recording.programs)
    for (const Step& step : program) {
      auto& [sum, count] = sums[{step.call, step.what}];
      sum += step.gap_ns, ++count;
    }
  for (std::vector<Step>& program : recording.programs)
    for (Step& step : program) {
      const auto& [sum, count] = sums.at({step.call, step.what});
      step.gap_ns = sum / count;
    }
}

Result<Recording> with_more_ranks(const Recording& recording, int ranks, ReplayOptions::Scaled scaled, uint64_t seed) {
  if (ranks % recording.ranks != 0)
    return error(
        IBCOLL_ERR_INVALID_ARGUMENT,
        "{} ranks are no multiple of the {} that the trace has: each of these is copied as often as the others", ranks,
        recording.ranks);
  return Larger(recording, ranks, scaled, seed).make();
}

Recording excerpt_of(const Recording& recording, uint64_t parts) {
  constexpr size_t kStretches = 16;
  constexpr uint32_t kLeftOut = UINT32_MAX;
  const size_t count = recording.calls.size();
  const double share = std::min(1.0, static_cast<double>(parts) / static_cast<double>(recording.moments.size()));
  Recording some = recording;
  some.calls.clear(), some.moments.clear();
  std::vector<uint32_t> numbers(count, kLeftOut);
  for (size_t call = 0; call < count; ++call) {
    const size_t stretch = (count + kStretches - 1) / kStretches;
    if (static_cast<double>(call % stretch) >= share * static_cast<double>(stretch)) continue;
    numbers[call] = static_cast<uint32_t>(some.calls.size());
    RecordedCall kept = recording.calls[call];
    const auto begin = recording.moments.begin() + static_cast<std::ptrdiff_t>(kept.first);
    kept.first = some.moments.size();
    some.moments.insert(some.moments.end(), begin, begin + recording.size_of(kept));
    some.calls.push_back(kept);
  }
  for (std::vector<Step>& program : some.programs) {
    std::erase_if(program, [&](const Step& step) { return numbers[step.call] == kLeftOut; });
    int64_t clock = 0;
    for (Step& step : program) {
      step.call = numbers[step.call];
      const Moments& at = some.moments[some.calls[step.call].first + step.member];
      const bool waits = step.what == Step::What::kWait;
      const int64_t begin = waits ? at.waits : at.arrival;
      step.gap_ns = std::max<int64_t>(0, begin - clock);
      clock = std::max(clock, step.what == Step::What::kStart ? at.arrival : at.exit);
    }
  }
  return some;
}

Recording one_call(const Recording& recording, uint32_t number, const std::vector<Moments>& moments) {
  const RecordedCall& call = recording.calls[number];
  Recording one;
  one.ranks = recording.ranks;
  one.machine = recording.machine;
  one.lists = recording.lists;
  CallKind kind = recording.kinds[call.kind];
  one.teams.push_back(recording.teams[static_cast<size_t>(kind.team)]);
  kind.team = 0;
  one.kinds.push_back(std::move(kind));
  one.sites.push_back(recording.sites[call.site]);
  one.calls.push_back({0, 0, 0});
  one.programs.resize(static_cast<size_t>(one.ranks));
  const auto begin = moments.begin() + static_cast<std::ptrdiff_t>(call.first);
  int64_t first = INT64_MAX;
  for (int member = 0; member < recording.size_of(call); ++member) first = std::min(first, begin[member].arrival);
  for (int member = 0; member < recording.size_of(call); ++member) {
    const int rank = one.teams.front()[static_cast<size_t>(member)];
    one.programs[static_cast<size_t>(rank)].push_back(
        {Step::What::kRun, 0, static_cast<uint32_t>(member), begin[member].arrival - first});
  }
  return one;
}

}  // namespace ibcoll::simulator
