// SPDX-License-Identifier: BSD-3-Clause
#include "tools/traces/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <vector>

#include "runtime/base/catalog.h"
#include "tools/traces/printable.h"

namespace ibcoll::tracing {
namespace {

constexpr int kMostRanks = 1 << 20;
constexpr int64_t kMostNs = int64_t{1} << 60;  // 36 years; the sum of a few is no overflow
constexpr double kMostUs = 1e6;                // of what selection takes for a message, a byte or a flag
constexpr std::string_view kBegin = "# ibcoll trace ";

template <typename Number>
bool number(std::string_view text, Number& value, int base = 10) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return problem == std::errc() && end == text.data() + text.size();
}

bool real(std::string_view text, double& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

// Takes the text up to the separator off `rest`; both empty at the end.
std::string_view next(std::string_view& rest, char separator) {
  const size_t at = rest.find(separator);
  const std::string_view word = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return word;
}

// The words between single blanks, into an array that is long enough for any line that is right.
template <size_t kMost>
size_t split(std::string_view line, std::array<std::string_view, kMost>& words) {
  size_t count = 0;
  while (!line.empty()) {
    if (count == kMost || line.front() == ' ') return kMost + 1;
    words[count++] = next(line, ' ');
  }
  return count;
}

std::string_view known_collective(std::string_view name) {
  for (const Collective& row : kCatalog)
    if (name == row.name) return row.name;
  return {};
}

std::string_view kept(RankTrace& trace, std::string_view text) {
  const auto known = trace.texts.find(text);
  return known != trace.texts.end() ? *known : *trace.texts.emplace(text).first;
}

// "-", or the nanoseconds.
bool moment(std::string_view text, int64_t& ns) {
  if (text == "-") return true;
  return number(text, ns) && ns >= 0 && ns <= kMostNs;
}

// PEER/BEGUN/SENT/LANDED
bool read_peer(std::string_view text, int ranks, Served& served) {
  const std::string_view peer = next(text, '/'), begun = next(text, '/'), sent = next(text, '/');
  return number(peer, served.peer) && served.peer >= 0 && served.peer < ranks && moment(begun, served.begun_ns) &&
         moment(sent, served.sent_ns) && moment(text, served.landed_ns);
}

bool read_peers(std::string_view text, int ranks, std::vector<Served>& all) {
  if (text == "-") return true;
  if (text.ends_with(',')) return false;
  while (!text.empty())
    if (!read_peer(next(text, ','), ranks, all.emplace_back())) return false;
  return true;
}

// PUBLISHED/WAITED_FOR/FROM/UNTIL
bool read_node(std::string_view text, int ranks, InNode& node) {
  if (text == "-") return true;
  const std::string_view published = next(text, '/'), awaited = next(text, '/'), from = next(text, '/');
  if (!moment(published, node.published_ns) || !moment(from, node.from_ns) || !moment(text, node.until_ns))
    return false;
  if (awaited == "-") return node.from_ns == Served::kNever && node.until_ns == Served::kNever;
  return number(awaited, node.waited_for) && node.waited_for >= 0 && node.waited_for < ranks &&
         node.from_ns != Served::kNever && node.until_ns >= node.from_ns;
}

// "-" for nothing; a % is followed by the two digits of a byte.
bool read_word(std::string_view word, std::string& text) {
  if (word == "-") return true;
  for (size_t i = 0; i < word.size(); ++i) {
    unsigned code = static_cast<unsigned char>(word[i]);
    if (word[i] == '%') {
      if (!number(word.substr(i + 1, 2), code, 16) || i + 2 >= word.size()) return false;
      i += 2;
    }
    text += static_cast<char>(code);
  }
  return true;
}

// ROOT TYPE OPERATION SCHEME COUNTS WAIT
bool read_meaning(const std::string_view* words, RankTrace& trace, Record& r) {
  const auto text = [&](std::string_view word) { return word == "-" ? std::string_view() : kept(trace, word); };
  if (words[0] != "-" && (!number(words[0], r.root) || r.root < 0 || r.root >= r.team_ranks)) return false;
  if (words[4] != "-" && (!number(words[4], r.counts) || r.counts >= trace.counts.size() ||
                          trace.counts[r.counts].size() != static_cast<size_t>(r.team_ranks)))
    return false;
  r.type = text(words[1]), r.operation = text(words[2]), r.scheme = text(words[3]);
  return r.type.empty() == r.operation.empty() && moment(words[5], r.wait_ns);
}

// Returns the version of the trace that begins with this line; 0: it is no trace.
int version_of(std::string_view line) {
  if (!line.starts_with(kBegin)) return 0;
  line.remove_prefix(kBegin.size());
  int version = 0;
  return number(next(line, ' '), version) && version > 0 ? version : 0;
}

using Fields = std::map<std::string_view, std::string_view>;

bool read_whole_numbers(Fields& fields, RankTrace& trace, LineCounts& follow) {
  trace.job = printable(fields["job"]);
  trace.clock = printable(fields["clock"]);
  const bool read = number(fields["rank"], trace.rank) && number(fields["ranks"], trace.ranks) && trace.rank >= 0 &&
                    trace.rank < trace.ranks && trace.ranks <= kMostRanks && !trace.job.empty() &&
                    !trace.clock.empty() && number(fields["calls"], follow.calls) &&
                    number(fields["dropped"], trace.dropped) && number(fields["sites"], follow.sites);
  if (!read || trace.version < 5) return read;
  return number(fields["node"], trace.node) && trace.node >= 0 && trace.node < kMostRanks &&
         number(fields["cores"], trace.cores) && number(fields["teams"], follow.teams) &&
         number(fields["counts"], follow.counts);
}

// Returns what is wrong with them; "": nothing.
std::string read_reals(Fields& fields, RankTrace& trace) {
  struct Real {
    const char* name;
    double& value;
    double least = 0, most = kMostUs;
    int since = 4;  // which version
  };
  const Real all[] = {{"alpha_us", trace.alpha_us},
                      {"beta_us_per_byte", trace.beta_us_per_byte},
                      {"ranks_per_core", trace.ranks_per_core, 1, kMostRanks, 5},
                      {"cpu_us", trace.cpu_us, 0, kMostUs, 5},
                      {"copy_us_per_byte", trace.copy_us_per_byte, 0, kMostUs, 5},
                      {"flag_us", trace.flag_us, 0, kMostUs, 5}};
  for (const Real& one : all)
    if (trace.version >= one.since &&
        (!real(fields[one.name], one.value) || one.value < one.least || one.value > one.most))
      return fmt::format("{} is '{}', and {:.0f} to {:.0f} is possible", one.name, fields[one.name], one.least,
                         one.most);
  return {};
}

}  // namespace

// Pairs of name and value, after "# ibcoll trace 5".
std::string read_header(std::string_view line, RankTrace& trace, LineCounts& follow) {
  std::array<std::string_view, 64> words;
  const size_t count = split(line, words);
  Fields fields;
  for (size_t i = 4; i + 1 < std::min(count, words.size()); i += 2) fields[words[i]] = words[i + 1];
  trace.version = version_of(line);
  if (trace.version > kNewestVersion)
    return fmt::format(
        "a trace of version {}, and this tool reads {} to {}; take that of the ibcoll that wrote the trace",
        trace.version, kOldestVersion, kNewestVersion);
  if (trace.version < kOldestVersion || count > words.size() || count % 2 != 0 ||
      !read_whole_numbers(fields, trace, follow))
    return fmt::format("not the first line of an ibcoll trace of version {} to {}", kOldestVersion, kNewestVersion);
  return read_reals(fields, trace);
}

// code MODULE BUILD_ID OFFSET SYMBOL, or source FILE LINE FUNCTION
bool read_site(std::string_view line, Site& site) {
  std::array<std::string_view, 5> words;
  const size_t count = split(line, words);
  if (count == 4 && words[0] == "source")
    return read_word(words[1], site.file) && number(words[2], site.line) && site.line >= 0 &&
           read_word(words[3], site.function);
  return count == 5 && words[0] == "code" && read_word(words[1], site.module) && read_word(words[2], site.build_id) &&
         words[3].starts_with("0x") && number(words[3].substr(2), site.offset, 16) && read_word(words[4], site.symbol);
}

// team EPOCH FIRST-LAST,RANK,...
bool read_team(std::string_view line, RankTrace& trace, uint64_t& elements) {
  std::array<std::string_view, 3> words;
  uint64_t epoch = 0;
  if (split(line, words) != 3 || words[0] != "team" || !number(words[1], epoch, 16)) return false;
  std::vector<int> ranks;
  for (std::string_view rest = words[2]; !rest.empty();) {
    std::string_view range = next(rest, ',');
    const bool several = range.find('-') != std::string_view::npos;
    int first = 0, last = 0;
    if (!number(next(range, '-'), first) || first < 0 || first >= trace.ranks) return false;
    last = first;
    if (several && (!number(range, last) || last < first || last >= trace.ranks)) return false;
    if (ranks.size() + static_cast<size_t>(last - first) >= static_cast<size_t>(trace.ranks)) return false;
    for (int rank = first; rank <= last; ++rank) ranks.push_back(rank);
  }
  elements += ranks.size();
  return trace.teams.emplace(epoch, std::move(ranks)).second;
}

// counts SIZE*TIMES,SIZE,...
bool read_counts(std::string_view line, RankTrace& trace, uint64_t& elements) {
  std::array<std::string_view, 2> words;
  if (split(line, words) != 2 || words[0] != "counts") return false;
  std::vector<uint64_t> counts;
  for (std::string_view rest = words[1]; !rest.empty();) {
    std::string_view part = next(rest, ',');
    const bool several = part.find('*') != std::string_view::npos;
    uint64_t size = 0, times = 1;
    if (!number(next(part, '*'), size) || (several && !number(part, times))) return false;
    if (times > static_cast<uint64_t>(trace.ranks) - counts.size()) return false;
    counts.insert(counts.end(), times, size);
  }
  elements += counts.size();
  trace.counts.push_back(std::move(counts));
  return true;
}

bool read_record(std::string_view line, RankTrace& trace, bool messages, Record& r) {
  std::array<std::string_view, 18> words;
  const size_t count = split(line, words), wanted = trace.version < 5 ? 12 : 18;
  if (count != wanted) return false;
  const int ranks = trace.ranks;
  r.collective = known_collective(words[2]), r.failed = words[8] == "failed";
  const bool read = number(words[0], r.arrival_ns) && number(words[1], r.exit_ns) && r.exit_ns >= r.arrival_ns &&
                    r.arrival_ns >= -kMostNs && r.exit_ns <= kMostNs && !r.collective.empty() &&
                    number(words[3], r.bytes) && number(words[5], r.team, 16) && number(words[6], r.op) &&
                    number(words[7], r.team_ranks) && r.team_ranks >= 1 && r.team_ranks <= ranks &&
                    (r.failed || words[8] == "ok") && number(words[9], r.site) && r.site < trace.sites.size();
  if (!read) return false;
  r.algorithm = kept(trace, printable(words[4]));
  if (messages && !(read_peers(words[10], ranks, r.served) && read_node(words[11], ranks, r.in_node))) return false;
  return trace.version < 5 || read_meaning(&words[12], trace, r);
}

}  // namespace ibcoll::tracing
