// SPDX-License-Identifier: BSD-3-Clause
// One collective with buffers whose every byte is known before and after: blocks hold a pattern of source, destination,
// position and round; everything around them is a guard zone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/include/ibcoll.h"

namespace ibcoll::multiprocess {

// Those that CheckedCall knows.
constexpr int kFirstCollectives = IBCOLL_ALLREDUCE + 1;

struct CallParams {
  ibcoll_collective_t collective = IBCOLL_BARRIER;
  uint64_t bytes = 0;  // of a block; v: blocks have 0, bytes / 2, bytes and 2 bytes + 1
  int root = 0;
  bool in_place = false;
  uint64_t gap = 0;  // v: bytes between blocks, which lie in descending order of ranks
  ibcoll_scheme_t scheme = IBCOLL_SCHEME_AUTO;
  const char* algorithm = nullptr;
  uint64_t salt = 0;  // tells calls apart whose data must not be mixed up

  std::string describe() const;
};

class CheckedCall {
 public:
  CheckedCall(ibcoll_team_t team, const CallParams& params);
  CheckedCall(const CheckedCall&) = delete;
  CheckedCall& operator=(const CheckedCall&) = delete;

  const CallParams& params() const { return params_; }
  ibcoll_collective_args_t args() const;
  // The blocking shorthand. Scheme and algorithm are not among its arguments.
  ibcoll_status_t call() const;

  void fill(uint64_t round);
  // The result is right, the source as it was, the guard zones too. Complains otherwise.
  bool verify(uint64_t round) const;
  // Only the guard zones: for calls that failed. Complains otherwise.
  bool verify_guards() const;
  // After a failure: changes all memory; nobody may write to it from then on.
  void scribble();
  bool scribbled() const;
  // fill, call, verify.
  bool run(uint64_t round);

 private:
  struct Block {
    uint64_t offset;
    uint64_t bytes;
    int source;
    int destination;  // 0 where all receive the same
  };
  struct Buffer {
    std::vector<Block> blocks;
    std::vector<uint64_t> counts, displacements;
    std::vector<std::byte> memory;  // with guard zones in front and behind
    size_t guard_bytes = 0;         // of each
    std::byte* start() { return memory.data() + guard_bytes; }
    const std::byte* start() const { return memory.data() + guard_bytes; }
  };

  void lay_out();
  uint64_t irregular(int source, int destination) const;
  void add_block(Buffer& buffer, uint64_t bytes, int source, int destination);
  void seal(Buffer& buffer) const;
  void expected_block(std::byte* to, const Block& block, uint64_t round) const;
  void contribution(std::byte* to, const Block& block, uint64_t round) const;
  std::vector<std::byte> expected(const Buffer& buffer, uint64_t round, bool result) const;
  bool same(const char* name, const Buffer& buffer, const std::vector<std::byte>& wanted,
            const std::vector<std::byte>& found) const;
  bool guards(const char* name, const Buffer& buffer) const;
  bool element_is_word() const { return params_.bytes % 8 == 0; }

  ibcoll_team_t team_;
  CallParams params_;
  int rank_;
  int size_;
  Buffer send_, recv_;
};

// One call of every collective, `bytes` each (barrier: none); root, salt and gap vary.
std::vector<CallParams> every_collective(uint64_t bytes, int team_size);

}  // namespace ibcoll::multiprocess
