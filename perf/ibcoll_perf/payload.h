// SPDX-License-Identifier: BSD-3-Clause
// The bytes of calls that are verified.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>

#include "perf/ibcoll_perf/bench_case.h"

namespace ibcoll::perf {

// Buffers of one rank before and after a call.
class Payload {
 public:
  static constexpr uint64_t kMostCalls = 3;  // between two verifications

  explicit Payload(BenchCase& bench) : bench_(bench) {}

  // New data, and nothing of an earlier call is left: for call number `call` of the round.
  void prepare(uint64_t round, uint64_t call) {
    round_ = round;
    key_ = round * kMostCalls + call;
    bench_.checked().fill(key_);
  }

  // Wrong bytes of this rank after the last call.
  uint64_t verify() {
    const oracle::Damage damage = bench_.checked().damage(key_);
    if (damage.bytes > 0 && reported_++ < kReported)
      fmt::print(stderr, "ibcoll_perf: rank {}: {}: round {}: {} wrong bytes, the first: {}\n", bench_.job().rank(),
                 bench_.title(), round_, damage.bytes, damage.text);
    return damage.bytes;
  }

 private:
  static constexpr int kReported = 3;  // damages of one row that get a line

  BenchCase& bench_;
  uint64_t round_ = 0, key_ = 0;
  int reported_ = 0;
};

}  // namespace ibcoll::perf
