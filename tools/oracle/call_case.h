// SPDX-License-Identifier: BSD-3-Clause
// The oracle: one collective with its buffers on one rank, whose every byte is known before and after. Blocks hold a pattern
// of source, destination, offset and round; what lies around and between them must stay as it is. Layout and results follow from
// the collective's row in base/catalog.h. For simulated ranks, processes, and `ibcoll_perf --check`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/catalog.h"
#include "runtime/include/ibcoll.h"

namespace ibcoll::oracle {

// The same on all ranks.
struct CallParams {
  ibcoll_collective_t collective = IBCOLL_BARRIER;
  int p = 1;
  uint64_t bytes = 0;            // of a block, where sizes are regular and nothing is reduced
  std::vector<uint64_t> counts;  // irregular, in bytes: p; kToPairs: p x p, from source i to destination j at i * p + j
  bool in_place = false;         // on the ranks that may
  int root = 0;
  uint64_t count = 0;  // elements of a block (regular reductions)
  ibcoll_type_t type = IBCOLL_UINT32;
  ibcoll_op_t op = nullptr;
  uint64_t opaque_bytes = 0;  // of an element of IBCOLL_OPAQUE
  ibcoll_scheme_t scheme = IBCOLL_SCHEME_AUTO;
  const char* algorithm = nullptr;  // nullptr: the setting's
  uint64_t seed = 1;                // of data and layout
  uint64_t gaps = 0;                // irregular blocks lie in random order, with gaps of up to so many bytes
  uint64_t misaligned = 0;          // buffers begin so many bytes beside a multiple of 64

  const Collective& row() const { return kCatalog[collective]; }
  uint64_t element_bytes() const;
  // Bytes of what `source` sends `destination`; of one operand, for reductions of one block.
  uint64_t block_bytes(int source, int destination) const;
  std::string describe() const;
};

class CallCase {
 public:
  CallCase(CallParams params, int rank);

  const CallParams& params() const { return params_; }
  // As a caller says it. What is not significant on this rank is junk that must not be looked at.
  ibcoll_collective_args_t args() const;

  // Before the start: data to send, and in the receive buffer what must go or, around the blocks, stay.
  void fill(uint64_t round);
  // After completion: "", or what is wrong in either buffer.
  std::string check(uint64_t round) const;
  // Block `index` of the receive buffer has arrived.
  bool has_block(int index, uint64_t round) const;
  // The caller's right after completion: both buffers get other content, which stays if nobody writes late.
  void scribble();
  std::string check_scribbled() const;
  // After a failed run: nothing around the blocks has changed.
  std::string check_guards(uint64_t round) const;

 private:
  struct Block {
    uint64_t offset;
    uint64_t bytes;
    int index;
  };
  struct Memory {
    std::vector<std::byte> bytes;  // with guards
    std::vector<Block> blocks;
    std::vector<uint64_t> counts, displacements;  // of irregular blocks
    uint64_t begin = 0;                           // of what the caller calls the buffer
    bool significant = false;
  };

  bool in_place() const { return params_.in_place && params_.row().may_be_in_place(rank_, params_.root); }
  bool result_in_operand() const;
  void lay_out(Memory& memory, const Buffer& buffer, bool sends);
  void place(Memory& memory, uint64_t stream) const;
  void write(std::byte* to, int source, int destination, uint64_t bytes, uint64_t round) const;
  void write_result(std::byte* to, const Block& block, uint64_t round) const;
  std::vector<std::byte> before(const Memory& memory, uint64_t round, bool sends) const;
  std::vector<std::byte> after(uint64_t round) const;
  std::string compare(const char* name, const Memory& memory, const std::vector<std::byte>& wanted, bool blocks) const;

  CallParams params_;
  int rank_;
  Memory send_, recv_;
};

}  // namespace ibcoll::oracle
