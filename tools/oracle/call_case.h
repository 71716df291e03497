// SPDX-License-Identifier: BSD-3-Clause
// The oracle: one collective with its buffers on one rank, whose every byte is known before and after. Blocks hold a
// pattern of source, destination, offset and round; what lies around and between them must stay as it is. For simulated
// ranks, processes, and `ibcoll_perf --check`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/oracle/call_layout.h"

namespace ibcoll::oracle {

// The errors in the buffers of a rank.
struct Damage {
  uint64_t bytes = 0;
  std::string text;  // about the first of them; empty: nothing is wrong
};

// Memory of the caller for both buffers, with their guards.
struct Room {
  std::span<std::byte> send, recv;
};
// Bytes of such memory that a buffer needs.
uint64_t room_for(const BufferLayout& layout);

class CallCase {
 public:
  CallCase(CallParams params, int rank);             // in memory of its own
  CallCase(CallParams params, int rank, Room room);  // `room` outlives it
  CallCase(CallCase&&) noexcept = default;
  CallCase& operator=(CallCase&&) = delete;

  const CallParams& params() const { return layout_.params(); }
  // The arguments of a caller. What is not significant on this rank has a value that must not be used.
  ibcoll_collective_args_t args() const;

  // Before the start: data to send, and in the receive buffer bytes that must be replaced or, around the blocks, stay.
  void fill(uint64_t round);
  // After completion: what is wrong in either buffer.
  Damage damage(uint64_t round) const;
  std::string check(uint64_t round) const { return damage(round).text; }
  // Block `index` of the receive buffer has arrived.
  bool has_block(int index, uint64_t round) const;
  // Does what a caller may do after completion: both buffers get other content, which stays if nothing is written late.
  void scribble();
  std::string check_scribbled() const;
  // After a failed run: nothing around the blocks has changed.
  std::string check_guards(uint64_t round) const;

 private:
  struct Memory {
    std::vector<std::byte> own;
    std::span<std::byte> bytes;  // with guards
    uint64_t begin = 0;          // of the caller's buffer
  };

  void take(Memory& memory, const BufferLayout& layout, std::span<std::byte> room);
  void write(std::byte* to, int source, int destination, uint64_t bytes, uint64_t round) const;
  void write_reduced(std::byte* to, uint64_t bytes, uint64_t round) const;
  void write_result(std::byte* to, const BufferLayout::Block& block, uint64_t round) const;
  void write_before(std::span<std::byte> image, bool sends, uint64_t round) const;
  void write_after(std::span<std::byte> image, uint64_t round) const;
  const Memory& memory(bool sends) const { return sends ? send_ : recv_; }
  const BufferLayout& layout(bool sends) const { return sends ? layout_.send() : layout_.recv(); }
  uint64_t defined_bytes(bool sends) const;
  void compare(bool sends, bool blocks, Damage& damage) const;

  CallLayout layout_;
  Memory send_, recv_;
  mutable std::vector<std::byte> image_;  // what a buffer should be; kept, as it may be large
};

}  // namespace ibcoll::oracle
