// SPDX-License-Identifier: BSD-3-Clause
// One collective on p ranks with its buffers: filled with a pattern that depends on source, destination, offset and
// round; guarded on both sides and between blocks; compared with a result that is computed here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/collectives/framework/algorithm.h"
#include "runtime/sim/random.h"

namespace ibcoll {

struct CaseParams {
  ibcoll_collective_t collective = IBCOLL_BARRIER;
  int p = 1;
  uint64_t bytes = 0;            // of a block (allgather, alltoall) or the buffer (bcast)
  std::vector<uint64_t> counts;  // allgatherv: p; alltoallv: p x p, from source i to destination j at i * p + j
  bool in_place = false;
  int root = 0;
  uint64_t count = 0;  // elements (allreduce)
  ibcoll_type_t type = IBCOLL_UINT32;
  ibcoll_op_t op = nullptr;
  ibcoll_scheme_t scheme = IBCOLL_SCHEME_AUTO;

  std::string describe() const;
};

// Random parameters for a collective; blocks of at most `most` bytes, often of one of the sizes in `edges`.
CaseParams random_case(SimRandom& random, ibcoll_collective_t collective, int p, uint64_t most,
                       const std::vector<uint64_t>& edges);

class CollectiveCase {
 public:
  CollectiveCase(CaseParams params, uint64_t seed);

  const CaseParams& params() const { return params_; }
  // Passed through the checks of the C interface.
  Result<Args> args(int rank);
  Shape shape() const;  // all but p's placement

  // Before the start: data to send, and in the receive buffer what must go or, around the blocks, stay.
  void fill(int rank, uint64_t round);
  // After completion: "", or what is wrong.
  std::string check(int rank, uint64_t round);
  // The caller's right after completion: both buffers get other content, which stays if nobody writes late.
  void scribble(int rank);
  std::string check_scribbled(int rank) const;
  // After a failed run: nothing around the blocks has changed.
  std::string check_guards(int rank, uint64_t round) const;

 private:
  struct RankBuffers {
    std::vector<uint64_t> send_counts, send_displacements, recv_counts, recv_displacements;
    uint64_t send_bytes = 0, recv_bytes = 0;  // without guards
    std::vector<std::byte> send, recv;        // with guards
  };

  void lay_out(int rank, SimRandom& random);
  Blocks recv_blocks(int rank);
  Blocks send_blocks(int rank);
  std::vector<std::byte> image(int rank, uint64_t round, bool after);
  void overlay(std::vector<std::byte>& image, uint64_t at, int source, int destination, uint64_t bytes,
               uint64_t round) const;
  void operand(std::byte* to, int rank, uint64_t round) const;
  const std::vector<std::byte>& reduced(uint64_t round);
  RankBuffers& of(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  const RankBuffers& of(int rank) const { return ranks_[static_cast<size_t>(rank)]; }

  CaseParams params_;
  uint64_t seed_;
  Reduction reduction_;
  std::vector<RankBuffers> ranks_;
  std::map<uint64_t, std::vector<std::byte>> reduced_;  // by round
};

}  // namespace ibcoll
