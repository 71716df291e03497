// SPDX-License-Identifier: BSD-3-Clause
// Programs make the same call again and again, with other buffers. What was checked once is not checked again: only the
// two addresses, and the counts, which may have changed in their place.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/collectives/framework/args.h"

namespace ibcoll {

// The bytes that a call reads or writes of a buffer: offsets [from, to) from its address; to = 0: none.
struct Reach {
  uint64_t from = 0;
  uint64_t to = 0;
};
struct Reaches {
  Reach send, recv;
};

// A call that was checked.
class RepeatedCall {
 public:
  // `args`: what the checks have made of the call, with count arrays that last.
  void remember(const ibcoll_collective_args_t& call, const Args& args, const Reaches& reaches) noexcept {
    // A program may free its own operation, and make another one at the same address.
    known_ = !args.in_place && !call.algorithm && !(args.reduction.op && args.reduction.op->user_defined());
    call_ = call;
    reaches_ = reaches;
    send_ = addresses_for(reaches.send);
    recv_ = addresses_for(reaches.recv);
  }

  // True: `call` differs from the checked one in its two addresses at most, and is right, too. `args`, of the checked
  // one, then hold for it with these addresses. False says nothing.
  bool allows(const ibcoll_collective_args_t& call, const Args& args, int p) const noexcept {
    return known_ && same_shape(call) && same_counts(call, args, static_cast<size_t>(p)) && send_.have(call.send) &&
           recv_.have(call.recv) && !overlap(call);
  }

 private:
  bool same_shape(const ibcoll_collective_args_t& call) const noexcept {
    const auto bits = [](const auto& value) noexcept { return static_cast<uint64_t>(value); };
    const uint64_t differ = (bits(call.collective) ^ bits(call_.collective)) | (call.bytes ^ call_.bytes) |
                            (call.count ^ call_.count) | (bits(call.type) ^ bits(call_.type)) |
                            (call.element_bytes ^ call_.element_bytes) | (bits(call.root) ^ bits(call_.root)) |
                            (bits(call.scheme) ^ bits(call_.scheme));
    return differ == 0 && call.op == call_.op && call.op_call == call_.op_call && !call.algorithm;
  }

  static bool same_counts(const ibcoll_collective_args_t& call, const Args& args, size_t p) noexcept {
    if (!args.recv.counts && !args.send.counts) return true;
    const auto same = [p](const uint64_t* held, const uint64_t* given) noexcept {
      return !held || (given && std::equal(held, held + p, given));
    };
    if (kCatalog[call.collective].reduces()) return same(args.send.counts, call.recv_counts);
    return same(args.recv.counts, call.recv_counts) && same(args.recv.displacements, call.recv_displacements) &&
           same(args.send.counts, call.send_counts) && same(args.send.displacements, call.send_displacements);
  }

  // The addresses that a buffer may have: `first` and the `count` - 1 after it.
  struct Addresses {
    uint64_t first = 0, count = 0;
    bool have(const void* address) const noexcept { return reinterpret_cast<uint64_t>(address) - first < count; }
  };
  // Not NULL where bytes are read or written, and so that these bytes end in memory; never IBCOLL_IN_PLACE, the last one.
  static Addresses addresses_for(const Reach& reach) noexcept {
    return reach.to == 0 ? Addresses{0, ~uint64_t{0}} : Addresses{1, ~reach.to};
  }

  bool overlap(const ibcoll_collective_args_t& call) const noexcept {
    const auto send = reinterpret_cast<uint64_t>(call.send), recv = reinterpret_cast<uint64_t>(call.recv);
    return reaches_.send.to > 0 && reaches_.recv.to > 0 && send + reaches_.send.from < recv + reaches_.recv.to &&
           recv + reaches_.recv.from < send + reaches_.send.to;
  }

  ibcoll_collective_args_t call_{};
  Reaches reaches_;
  Addresses send_, recv_;
  bool known_ = false;
};

}  // namespace ibcoll
