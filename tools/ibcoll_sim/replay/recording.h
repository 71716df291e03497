// SPDX-License-Identifier: BSD-3-Clause
// The collectives of a job and the computation between them, as its traces have them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/catalog.h"
#include "runtime/base/status.h"
#include "tools/oracle/call_layout.h"

namespace ibcoll::simulator {

// What calls of a team have in common that are the same but for their time.
struct CallKind {
  ibcoll_collective_t collective = IBCOLL_BARRIER;
  int team = 0;
  uint64_t bytes = 0;  // of a block, where sizes are regular
  int root = 0;
  ibcoll_type_t type = IBCOLL_UINT8;  // of a reduction
  uint64_t opaque_bytes = 0;          // of an element of IBCOLL_OPAQUE
  ibcoll_op_t op = nullptr;
  ibcoll_scheme_t scheme = IBCOLL_SCHEME_AUTO;
  std::string algorithm;  // that ran, with its parameter; "": not recorded
  // Numbers of lists of block sizes: one where all ranks or the root know them; of pairs, one of each rank, with what it
  // sends to each.
  std::vector<uint32_t> lists;

  const Collective& row() const { return kCatalog[collective]; }
  auto operator<=>(const CallKind&) const = default;
};

// The part of a rank in a call, in ns. A blocking call waits from its arrival on.
struct Moments {
  int64_t arrival = 0;
  int64_t waits = 0;  // from then on it only waits
  int64_t exit = 0;
};

struct RecordedCall {
  uint32_t kind = 0;
  uint32_t site = 0;
  uint64_t first = 0;  // the moments of its ranks, by team rank, begin there
};

// What a rank does next, `gap_ns` after what it has done before.
struct Step {
  enum class What : uint8_t { kRun, kStart, kWait };
  What what = What::kRun;
  uint32_t call = 0;
  uint32_t member = 0;  // its team rank
  int64_t gap_ns = 0;
};

// The place that calls came from, and the collective that it called.
struct CallSite {
  ibcoll_collective_t collective = IBCOLL_BARRIER;
  std::string text;
};

// The machine of the job, as its selection saw it. 0: not known.
struct RecordedMachine {
  std::vector<int> node_of;  // by rank
  int nodes = 1;
  double ranks_per_core = 1;
  double alpha_us = 0, cpu_us = 0, us_per_byte = 0;  // between ranks of the whole job
  double copy_us_per_byte = 0, flag_us = 0;
};

struct Recording {
  int ranks = 0;
  RecordedMachine machine;
  std::vector<std::vector<int>> teams;       // job ranks
  std::vector<std::vector<uint64_t>> lists;  // of block sizes
  std::vector<CallKind> kinds;
  std::vector<CallSite> sites;
  std::vector<RecordedCall> calls;
  std::vector<std::vector<Step>> programs;  // by rank
  std::vector<Moments> moments;             // as recorded; none where ranks were added
  std::vector<std::string> notes;           // what a reader should know of it

  int size_of(const RecordedCall& call) const {
    return static_cast<int>(teams[static_cast<size_t>(kinds[call.kind].team)].size());
  }
};

// Reads the traces of a job. `partial`: where some cannot be read, or contradict each other, take the rest.
// INVALID_ARGUMENT: they do not belong together, or are of an old version: which file, rank, and call.
Result<Recording> read_recording(const std::string& path, bool partial);

// The call as the oracle describes it; refers to the recording.
oracle::CallParams params_of(const Recording& recording, const CallKind& kind);

}  // namespace ibcoll::simulator
