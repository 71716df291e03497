// SPDX-License-Identifier: BSD-3-Clause
// All constants of predicted costs in one table: their unit, how each was obtained, and how to measure it again.
// Algorithms and transports have none of their own (tests/layering looks for them in runtime/collectives). Sizes at
// which an algorithm changes what it does (its longest short block, its piece) are not costs: they stand in its file.
//
// Units: us, microseconds; B, bytes. us/B of a link of G Gbit/s: 0.008 / G.
//   measured     on AMD EPYC of families 25 and 26 (virtual machines with 2 cores, Debian 12), by the command that
//                stands there. P: as many ranks as there are cores.
//   timed        the value counts only where a job does not time it when it starts, or must not use what it timed (for
//                choices that have to be the same in every run). ibcoll_run -n P ibcoll_info -d prints what a job uses.
//   assumed      a guess about hardware that has not been measured, or about programs; the command says what to compare
//   a rule       chosen, not measured
#pragma once

#include <cstdint>

#include "runtime/transport/transport.h"

namespace ibcoll::cost {

// ---------------------------------------------------------------- memory of a node

// us until a flag in shared memory is seen by another core. Measured: ibcoll_core_distance (prints ns).
inline constexpr double kFlagUs = 0.1;
// us more of a step for each rank of the node, to look at its flag. Measured: ibcoll_run -n P ibcoll_perf barrier
// --algorithm shm, by the ratio of the difference in time to that in P.
inline constexpr double kLookUs = 0.01;
// us of a time slice: a rank that waits lets each other rank of its core look once. Measured: with 8 P ranks
// ibcoll_perf barrier --algorithm shm takes 7 time slices more than with P.
inline constexpr double kSliceUs = 1.2;
// us/B of a copy of what another core touched last. Timed (runtime/shm/memory_trial.h).
inline constexpr double kCopyUs = 6e-5;
// us/B of a copy within the cache of one core. Measured: ibcoll_reduce_benchmark --benchmark_filter=in_place.*/128K;
// memcpy_bytes/s counts reads and writes, so half of them are copied.
inline constexpr double kCachedCopyUs = 3.5e-5;
// us/B, more than kCopyUs, of a block that two copies move through shared memory which no cache holds. Measured:
// ibcoll_run -n P ibcoll_perf alltoall --algorithm shm --bytes 64K:64M, the rise of the time per byte.
inline constexpr double kBeyondCachesUs = 1e-4;
// us to begin a single-copy read, and us/B of it. Timed (runtime/shm/memory_trial.h).
inline constexpr double kReadUs = 1.6;
inline constexpr double kReadByteUs = 9e-5;
// B of a core's own cache, and of the last-level cache. Timed: read from /sys.
inline constexpr double kOwnCacheBytes = 1 << 20;
inline constexpr double kCacheBytes = 1 << 25;

// ---------------------------------------------------------------- links: alpha in us, beta in us/B, handling in us

// Through shared memory. Measured: ibcoll_run -n 2 ibcoll_perf barrier --algorithm dissemination is alpha and twice the
// handling; gather --algorithm linear --bytes 8 rises by twice the handling with each rank that has a core. On a node
// beta follows from copies.
inline constexpr LinkModel kShmLink{0.8, 2 * kCopyUs, 0.1};
// UCX over TCP, most of it system calls on both sides. Measured: the same two commands with --nodes 2 --net ucx in the
// place of one node, and UCX_TLS=tcp. beta is 1 Gbit/s, timed (runtime/context/link_trial.h).
inline constexpr LinkModel kTcpLink{12, 8e-3, 4, /*by_ranks=*/true, LinkModel::Beta::kAssumed};
// us/B of TCP over loopback, which is bound by copies. Measured: ibcoll_tcp_stream 127.0.0.1, twice.
inline constexpr double kLoopbackByteUs = 5e-4;
// UCX over an adapter of 32 Gbit/s. Assumed: ib_write_lat and ib_write_bw on one.
inline constexpr LinkModel kUcxAdapterLink{3, 2.5e-4, 0.3};
// Verbs, an adapter of 8 Gbit/s. Timed (runtime/verbs/link_trial.h).
inline constexpr LinkModel kVerbsLink{2, 1e-3, 0.2};
// Verbs, an adapter of 32 Gbit/s, for choices that have to be the same in every run. A rule.
inline constexpr LinkModel kSteadyVerbsLink{2, 2.5e-4, 0.2};
// Verbs, a device in software, for the same choices: its driver works in system calls of the ranks, as TCP does. A rule.
inline constexpr LinkModel kSteadySoftwareLink{12, 1e-3, 4, /*by_ranks=*/true};
// Before a link is known: teams of one rank. A rule.
inline constexpr LinkModel kUnknownLink{1, 1e-3, 0.1};

// ---------------------------------------------------------------- factors of patterns

// An algorithm that does what another one does, and something that only costs, or whose advantage the model does not
// see: its cost is at least so many times the other's. A rule: less than measured times differ by, more than rounding.
inline constexpr double kSecondChoice = 1.05;
// Time of an exchange by lanes over what its messages, steps, bytes and copies take in the model; of irregular blocks,
// assumed. Measured: `perf/cluster up 4`,
// ibcoll_perf allgather and alltoall of 2K to 128K by pap_shm_direct and pap_shm_lanes; the same on 4 emulated nodes.
inline constexpr double kLanes = 1.3;
// How much longer lanes may take than leaders when all ranks come at once. When they do not, leaders take 1.5 to 3 times
// as long after the last arrival. Measured: the same with --arrival random:32.
inline constexpr double kWorthNotWaiting = 1.1;
// How much longer the algorithm that is best with late ranks may take when all ranks come at once, of calls for which
// both count (IBCOLL_ARRIVAL=mixed). A rule.
inline constexpr double kWorthLateRanks = 1.1;
// B that go to a late rank before it comes: an eager message, and what all others together send ahead. The defaults of
// IBCOLL_EAGER_BYTES and IBCOLL_SPILL_BYTES.
inline constexpr double kEagerBytes = 8192;
inline constexpr double kSpillBytes = 2 << 20;
// The time of bytes that one rank of a core moves while others of that core wait and look for theirs, over the time of
// the same bytes without them. Measured: UCX_TLS=tcp ibcoll_run -n 16 --nodes 4 --net ucx ibcoll_perf alltoall
// --algorithm all --bytes 8K:64K, the rise of pap_shm_direct over that of pap_direct.
inline constexpr double kWaitingRanksLook = 1.5;
// The share of the time of a call whose ranks leave before others come (trees, chains) until the last rank has the
// message. The rest is how long the busiest rank works, as calls in a row overlap. Assumed, as programs make single
// calls and calls in a row: ibcoll_sim bcast --algorithm all times the former, ibcoll_perf bcast --algorithm all the
// latter.
inline constexpr double kPathOfCall = 0.5;
// Steps of a pipeline in which one rank writes and others read, in terms of full steps of two ranks. Measured:
// IBCOLL_SHM_SLOT_BYTES=8K ibcoll_run -n 2 ibcoll_perf bcast --algorithm shm --bytes 1M has 128 steps, without the
// variable 8: a 120th of the difference.
inline constexpr double kPipelinedStep = 1.0 / 3;
// Time of a copy out of the window while its writer is busy there, over that of one alone. Measured: ibcoll_run -n 2
// ibcoll_perf bcast --algorithm shm --bytes 128K:1M, over the copies that ibcoll_info -d shows as timed at start.
inline constexpr double kOverlappedCopy = 1.4;
// us for each rank in a round of the circulant allgather, which looks at all blocks. Measured: ibcoll_run -n P
// ibcoll_perf allgather --bytes 64 with --algorithm circulant:1 and circulant:33; a 32nd of the difference is a round,
// which has a message as well.
inline constexpr double kScheduleUs = 0.02;
// Steps of alltoallv on a node: one, or two if any block is read. Assumed; ibcoll_perf alltoallv --bytes 8:1M has both.
inline constexpr double kStepsOfAlltoallv = 1.5;
// A gatherv or scatterv tree that was not built for the sizes: the part of its levels on which all ranks wait for one
// long block. Assumed: ibcoll_sim gatherv --algorithm binomial,ordered_tree --distribution spikes.
inline constexpr double kLevelsOfLongBlock = 0.5;

// ---------------------------------------------------------------- sizes that not all ranks know

// B of a block of gatherv and scatterv, and of a block of alltoallv that travels with others. Assumed: blocks are
// short; algorithms differ little for long ones.
inline constexpr uint64_t kUnknownBlock = 1024;
inline constexpr double kUnknownPackedBlock = 256;

// ---------------------------------------------------------------- thresholds of gather(v) and scatter(v)

// A subtree sends its blocks straight to the root, and not by way of another rank, where its bytes take this many times
// as long as the start-up that this costs. Of ranks: a rule, the bound of Traff's theorem holds but for 1/256. Of
// nodes, whose blocks are copied twice more: measured, ibcoll_perf gatherv --algorithm shm_tree:THRESHOLD over such
// values.
inline constexpr double kStartUpsOfRanks = 256;
inline constexpr double kStartUpsOfNodes = 16;
// B: bounds of both. A rule.
inline constexpr double kLeastThreshold = 4096;
inline constexpr double kMostThreshold = 64e6;

}  // namespace ibcoll::cost
