// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/replay/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "runtime/comm/reduce/operation.h"
#include "runtime/comm/reduce/types.h"
#include "tools/traces/trace.h"

namespace ibcoll::simulator {
namespace {

using tracing::RankTrace;
using tracing::Record;

constexpr uint32_t kLeftOut = UINT32_MAX;
constexpr size_t kMostComplaints = 3;  // of a file, in the notes

// The operation of a program, of which a simulation needs no results.
void no_operation(const void*, void*, uint64_t, ibcoll_type_t, void*) {}
ibcoll_op any_order{"user", true, kUserDefined, no_operation, nullptr};
ibcoll_op in_order{"user_in_order", false, kUserDefined, no_operation, nullptr};

ibcoll_op_t operation_of(std::string_view name) {
  static const ibcoll_op_t kKnown[] = {IBCOLL_SUM,    IBCOLL_PROD,   IBCOLL_MIN,    IBCOLL_MAX, IBCOLL_BAND,
                                       IBCOLL_BOR,    IBCOLL_BXOR,   IBCOLL_LAND,   IBCOLL_LOR, IBCOLL_LXOR,
                                       IBCOLL_MINLOC, IBCOLL_MAXLOC, IBCOLL_REPLACE};
  for (const ibcoll_op_t op : kKnown)
    if (name == op->name) return op;
  return name == any_order.name ? &any_order : name == in_order.name ? &in_order : nullptr;
}

constexpr std::string_view kOpaque = "opaque:";

bool read_type(std::string_view name, CallKind& kind) {
  if (name.starts_with(kOpaque)) {
    kind.type = IBCOLL_OPAQUE;
    kind.opaque_bytes = std::strtoull(std::string(name.substr(kOpaque.size())).c_str(), nullptr, 10);
    return kind.opaque_bytes > 0;
  }
  for (int type = 0; type < kTypeCount; ++type)
    if (name == type_name(static_cast<ibcoll_type_t>(type))) {
      kind.type = static_cast<ibcoll_type_t>(type);
      return kind.type != IBCOLL_OPAQUE;
    }
  return false;
}

ibcoll_collective_t collective_of(std::string_view name) {
  for (const Collective& row : kCatalog)
    if (name == row.name) return row.id;
  return IBCOLL_BARRIER;
}

ibcoll_scheme_t scheme_of(std::string_view name) {
  return name == "copy" ? IBCOLL_SCHEME_COPY : name == "zero_copy" ? IBCOLL_SCHEME_ZERO_COPY : IBCOLL_SCHEME_AUTO;
}

// The team rank of a job rank; none: it is no member.
std::optional<uint32_t> member_of(const std::vector<int>& team, int rank) {
  if (rank < static_cast<int>(team.size()) && team[static_cast<size_t>(rank)] == rank) return rank;
  const auto at = std::find(team.begin(), team.end(), rank);
  if (at == team.end()) return {};
  return static_cast<uint32_t>(at - team.begin());
}

// A call while its parts are gathered: records of its team's ranks, by team rank.
struct Gathered {
  std::vector<std::pair<const RankTrace*, const Record*>> parts;
  const RankTrace* first_trace = nullptr;
  const Record* first = nullptr;
  bool failed = false;
};

class Reader {
 public:
  Reader(std::vector<RankTrace> traces, std::vector<std::string> left_out, bool partial)
      : traces_(std::move(traces)), partial_(partial) {
    made_.notes = std::move(left_out);
  }

  Result<Recording> read() {
    Status status = see_machine();
    if (status.ok()) status = see_teams();
    if (status.ok()) status = gather();
    if (status.ok()) status = make_calls();
    if (!status.ok()) return status;
    if (made_.calls.empty())
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: no call is in the traces of all ranks of its team",
                   traces_.front().path);
    make_programs();
    note_what_is_missing();
    return std::move(made_);
  }

 private:
  using Key = std::pair<uint64_t, uint32_t>;  // team and number of a call

  // With --partial the others are taken. The first complaints of a file become notes.
  template <typename... Values>
  Status complain(const RankTrace& trace, fmt::format_string<Values...> text, Values&&... values) {
    size_t& number = complaints_[trace.path];
    if (partial_ && ++number > kMostComplaints) return {};
    std::string note = fmt::format("{}: rank {}", trace.path, trace.rank);
    note += fmt::format(text, std::forward<Values>(values)...);
    if (!partial_) return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}; --partial takes the rest", note);
    made_.notes.push_back(std::move(note));
    return {};
  }

  Status see_machine() {
    made_.ranks = static_cast<int>(traces_.size());
    RecordedMachine& machine = made_.machine;
    for (const RankTrace& trace : traces_) {
      if (trace.version != 0 && trace.version < 5)
        return error(IBCOLL_ERR_INVALID_ARGUMENT,
                     "{}: a trace of version {} has no roots, types and sizes to replay; record it again", trace.path,
                     trace.version);
      machine.node_of.push_back(trace.node);
      machine.nodes = std::max(machine.nodes, trace.node + 1);
      if (trace.version == 0 || machine.us_per_byte > 0) continue;
      machine.ranks_per_core = trace.ranks_per_core;
      machine.alpha_us = trace.alpha_us, machine.cpu_us = trace.cpu_us;
      machine.us_per_byte = trace.beta_us_per_byte;
      machine.copy_us_per_byte = trace.copy_us_per_byte, machine.flag_us = trace.flag_us;
    }
    for (const tracing::ClockOffset& offset : tracing::align_clocks(traces_))
      if (!offset.known)
        made_.notes.push_back(
            fmt::format("the clock of machine {} cannot be compared with that of the first rank; both are taken to "
                        "begin together",
                        offset.clock));
    return {};
  }

  // The ranks of each team, as the first trace that knows it has them.
  Status see_teams() {
    for (const RankTrace& trace : traces_)
      for (const auto& [epoch, ranks] : trace.teams) {
        const auto [known, is_new] = members_.emplace(epoch, &ranks);
        if (is_new || *known->second == ranks) continue;
        if (Status status = complain(trace, " has other ranks in team {:x} than the ranks before it", epoch);
            !status.ok())
          return status;
      }
    return {};
  }

  // The number of the team of this record; kLeftOut: its ranks are not known, or others than this trace has.
  uint32_t team_of(const RankTrace& trace, const Record& r) {
    const auto known = members_.find(r.team);
    const auto own = trace.teams.find(r.team);
    const bool whole_job = known == members_.end() && r.team_ranks == made_.ranks;
    if ((known == members_.end() && !whole_job) || (own != trace.teams.end() && own->second != *known->second))
      return kLeftOut;
    const auto [number, is_new] = teams_.emplace(r.team, static_cast<uint32_t>(made_.teams.size()));
    if (!is_new) return number->second;
    std::vector<int>& ranks = made_.teams.emplace_back();
    if (!whole_job) {
      ranks = *known->second;
    } else {
      ranks.resize(static_cast<size_t>(made_.ranks));
      std::iota(ranks.begin(), ranks.end(), 0);
    }
    return number->second;
  }

  Status gather() {
    for (const RankTrace& trace : traces_)
      for (const Record& r : trace.records) {
        if (Status status = add(trace, r, team_of(trace, r)); !status.ok()) return status;
      }
    return {};
  }

  static std::string name_of(const Record& r) {
    std::string text = fmt::format("{} of {} bytes on {} ranks", r.collective, r.bytes, r.team_ranks);
    if (r.root >= 0) text += fmt::format(" with root {}", r.root);
    return r.type.empty() ? text : text + fmt::format(" ({} {})", r.type, r.operation);
  }

  static bool alike(const Record& a, const Record& b) {
    const bool regular = !kCatalog[collective_of(a.collective)].irregular();
    return a.collective == b.collective && a.team_ranks == b.team_ranks && a.root == b.root && a.type == b.type &&
           a.operation == b.operation && (!regular || a.bytes == b.bytes);
  }

  Status add(const RankTrace& trace, const Record& r, uint32_t team) {
    Gathered& g = gathered_[{r.team, r.op}];
    const auto contradicts = [&](const std::string& what) {
      g.failed = true;
      return complain(trace, ": call {} of team {:x} {}", r.op, r.team, what);
    };
    g.failed = g.failed || r.failed;
    if (!g.first) g.first = &r, g.first_trace = &trace;
    if (!alike(*g.first, r))
      return contradicts(fmt::format("is {}, but rank {} has {}: these traces do not belong together", name_of(r),
                                     g.first_trace->rank, name_of(*g.first)));
    if (team == kLeftOut) return contradicts("is of a team whose ranks are not in the trace");
    const std::vector<int>& ranks = made_.teams[team];
    const std::optional<uint32_t> member = member_of(ranks, trace.rank);
    if (!member || static_cast<int>(ranks.size()) != r.team_ranks) return contradicts("is of a team without this rank");
    g.parts.resize(ranks.size());
    auto& part = g.parts[*member];
    if (part.second) return contradicts("is recorded twice");
    part = {&trace, &r};
    return {};
  }

  // Those that all ranks of the team have, in the order of their first arrival.
  Status make_calls() {
    std::vector<std::pair<int64_t, Gathered*>> whole;
    for (auto& [key, g] : gathered_) {
      if (g.failed) {
        ++failed_;
        continue;
      }
      int64_t begin = INT64_MAX;
      bool all = true;
      for (size_t i = 0; i < g.parts.size(); ++i) {
        if (g.parts[i].second) begin = std::min(begin, g.parts[i].second->arrival_ns);
        if (g.parts[i].second || !all) continue;
        all = false;
        const int rank = made_.teams[teams_.at(key.first)][i];
        const RankTrace& trace = traces_[static_cast<size_t>(rank)];
        if (trace.dropped > 0 || trace.version == 0) continue;  // it has its last calls only, or none
        if (Status status = complain(trace, " has no call {} of team {:x}, which is {} on rank {}", key.second,
                                     key.first, name_of(*g.first), g.first_trace->rank);
            !status.ok())
          return status;
      }
      if (all) whole.emplace_back(begin, &g);
      incomplete_ += !all;
    }
    std::stable_sort(whole.begin(), whole.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [begin, g] : whole)
      if (Status status = make_call(*g); !status.ok()) return status;
    return {};
  }

  Status make_call(const Gathered& g) {
    CallKind kind;
    const Record& r = *g.first;
    kind.collective = collective_of(r.collective);
    kind.team = static_cast<int>(teams_.at(r.team));
    kind.root = std::max(r.root, 0);
    kind.scheme = scheme_of(r.scheme);
    kind.algorithm = r.algorithm == "-" ? "" : r.algorithm;
    if (!kind.row().irregular()) kind.bytes = r.bytes;
    if (kind.row().reduces()) {
      kind.op = operation_of(r.operation);
      if (!kind.op || !read_type(r.type, kind))
        return complain(*g.first_trace, ": call {} of team {:x}: no type '{}' or operation '{}' is known", r.op, r.team,
                        r.type, r.operation);
    }
    if (Status status = find_lists(g, kind); !status.ok() || (kind.row().irregular() && kind.lists.empty()))
      return status;
    RecordedCall call;
    call.kind = number_of(kinds_, made_.kinds, std::move(kind));
    call.site = site_of(*g.first_trace, r);
    call.first = made_.moments.size();
    const auto number = static_cast<uint32_t>(made_.calls.size());
    for (const auto& [trace, part] : g.parts) {
      const int64_t waits = part->wait_ns < 0 ? part->exit_ns : part->arrival_ns + part->wait_ns;
      made_.moments.push_back({part->arrival_ns, waits, std::max(waits, part->exit_ns)});
      numbers_[part] = number;
    }
    made_.calls.push_back(call);
    return {};
  }

  Status find_lists(const Gathered& g, CallKind& kind) {
    const SizesKnown sizes = kind.row().sizes;
    if (sizes == SizesKnown::kToRoot) {
      std::vector<uint64_t> list;
      for (const auto& [trace, part] : g.parts) list.push_back(part->bytes);
      kind.lists.push_back(number_of(lists_, made_.lists, std::move(list)));
    }
    if (sizes != SizesKnown::kToAll && sizes != SizesKnown::kToPairs) return {};
    for (const auto& [trace, part] : g.parts) {
      if (part->counts == Record::kNoCounts) {
        kind.lists.clear();
        return complain(*trace,
                        ": call {} of team {:x} has no block sizes: memory for lists of sizes was used up when it was "
                        "recorded; trace fewer calls",
                        part->op, part->team);
      }
      kind.lists.push_back(number_of(lists_, made_.lists, std::vector<uint64_t>(trace->counts[part->counts])));
      if (sizes == SizesKnown::kToAll) return {};
    }
    return {};
  }

  template <typename Value>
  static uint32_t number_of(std::map<Value, uint32_t>& numbers, std::vector<Value>& list, Value value) {
    const auto [at, is_new] = numbers.emplace(std::move(value), static_cast<uint32_t>(list.size()));
    if (is_new) list.push_back(at->first);
    return at->second;
  }

  // By what is recorded of the place; its text is found once.
  uint32_t site_of(const RankTrace& trace, const Record& r) {
    const tracing::Site& site = trace.sites[r.site];
    const auto [at, is_new] = sites_.emplace(SiteKey(r.collective, site.module, site.offset, site.file, site.line),
                                             static_cast<uint32_t>(made_.sites.size()));
    if (is_new) {
      made_.sites.push_back({collective_of(r.collective), ""});
      places_.sites.push_back(site);
    }
    return at->second;
  }

  // Steps of each rank, in the order of the trace.
  void make_programs() {
    std::vector<RankTrace> places;
    places.push_back(std::move(places_));
    for (std::string& problem : tracing::find_sources(places)) made_.notes.push_back(std::move(problem));
    for (size_t i = 0; i < made_.sites.size(); ++i) made_.sites[i].text = places.front().sites[i].text;
    int64_t begin = INT64_MAX;
    for (const Moments& moments : made_.moments) begin = std::min(begin, moments.arrival);
    for (Moments& moments : made_.moments) moments.arrival -= begin, moments.waits -= begin, moments.exit -= begin;
    made_.programs.resize(traces_.size());
    for (const RankTrace& trace : traces_) made_.programs[static_cast<size_t>(trace.rank)] = program_of(trace);
  }

  std::vector<Step> program_of(const RankTrace& trace) const {
    struct Begun {
      int64_t begin, end;
      Step step;
    };
    std::vector<Begun> all;
    for (const Record& r : trace.records) {
      const auto number = numbers_.find(&r);
      if (number == numbers_.end()) continue;
      const RecordedCall& call = made_.calls[number->second];
      const std::vector<int>& team = made_.teams[static_cast<size_t>(made_.kinds[call.kind].team)];
      Step step;
      step.call = number->second;
      step.member = *member_of(team, trace.rank);
      const Moments& at = made_.moments[call.first + step.member];
      if (at.waits == at.arrival) {
        all.push_back({at.arrival, at.exit, step});
        continue;
      }
      step.what = Step::What::kStart;
      all.push_back({at.arrival, at.arrival, step});
      step.what = Step::What::kWait;
      all.push_back({at.waits, at.exit, step});
    }
    std::stable_sort(all.begin(), all.end(), [](const Begun& a, const Begun& b) { return a.begin < b.begin; });
    std::vector<Step> program;
    int64_t clock = 0;
    for (Begun& one : all) {
      one.step.gap_ns = std::max<int64_t>(0, one.begin - clock);
      clock = std::max(clock, one.end);
      program.push_back(one.step);
    }
    return program;
  }

  void note_what_is_missing() {
    for (const auto& [path, number] : complaints_)
      if (number > kMostComplaints)
        made_.notes.push_back(fmt::format("{}: and {} more", path, number - kMostComplaints));
    uint64_t dropped = 0;
    for (const RankTrace& trace : traces_) dropped += trace.dropped;
    if (dropped > 0)
      made_.notes.push_back(fmt::format("{} records were dropped, the oldest ones: raise IBCOLL_TRACE_CALLS", dropped));
    if (failed_ + incomplete_ > 0)
      made_.notes.push_back(fmt::format(
          "{} calls are left out: {} failed or contradict each other, {} are not in the traces of all ranks; "
          "the time in them counts as computation",
          failed_ + incomplete_, failed_, incomplete_));
  }

  std::vector<RankTrace> traces_;
  bool partial_;
  Recording made_;
  uint64_t failed_ = 0, incomplete_ = 0;
  std::map<Key, Gathered> gathered_;
  std::map<uint64_t, const std::vector<int>*> members_;  // of teams, by epoch; in traces_
  std::map<uint64_t, uint32_t> teams_;                   // number in made_, by epoch
  std::map<std::string, size_t> complaints_;             // how many, by file
  std::map<CallKind, uint32_t> kinds_;
  std::map<std::vector<uint64_t>, uint32_t> lists_;
  using SiteKey = std::tuple<std::string_view, std::string, uint64_t, std::string, int>;
  std::map<SiteKey, uint32_t> sites_;
  RankTrace places_;  // has the sites only
  std::unordered_map<const Record*, uint32_t> numbers_;
};

}  // namespace

Result<Recording> read_recording(const std::string& path, bool partial) {
  std::vector<std::string> left_out;
  tracing::ReadOptions options;
  options.messages = false;
  if (partial) options.left_out = &left_out;
  const bool otf2 = path.ends_with(".otf2");
  Result<std::vector<RankTrace>> traces = otf2 ? tracing::read_otf2(path) : tracing::read_traces(path, options);
  if (!traces.ok()) return traces.status();
  if (otf2)
    left_out.emplace_back(
        "OTF2 has no sizes for each peer, types or operations: blocks of irregular calls are taken as "
        "equal, and reductions as sums");
  return Reader(std::move(traces.value()), std::move(left_out), partial).read();
}

oracle::CallParams params_of(const Recording& recording, const CallKind& kind) {
  const Collective& row = kind.row();
  oracle::CallParams params;
  params.collective = kind.collective;
  params.p = static_cast<int>(recording.teams[static_cast<size_t>(kind.team)].size());
  params.scheme = kind.scheme;
  params.root = kind.root;
  if (row.reduces()) {
    params.type = kind.type, params.op = kind.op;
    params.opaque_bytes = kind.opaque_bytes;
    if (!row.irregular()) params.count = kind.bytes / params.element_bytes();
  } else if (row.moves_data() && !row.irregular()) {
    params.bytes = kind.bytes;
  }
  if (!row.irregular()) return params;
  const auto* const lists = &recording.lists;
  if (row.sizes == SizesKnown::kToPairs) {
    const auto numbers = kind.lists;
    params.sizes = [lists, numbers](int source, int destination) {
      return (*lists)[numbers[static_cast<size_t>(source)]][static_cast<size_t>(destination)];
    };
  } else {
    const uint32_t number = kind.lists.front();
    params.sizes = [lists, number](int rank, int) { return (*lists)[number][static_cast<size_t>(rank)]; };
  }
  return params;
}

}  // namespace ibcoll::simulator
