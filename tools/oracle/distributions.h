// SPDX-License-Identifier: BSD-3-Clause
// Sizes of irregular blocks, by name: those of the papers, and two of this project. For ibcoll_perf, its twin for MPI
// and ibcoll_sim, so that a name means the same in all of them. Needs nothing but the standard library.
#pragma once

#include <cmath>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "runtime/base/hash.h"

namespace ibcoll::oracle {

// The sizes of p blocks m_i with base size c.
enum class Distribution {
  kMild,    // 1/2 to 3/2 of c, and not empty
  kRagged,  // 0 to 2c, one in five empty
  // Träff et al., "A simple, pipelined algorithm for large, irregular all-gather problems", section 3
  kRegular,     // c
  kBroadcast,   // m_0 = c, others 0
  kSpike,       // m_0 = c / 2, others c / (2 (p - 1))
  kHalfFull,    // 2c for even i, 0 for odd i
  kDecreasing,  // 2c (p - 1 - i) / (p - 1)
  kGeometric,   // m_{i-1+j} = c p / (i log2 p) for i = 1, 2, 4, ... and 0 <= j < i
  // Träff, "Practical, linear-time, fully distributed algorithms for irregular gather and scatter", with c as its b
  kSame,              // c
  kRandom,            // uniform in [1, 2c]
  kSpikes,            // 5c with probability 1/5, else 1
  kDecreasingGather,  // 2c (p - i) / p + 1
  kAlternating,       // c + c/2 for even i, c - c/2 for odd i
  kTwoBlocks,         // m_0 = m_{p-1} = c, others 0
};

// In the order of the enumeration.
inline constexpr std::string_view kDistributions[] = {
    "mild", "ragged", "regular", "broadcast",         "spike",       "half_full", "decreasing", "geometric",
    "same", "random", "spikes",  "decreasing_gather", "alternating", "two_blocks"};
static_assert(std::size(kDistributions) == static_cast<size_t>(Distribution::kTwoBlocks) + 1);

// The same draws wherever the program runs.
constexpr uint64_t draw(uint64_t index) noexcept { return scramble((index + 1) * kGoldenRatio); }

// a * b / n, rounded down, without overflow where the result fits.
constexpr uint64_t fraction(uint64_t a, uint64_t b, uint64_t n) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(static_cast<Wide>(a) * b / n);
}

inline uint64_t geometric(uint64_t c, uint64_t i, uint64_t p) noexcept {
  if (p == 1) return c;
  uint64_t level = 1;  // i - 1 + j lies in [level - 1, 2 level - 1)
  while (i >= 2 * level - 1) level *= 2;
  return static_cast<uint64_t>(static_cast<double>(c) * static_cast<double>(p) /
                               (static_cast<double>(level) * std::log2(static_cast<double>(p))));
}

// m_rank. `other`: the second rank of a pair, which makes another draw; 0 where a block has one rank only.
inline uint64_t distributed(Distribution distribution, uint64_t c, int rank, int ranks, int other = 0) noexcept {
  const auto i = static_cast<uint64_t>(rank), p = static_cast<uint64_t>(ranks), peer = static_cast<uint64_t>(other);
  const uint64_t weight = (i * 7 + peer * 3) % 5, random = draw(i << 32 | peer);
  switch (distribution) {
    case Distribution::kMild:
      return c - c / 2 + c * weight / 4;
    case Distribution::kRagged:
      return c * weight / 2;
    case Distribution::kRegular:
    case Distribution::kSame:
      return c;
    case Distribution::kBroadcast:
      return i == 0 ? c : 0;
    case Distribution::kSpike:
      return i == 0 ? c / 2 : c / (2 * (p - 1));
    case Distribution::kHalfFull:
      return i % 2 == 0 ? 2 * c : 0;
    case Distribution::kDecreasing:
      return p == 1 ? c : fraction(2 * c, p - 1 - i, p - 1);
    case Distribution::kGeometric:
      return geometric(c, i, p);
    case Distribution::kRandom:
      return c == 0 ? 0 : 1 + random % (2 * c);
    case Distribution::kSpikes:
      return random % 5 == 0 ? 5 * c : 1;
    case Distribution::kDecreasingGather:
      return fraction(2 * c, p - i, p) + 1;
    case Distribution::kAlternating:
      return i % 2 == 0 ? c + c / 2 : c - c / 2;
    case Distribution::kTwoBlocks:
      return i == 0 || i == p - 1 ? c : 0;
  }
  return 0;
}

// From `source` to `destination` of an alltoallv: every destination gets m_source from a rank; mild, ragged, random and
// spikes differ from pair to pair. `symmetric`: the same in both directions, as an exchange in place needs.
inline uint64_t distributed_pair(Distribution distribution, uint64_t c, int source, int destination, int ranks,
                                 bool symmetric = false) noexcept {
  if (symmetric && source > destination) std::swap(source, destination);
  return distributed(distribution, c, source, ranks, destination);
}

}  // namespace ibcoll::oracle
