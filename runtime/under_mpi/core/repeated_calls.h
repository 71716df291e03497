// SPDX-License-Identifier: BSD-3-Clause
// Most calls of a communicator repeat an earlier one but for their buffers: then its arguments are taken again.
#pragma once

#include <ibcoll.h>

#include <array>
#include <cstdint>
#include <memory>

#include "runtime/under_mpi/core/call.h"

namespace ibcoll::under_mpi {

struct AlgorithmCount;
struct Prepared;

// The arguments of ibcoll for blocking calls of one communicator that ran in ibcoll, one per slot. Kept are calls whose
// arguments depend on nothing but what is compared here: without arrays, with predefined types and operations, which
// live as long as the MPI, and of elements that lie in memory as ibcoll moves them.
class RepeatedCalls {
 public:
  struct Repeated {
    ibcoll_collective_args_t args;
    uint64_t bytes;             // for the counters
    AlgorithmCount* algorithm;  // with IBCOLL_MPI_VERBOSE; else NULL
  };

  // An equal call, with the buffers of this one; valid until the next call. NULL: none is kept.
  const Repeated* find(const Call& call) noexcept {
    if (!slots_) return nullptr;
    Slot& slot = (*slots_)[slot_of(call)];
    if (slot.key != Key(call)) return nullptr;
    if (slot.sends) slot.repeated.args.send = call.send.buffer;
    if (slot.receives) slot.repeated.args.recv = const_cast<void*>(call.recv.buffer);
    return &slot.repeated;
  }

  // A call that has run, and what was made of it. Kept if it may be, and if there is memory.
  void keep(const Call& call, const Prepared& prepared, AlgorithmCount* algorithm) noexcept;
  void forget_all() noexcept { slots_.reset(); }

 private:
  struct Key {
    Key() = default;
    explicit Key(const Call& call) noexcept
        : collective(call.collective),
          send_in_place(call.send.buffer == MPI_IN_PLACE),
          recv_in_place(call.recv.buffer == MPI_IN_PLACE),
          one_buffer(call.send.buffer == call.recv.buffer),
          root(call.root),
          send_count(call.send.count),
          recv_count(call.recv.count),
          send_type(call.send.type),
          recv_type(call.recv.type),
          op(call.op) {}
    bool operator==(const Key&) const = default;

    Collective collective{};
    bool send_in_place = false, recv_in_place = false;
    bool one_buffer = false;  // means MPI_IN_PLACE, or is refused
    int root = 0;
    int64_t send_count = -1, recv_count = -1;  // none that runs
    MPI_Datatype send_type{}, recv_type{};
    MPI_Op op{};
  };
  struct Slot {
    Key key;
    bool sends = false, receives = false;  // whether the call's own buffers are those of the arguments
    Repeated repeated{};
  };
  static constexpr uint32_t kSlots = 32;
  static uint32_t slot_of(const Call& call) noexcept {
    const auto count = static_cast<uint32_t>(call.recv.count);
    return (static_cast<uint32_t>(call.collective) + 5 * count + static_cast<uint32_t>(call.root)) % kSlots;
  }

  std::unique_ptr<std::array<Slot, kSlots>> slots_;
};

}  // namespace ibcoll::under_mpi
