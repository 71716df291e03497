// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/replay/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

namespace ibcoll::simulator {
namespace {

// The choices for up to so many ranks: "NAME BYTES NAME BYTES NAME": the name before each size is for fewer bytes. An
// algorithm of a library has the name of ibcoll's that sends the same messages, or else of the nearest: binary trees that
// of binomial ones, a butterfly that of recursive halving. `~`: there is none, such as for a reduce followed by a bcast.
// A parameter `p` is the number of ranks: a tree of that radix is linear.
struct Row {
  ibcoll_collective_t collective;
  int below;  // ranks; 0: any number
  std::string_view names;
};

// ompi/mca/coll/tuned/coll_tuned_decision_fixed.c, the same in 4.1.0 and all later versions of 4.1, for operations that
// commute; and coll/basic for what coll/tuned leaves to it (gatherv, scatterv, scan, exscan).
constexpr Row kOpenMpi[] = {
    {IBCOLL_BARRIER, 4, "dissemination"},
    {IBCOLL_BARRIER, 8, "tree:p"},
    {IBCOLL_BARRIER, 256, "dissemination"},
    {IBCOLL_BARRIER, 512, "tree:2"},
    {IBCOLL_BARRIER, 1024, "dissemination"},
    {IBCOLL_BARRIER, 4096, "tree:2"},
    {IBCOLL_BARRIER, 0, "dissemination"},
    {IBCOLL_BCAST, 4,
     "chain:16M 32 binomial 256 chain:16M 512 knomial:4 1024 knomial:p 32768 binomial 131072 chain:16M 262144 "
     "knomial:p 524288 binomial"},
    {IBCOLL_BCAST, 8, "binomial 8192 knomial:p 1048576 chain:16M"},
    {IBCOLL_BCAST, 16, "knomial:4 8 binomial 64 knomial:4 4096 binomial 32768 knomial:p"},
    {IBCOLL_BCAST, 32, "knomial:4 4096 binomial 1048576 scatter_allgather"},
    {IBCOLL_BCAST, 64, "binomial 2048 knomial:4"},
    {IBCOLL_BCAST, 128, "knomial:4"},
    {IBCOLL_BCAST, 256, "binomial 16384 knomial:p 32768 binomial 65536 knomial:4"},
    {IBCOLL_BCAST, 1024, "knomial:4 16384 binomial 32768 knomial:4"},
    {IBCOLL_BCAST, 2048, "knomial:4 524288 scatter_allgather"},
    {IBCOLL_BCAST, 4096, "knomial:4 262144 scatter_allgather"},
    {IBCOLL_BCAST, 0, "knomial:4 8192 binomial 16384 knomial:4 262144 scatter_allgather"},
    {IBCOLL_ALLGATHER, 32, "recursive_doubling"},
    {IBCOLL_ALLGATHER, 64, "recursive_doubling 1024 neighbor_exchange 65536 ring"},
    {IBCOLL_ALLGATHER, 128, "recursive_doubling 512 neighbor_exchange 65536 ring"},
    {IBCOLL_ALLGATHER, 256,
     "recursive_doubling 512 neighbor_exchange 131072 ring 524288 neighbor_exchange 1048576 ring"},
    {IBCOLL_ALLGATHER, 512,
     "recursive_doubling 32 bruck 128 recursive_doubling 1024 neighbor_exchange 131072 ring 524288 neighbor_exchange "
     "1048576 ring"},
    {IBCOLL_ALLGATHER, 1024, "recursive_doubling 64 bruck 256 recursive_doubling 2048 neighbor_exchange"},
    {IBCOLL_ALLGATHER, 2048,
     "recursive_doubling 4 bruck 8 recursive_doubling 16 bruck 32 recursive_doubling 256 bruck 512 recursive_doubling "
     "4096 neighbor_exchange"},
    {IBCOLL_ALLGATHER, 4096, "bruck 32 recursive_doubling 128 bruck 512 recursive_doubling 4096 neighbor_exchange"},
    {IBCOLL_ALLGATHER, 0,
     "recursive_doubling 2 bruck 8 recursive_doubling 16 bruck 512 recursive_doubling 4096 neighbor_exchange"},
    {IBCOLL_ALLGATHERV, 3, "ring 2048 recursive_doubling 4096 ring 8192 recursive_doubling"},
    {IBCOLL_ALLGATHERV, 8,
     "~ 256 neighbor_exchange 4096 ring 8192 neighbor_exchange 16384 bruck 262144 "
     "neighbor_exchange"},
    {IBCOLL_ALLGATHERV, 16, "~ 1024 bruck"},
    {IBCOLL_ALLGATHERV, 32, "~ 128 bruck 262144 ring"},
    {IBCOLL_ALLGATHERV, 64, "~ 256 bruck 8192 ring"},
    {IBCOLL_ALLGATHERV, 128, "~ 256 bruck 4096 ring"},
    {IBCOLL_ALLGATHERV, 256, "bruck 1024 neighbor_exchange 65536 ring"},
    {IBCOLL_ALLGATHERV, 512, "bruck 1024 ring"},
    {IBCOLL_ALLGATHERV, 1024, "bruck 512 ~ 1024 bruck 4096 neighbor_exchange 1048576 ring"},
    {IBCOLL_ALLGATHERV, 0, "bruck 4096 neighbor_exchange"},
    {IBCOLL_ALLTOALL, 3, "pairwise 32768 direct 262144 pairwise"},
    {IBCOLL_ALLTOALL, 8, "direct 524288 pairwise 1048576 direct"},
    {IBCOLL_ALLTOALL, 16, "direct"},
    {IBCOLL_ALLTOALL, 32, "direct 4 bruck:2 512 direct"},
    {IBCOLL_ALLTOALL, 64, "bruck:2 512 direct"},
    {IBCOLL_ALLTOALL, 256, "bruck:2 1024 direct 262144 pairwise"},
    {IBCOLL_ALLTOALL, 512, "bruck:2 1024 direct 32768 pairwise"},
    {IBCOLL_ALLTOALL, 1024, "bruck:2 512 direct 262144 pairwise"},
    {IBCOLL_ALLTOALL, 2048, "bruck:2 512 direct"},
    {IBCOLL_ALLTOALL, 4096, "bruck:2 1024 direct"},
    {IBCOLL_ALLTOALL, 0, "bruck:2 2048 direct"},
    {IBCOLL_ALLTOALLV, 4, "pairwise"},
    {IBCOLL_ALLTOALLV, 64, "direct"},
    {IBCOLL_ALLTOALLV, 128, "pairwise"},
    {IBCOLL_ALLTOALLV, 256, "direct"},
    {IBCOLL_ALLTOALLV, 1024, "pairwise"},
    {IBCOLL_ALLTOALLV, 0, "direct"},
    {IBCOLL_ALLREDUCE, 4, "ring 8 recursive_doubling 4096 ring 8192 recursive_doubling 16384 ring 262144 rabenseifner"},
    {IBCOLL_ALLREDUCE, 8, "ring 16 recursive_doubling 8192 rabenseifner"},
    {IBCOLL_ALLREDUCE, 16, "recursive_doubling 8192 rabenseifner"},
    {IBCOLL_ALLREDUCE, 32, "ring 64 recursive_doubling 4096 rabenseifner"},
    {IBCOLL_ALLREDUCE, 64, "ring 128 rabenseifner"},
    {IBCOLL_ALLREDUCE, 128, "recursive_doubling 262144 rabenseifner"},
    {IBCOLL_ALLREDUCE, 256, "~ 131072 recursive_doubling 262144 rabenseifner"},
    {IBCOLL_ALLREDUCE, 512, "~ 4096 rabenseifner"},
    {IBCOLL_ALLREDUCE, 2048, "~ 2048 recursive_doubling 16384 rabenseifner"},
    {IBCOLL_ALLREDUCE, 4096, "~ 2048 ring 4096 recursive_doubling 16384 rabenseifner"},
    {IBCOLL_ALLREDUCE, 0, "~ 2048 ring 16384 recursive_doubling 32768 rabenseifner"},
    {IBCOLL_GATHER, 4, "linear 4 binomial 32768 linear 65536 binomial 131072 linear"},
    {IBCOLL_GATHER, 8, "binomial 1024 linear 8192 binomial 32768 linear"},
    {IBCOLL_GATHER, 256, "binomial"},
    {IBCOLL_GATHER, 512, "binomial 2048 linear 8192 binomial"},
    {IBCOLL_GATHER, 0, "binomial"},
    {IBCOLL_GATHERV, 0, "linear"},
    {IBCOLL_SCATTER, 4, "linear"},
    {IBCOLL_SCATTER, 8, "binomial 2048 linear 4096 binomial 8192 linear"},
    {IBCOLL_SCATTER, 32, "binomial 16384 linear"},
    {IBCOLL_SCATTER, 64, "binomial 512 linear 8192 binomial 16384 linear"},
    {IBCOLL_SCATTER, 0, "binomial 512 linear"},
    {IBCOLL_SCATTERV, 0, "linear"},
    {IBCOLL_REDUCE, 4, "reduce_scatter_gather 8 binomial 16 ~ 32 linear 262144 ~"},
    {IBCOLL_REDUCE, 8, "binomial 4096 ~ 65536 binomial 262144 linear 524288 binomial 1048576 linear"},
    {IBCOLL_REDUCE, 0, "binomial"},
    {IBCOLL_REDUCE_SCATTER, 4, "ring 65536 recursive_halving 131072 ring"},
    {IBCOLL_REDUCE_SCATTER, 8, "~ 8 recursive_halving 262144 ring"},
    {IBCOLL_REDUCE_SCATTER, 32, "recursive_halving 262144 ring"},
    {IBCOLL_REDUCE_SCATTER, 64, "~ 64 recursive_halving 524288 ring"},
    {IBCOLL_REDUCE_SCATTER, 512, "~ 256 recursive_halving"},
    {IBCOLL_REDUCE_SCATTER, 4096, "~ 512 recursive_halving"},
    {IBCOLL_REDUCE_SCATTER, 0, "~ 1024 recursive_halving"},
    {IBCOLL_REDUCE_SCATTER_BLOCK, 4, "recursive_doubling 4 recursive_halving 131072 ~"},
    {IBCOLL_REDUCE_SCATTER_BLOCK, 8, "recursive_halving 8 recursive_doubling 32 recursive_halving 1048576 ~"},
    {IBCOLL_REDUCE_SCATTER_BLOCK, 16, "~ 4 recursive_halving 524288 ~ 4194304 recursive_halving"},
    {IBCOLL_REDUCE_SCATTER_BLOCK, 32, "~ 32 recursive_halving 524288 ~ 2097152 recursive_halving"},
    {IBCOLL_REDUCE_SCATTER_BLOCK, 0, "recursive_halving 4 ~ 16 recursive_halving 65536 ~ 262144 recursive_halving"},
    {IBCOLL_SCAN, 0, "linear"},
    {IBCOLL_EXSCAN, 0, "linear"},
};

// The same for operations that do not commute.
constexpr Row kOpenMpiInOrder[] = {
    {IBCOLL_ALLREDUCE, 4, "recursive_doubling 131072 ~"},
    {IBCOLL_ALLREDUCE, 8, "recursive_doubling"},
    {IBCOLL_ALLREDUCE, 16, "recursive_doubling 1048576 ~"},
    {IBCOLL_ALLREDUCE, 128, "recursive_doubling"},
    {IBCOLL_ALLREDUCE, 256, "~ 131072 recursive_doubling 524288 ~"},
    {IBCOLL_ALLREDUCE, 512, "~ 4096 recursive_doubling 524288 ~"},
    {IBCOLL_ALLREDUCE, 0, "~ 2048 recursive_doubling"},
    {IBCOLL_REDUCE, 4, "binomial 8 linear"},
    {IBCOLL_REDUCE, 8, "linear"},
    {IBCOLL_REDUCE, 16, "binomial 1024 linear 8192 binomial 16384 linear 262144 binomial"},
    {IBCOLL_REDUCE, 128, "binomial"},
    {IBCOLL_REDUCE, 256, "binomial 512 linear 1024 binomial"},
    {IBCOLL_REDUCE, 0, "binomial"},
    {IBCOLL_REDUCE_SCATTER, 0, "~"},
    {IBCOLL_REDUCE_SCATTER_BLOCK, 0, "~"},
    {IBCOLL_SCAN, 0, "linear"},
    {IBCOLL_EXSCAN, 0, "linear"},
};

std::string by_bytes(std::string_view names, uint64_t bytes) {
  while (true) {
    const size_t end = names.find(' ');
    const std::string_view name = names.substr(0, end);
    if (end == std::string_view::npos) return std::string(name);
    names.remove_prefix(end + 1);
    const size_t next = names.find(' ');
    if (bytes < std::stoull(std::string(names.substr(0, next)))) return std::string(name);
    names.remove_prefix(next + 1);
  }
}

bool is_power_of_two(int p) { return std::has_single_bit(static_cast<unsigned>(p)); }

// A vector with fewer elements than this is not split into a part for each rank of a power of two.
uint64_t least_elements(int p) { return std::bit_floor(static_cast<unsigned>(p)); }

// What ompi/mca/coll/base runs in place of an algorithm for which the ranks, or the elements, do not suffice.
std::string in_place_of(std::string name, ibcoll_collective_t collective, const Shape& shape) {
  if (name.ends_with(":p")) return fmt::format("{}:{}", name.substr(0, name.size() - 2), std::max(2, shape.p));
  const Collective& of = kCatalog[collective];
  if (name == "recursive_doubling" && !of.reduces() && !is_power_of_two(shape.p)) return "bruck";
  if (name == "neighbor_exchange" && shape.p % 2 != 0) return "ring";
  const uint64_t elements = shape.bytes / shape.element_bytes;
  if (collective == IBCOLL_ALLREDUCE && name == "ring" && elements < static_cast<uint64_t>(shape.p))
    return "recursive_doubling";
  if (collective == IBCOLL_ALLREDUCE && name == "rabenseifner" && elements < least_elements(shape.p)) return "~";
  if (name == "reduce_scatter_gather" && elements < least_elements(shape.p)) return "linear";
  return name;
}

std::string of_open_mpi(ibcoll_collective_t collective, const Shape& shape) {
  uint64_t bytes = shape.bytes;
  if (collective == IBCOLL_REDUCE_SCATTER) bytes = shape.total;
  if (collective == IBCOLL_ALLGATHERV) bytes = shape.total / static_cast<uint64_t>(shape.p);
  for (const Row& row : shape.commutative ? std::span<const Row>(kOpenMpi) : kOpenMpiInOrder) {
    if (row.collective != collective || (row.below > 0 && shape.p >= row.below)) continue;
    const std::string name = in_place_of(by_bytes(row.names, bytes), collective, shape);
    return name == "~" ? "" : name;
  }
  return "";
}

// maint/tuning/coll/mpir/generic.json of 4.0, where the size of a bcast is the whole message.
std::string of_mpich(ibcoll_collective_t collective, const Shape& shape, bool user_operation) {
  const int p = shape.p;
  const bool pow2 = is_power_of_two(p);
  const uint64_t bytes = shape.bytes;
  const bool enough = !user_operation && bytes / shape.element_bytes >= least_elements(p);
  switch (collective) {
    case IBCOLL_BARRIER:
      return "dissemination";
    case IBCOLL_BCAST:
      return p < 8 || bytes <= 12288 ? "binomial" : "scatter_allgather";
    case IBCOLL_ALLGATHER:
    case IBCOLL_ALLGATHERV:
      if (pow2) return shape.total < 524288 ? "recursive_doubling" : "ring";
      return shape.total < 81920 ? "bruck" : "ring";
    case IBCOLL_ALLTOALL:
      if (p >= 8 && bytes <= 256) return "bruck:2";
      return bytes <= 32768 ? "direct" : "pairwise";
    case IBCOLL_ALLTOALLV:
      return "direct";
    case IBCOLL_ALLREDUCE:
      return bytes > 8 && enough ? "rabenseifner" : "recursive_doubling";
    case IBCOLL_REDUCE:
      return bytes > 2048 && enough ? "reduce_scatter_gather" : "binomial";
    case IBCOLL_REDUCE_SCATTER:
    case IBCOLL_REDUCE_SCATTER_BLOCK:
      if (!shape.commutative) return "recursive_doubling";
      return shape.total < 524288 ? "recursive_halving" : "pairwise";
    case IBCOLL_GATHER:
    case IBCOLL_SCATTER:
      return "binomial";
    case IBCOLL_GATHERV:
    case IBCOLL_SCATTERV:
      return "linear";
    default:
      return "recursive_doubling";  // scan, exscan
  }
}

}  // namespace

const std::vector<std::string>& known_peers() {
  static const std::vector<std::string> all = {"openmpi", "mpich"};
  return all;
}

std::string peer_algorithm(const std::string& peer, ibcoll_collective_t collective, const Shape& shape,
                           bool user_operation) {
  return peer == "mpich" ? of_mpich(collective, shape, user_operation) : of_open_mpi(collective, shape);
}

}  // namespace ibcoll::simulator
