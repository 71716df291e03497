// SPDX-License-Identifier: BSD-3-Clause
// The traces of a job, as read from the files that IBCOLL_TRACE made, and its calls, put together over the ranks.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/base/status.h"

namespace ibcoll::tracing {

// The messages between a rank and a peer in one call; in ns after that rank's arrival. kNever: there were none.
struct Served {
  static constexpr int64_t kNever = -1;
  int peer = 0;
  int64_t begun_ns = kNever;   // the first byte for the peer left
  int64_t sent_ns = kNever;    // the last byte for the peer left
  int64_t landed_ns = kNever;  // the last byte from the peer arrived
};

// A rank's part in the shared memory of its node; in ns after its arrival.
struct InNode {
  int64_t published_ns = Served::kNever;  // its first data
  int waited_for = -1;                    // the rank that it waited for longest; -1: none
  int64_t from_ns = Served::kNever;
  int64_t until_ns = Served::kNever;
  bool empty() const { return published_ns == Served::kNever && waited_for < 0; }
};

// The place where the program called. After find_sources(), `text` is "exchange sum.c:12", without debug information
// "main+0x33 in sum", without symbols "sum+0x11f3".
struct Site {
  std::string module;    // path of the program or shared library; "": unknown
  std::string build_id;  // of the module
  uint64_t offset = 0;   // in the module
  std::string symbol;    // "main+0x33" or ""
  std::string function, file;
  int line = 0;
  std::string address;  // "sum+0x11f3"; "": not in a module
  std::string text;
};

// A call on one rank. Views are of the texts of its trace, or of the catalog.
struct Record {
  static constexpr size_t kNoCounts = SIZE_MAX;
  int64_t arrival_ns = 0;
  int64_t exit_ns = 0;
  std::string_view collective;
  uint64_t bytes = 0;
  std::string_view algorithm;
  uint64_t team = 0;
  uint32_t op = 0;
  int team_ranks = 1;
  bool failed = false;
  size_t site = 0;  // in the list of its trace
  std::vector<Served> served;
  InNode in_node;
  // From version 5 on.
  int root = -1;                     // -1: none
  std::string_view type, operation;  // "double", "opaque:24"; "sum", "user", "user_in_order"; "": it reduces nothing
  std::string_view scheme;
  size_t counts = kNoCounts;         // in the list of its trace
  int64_t wait_ns = Served::kNever;  // when the program began to wait for it, after its arrival
};

struct RankTrace {
  std::string path;
  int version = 0;
  int rank = 0;
  int ranks = 1;
  std::string job;
  std::string clock;
  double alpha_us = 0;
  double beta_us_per_byte = 0;
  uint64_t dropped = 0;
  std::vector<Site> sites;
  std::vector<Record> records;
  // From version 5 on; records in the order of their arrival.
  int node = 0;
  int cores = 1;  // that the rank may use
  double ranks_per_core = 1;
  double cpu_us = 0, copy_us_per_byte = 0, flag_us = 0;
  std::map<uint64_t, std::vector<int>> teams;  // job ranks
  std::vector<std::vector<uint64_t>> counts;
  std::set<std::string, std::less<>> texts;  // of records
};
static_assert(std::is_nothrow_move_constructible_v<RankTrace>);  // a copy would have its own texts

// The actions of one rank in a call.
struct Part {
  int rank = 0;
  int64_t arrival_ns = 0;  // on the clock of rank 0
  int64_t exit_ns = 0;
  uint64_t bytes = 0;
  std::vector<Served> served;
  InNode in_node;
};

// Parts of all ranks of the team, by rank.
struct Call {
  std::string collective, algorithm;
  Site site;
  uint64_t team = 0;
  uint32_t op = 0;
  double mean_bytes = 0;
  std::vector<Part> parts;
  int64_t first_ns = 0;  // arrival
  int64_t last_ns = 0;
  int late = 0;  // the rank that arrived last
};

// Between machines: what was added to the clock of the ranks of one, and how wrong that may be.
struct ClockOffset {
  std::string clock;
  int64_t offset_ns = 0;
  int64_t error_ns = 0;
  bool known = true;  // false: the machine is taken to begin together with the other one
};

struct TracedJob {
  int ranks = 1;
  double alpha_us = 0, beta_us_per_byte = 0;
  uint64_t dropped = 0;               // records that did not fit into the ranks' buffers
  uint64_t failed = 0;                // calls that failed on a rank
  uint64_t incomplete = 0;            // calls that are not in the traces of all ranks of their team
  std::vector<std::string> problems;  // with the programs of call sites
  std::vector<ClockOffset> clocks;
  std::vector<Call> calls;  // by first arrival
  int64_t begin_ns = 0;     // of the time line
};

struct ReadOptions {
  bool messages = true;  // read what each peer was sent when, and what was waited for in the node
  // Where set: take what can be read, and add a line here for what cannot. A rank whose header cannot be read has a
  // trace of version 0 without records.
  std::vector<std::string>* left_out = nullptr;
};

// FILE, which stands for FILE.0, FILE.1, ..., or a folder with trace.0, trace.1, ...: one for each rank of the job, by
// rank.
Result<std::vector<RankTrace>> read_traces(const std::string& path, const ReadOptions& options = {});
constexpr int kOtf2Version = 1'000'000;  // of traces that are read from OTF2

// An OTF2 archive (traces.otf2), with times of one clock. Blocks of irregular collectives are taken as equal, and
// reductions as sums. UNSUPPORTED: this build has no OTF2.
Result<std::vector<RankTrace>> read_otf2(const std::string& path);
// Looks up the call sites in the debug information of the programs. Returns a line for each program without any.
std::vector<std::string> find_sources(std::vector<RankTrace>& traces);
// Converts all times to the clock of rank 0, or of the first rank whose trace was read.
std::vector<ClockOffset> align_clocks(std::vector<RankTrace>& traces);
// INVALID_ARGUMENT: two ranks made different calls where they should have made the same.
Result<TracedJob> put_together(std::vector<RankTrace> traces);

}  // namespace ibcoll::tracing
