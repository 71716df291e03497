// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "runtime/base/catalog.h"
#include "tools/ibcoll_trace/printable.h"
#include "tools/ibcoll_trace/trace.h"

namespace ibcoll::tracing {
namespace {

constexpr int kMostRanks = 1 << 20;

Status wrong(const std::string& path, uint64_t line, const std::string& what) {
  return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: line {}: {}", printable(path), line, printable(what));
}

template <typename Number>
bool number(const std::string& text, Number& value, int base = 10) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return problem == std::errc() && end == text.data() + text.size();
}

bool real(const std::string& text, double& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size() && std::isfinite(value) && value >= 0;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool known(const std::string& collective) {
  for (const Collective& row : kCatalog)
    if (collective == row.name) return true;
  return false;
}

// Pairs of name and value, after "# ibcoll trace 4".
bool read_header(const std::string& line, RankTrace& trace, uint64_t& calls, uint64_t& sites) {
  const std::vector<std::string> words = words_of(line);
  if (line.rfind("# ibcoll trace 4 ", 0) != 0 || words.size() % 2 != 0) return false;
  std::map<std::string, std::string> fields;
  for (size_t i = 4; i + 1 < words.size(); i += 2) fields[words[i]] = words[i + 1];
  trace.job = printable(fields["job"]);
  trace.clock = printable(fields["clock"]);
  return number(fields["rank"], trace.rank) && number(fields["ranks"], trace.ranks) && trace.rank >= 0 &&
         trace.rank < trace.ranks && trace.ranks <= kMostRanks && !trace.job.empty() && !trace.clock.empty() &&
         real(fields["alpha_us"], trace.alpha_us) && real(fields["beta_us_per_byte"], trace.beta_us_per_byte) &&
         number(fields["calls"], calls) && number(fields["dropped"], trace.dropped) && number(fields["sites"], sites);
}

// "-", or the nanoseconds.
bool moment(const std::string& text, int64_t& ns) {
  if (text == "-") return true;
  return number(text, ns) && ns >= 0;
}

// PEER/BEGUN/SENT/LANDED
bool read_peer(const std::string& text, int ranks, Served& served) {
  std::istringstream stream(text);
  std::string peer, begun, sent, landed;
  std::getline(stream, peer, '/');
  std::getline(stream, begun, '/');
  std::getline(stream, sent, '/');
  std::getline(stream, landed);
  return number(peer, served.peer) && served.peer >= 0 && served.peer < ranks && moment(begun, served.begun_ns) &&
         moment(sent, served.sent_ns) && moment(landed, served.landed_ns);
}

bool read_peers(const std::string& text, int ranks, std::vector<Served>& all) {
  if (text == "-") return true;
  std::istringstream stream(text);
  for (std::string one; std::getline(stream, one, ',');)
    if (!read_peer(one, ranks, all.emplace_back())) return false;
  return !text.ends_with(',');
}

// PUBLISHED/WAITED_FOR/FROM/UNTIL
bool read_node(const std::string& text, int ranks, InNode& node) {
  if (text == "-") return true;
  std::istringstream stream(text);
  std::string published, awaited, from, until;
  std::getline(stream, published, '/');
  std::getline(stream, awaited, '/');
  std::getline(stream, from, '/');
  std::getline(stream, until);
  if (!moment(published, node.published_ns) || !moment(from, node.from_ns) || !moment(until, node.until_ns))
    return false;
  if (awaited == "-") return node.from_ns == Served::kNever && node.until_ns == Served::kNever;
  return number(awaited, node.waited_for) && node.waited_for >= 0 && node.waited_for < ranks &&
         node.from_ns != Served::kNever && node.until_ns >= node.from_ns;
}

// "-" for nothing; a % is followed by the two digits of a byte.
bool read_word(const std::string& word, std::string& text) {
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

// code MODULE BUILD_ID OFFSET SYMBOL, or source FILE LINE FUNCTION
bool read_site(const std::string& line, Site& site) {
  const std::vector<std::string> words = words_of(line);
  if (words.size() == 4 && words[0] == "source")
    return read_word(words[1], site.file) && number(words[2], site.line) && site.line >= 0 &&
           read_word(words[3], site.function);
  return words.size() == 5 && words[0] == "code" && read_word(words[1], site.module) &&
         read_word(words[2], site.build_id) && words[3].starts_with("0x") &&
         number(words[3].substr(2), site.offset, 16) && read_word(words[4], site.symbol);
}

bool read_record(const std::string& line, int ranks, size_t sites, Record& r) {
  const std::vector<std::string> words = words_of(line);
  if (words.size() != 12) return false;
  r.collective = words[2], r.algorithm = printable(words[4]), r.failed = words[8] == "failed";
  return number(words[0], r.arrival_ns) && number(words[1], r.exit_ns) && r.exit_ns >= r.arrival_ns &&
         known(r.collective) && number(words[3], r.bytes) && number(words[5], r.team, 16) && number(words[6], r.op) &&
         number(words[7], r.team_ranks) && r.team_ranks >= 1 && r.team_ranks <= ranks &&
         (r.failed || words[8] == "ok") && number(words[9], r.site) && r.site < sites &&
         read_peers(words[10], ranks, r.served) && read_node(words[11], ranks, r.in_node);
}

Result<RankTrace> read_one(const std::string& path) {
  std::ifstream file(path);
  if (!file) return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: {}", path, std::strerror(errno));
  RankTrace trace;
  trace.path = path;
  std::string line;
  if (!std::getline(file, line))
    return wrong(path, 1,
                 "the trace is empty: its rank has not ended its context (ibcoll_context_destroy) yet, or never did");
  uint64_t calls = 0, sites = 0;
  if (!read_header(line, trace, calls, sites))
    return wrong(path, 1, "not the first line of an ibcoll trace of version 4");
  for (uint64_t i = 1; i <= sites && std::getline(file, line) && !file.eof(); ++i)
    if (!read_site(line, trace.sites.emplace_back()))
      return wrong(path, i + 1, fmt::format("call site {} of {} is malformed: '{}'", i, sites, line.substr(0, 80)));
  const uint64_t above = sites + 1;  // lines above the records
  for (uint64_t i = 1; std::getline(file, line) && line != "end"; ++i) {
    Record record;
    if (i > calls) return wrong(path, above + i, fmt::format("record {} of {}: one too many", i, calls));
    // The end of a file without a newline may be half a record.
    if (file.eof()) return wrong(path, above + i, fmt::format("record {} of {} is cut off", i, calls));
    if (!read_record(line, trace.ranks, sites, record))
      return wrong(path, above + i, fmt::format("record {} of {} is malformed: '{}'", i, calls, line.substr(0, 80)));
    trace.records.push_back(std::move(record));
  }
  if (trace.records.size() != calls || line != "end")
    return wrong(path, above + trace.records.size() + 1,
                 fmt::format("the trace ends after record {} of {}: it was cut off", trace.records.size(), calls));
  if (std::getline(file, line)) return wrong(path, above + calls + 2, "the file has more lines than calls");
  return trace;
}

}  // namespace

Result<std::vector<RankTrace>> read_traces(const std::string& path) {
  std::error_code problem;
  const std::string base = std::filesystem::is_directory(path, problem) ? path + "/trace" : path;
  std::vector<RankTrace> traces;
  for (int rank = 0; rank == 0 || rank < traces.front().ranks; ++rank) {
    Result<RankTrace> one = read_one(fmt::format("{}.{}", base, rank));
    if (!one.ok()) return one.status();
    const RankTrace& trace = one.value();
    if (trace.rank != rank)
      return wrong(trace.path, 1, fmt::format("this is the trace of rank {}, not of rank {}", trace.rank, rank));
    if (rank > 0 && (trace.job != traces.front().job || trace.ranks != traces.front().ranks))
      return wrong(trace.path, 1,
                   fmt::format("job {} of {} ranks, but {} is of job {} of {} ranks: traces of two jobs are mixed",
                               trace.job, trace.ranks, traces.front().path, traces.front().job, traces.front().ranks));
    traces.push_back(std::move(one.value()));
  }
  return traces;
}

}  // namespace ibcoll::tracing
