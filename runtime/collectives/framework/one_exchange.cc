// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/one_exchange.h"

#include <algorithm>

#include "runtime/comm/comm.h"

namespace ibcoll {
namespace {

constexpr int kMostRanks = 16;  // a rank that is one of many may have to begin with those that have come

// ---------------------------------------------------------------- blocks

ConstBytes own_block(const Args& a, int rank, int) { return a.own(rank); }
ConstBytes block_for(const Args& a, int, int peer) { return a.send[peer]; }
ConstBytes whole_buffer(const Args& a, int, int) { return a.buffer(); }
Bytes block_from(const Args& a, int, int peer) { return a.recv[peer]; }
Bytes into_buffer(const Args& a, int, int) { return a.buffer(); }

void keep_own_block(const Args& a, int rank) { Comm::copy(a.recv[rank], a.own(rank)); }
void keep_block_for_itself(const Args& a, int rank) { Comm::copy(a.recv[rank], a.send[rank]); }
void keep_part_of_root(const Args& a, int rank) {
  if (!a.in_place) Comm::copy(a.buffer(), a.send[rank]);
}

// ---------------------------------------------------------------- tokens and operands

ConstBytes token(const Args&, int, int) {
  static constexpr std::byte kToken{0};
  return {&kToken, 1};
}
Bytes no_token(const Args&, int, int) { return {static_cast<std::byte*>(nullptr), 1}; }

ConstBytes operand(const Args& a, int, int) { return a.operand(); }
Bytes one_operand(const Args& a, int, int) { return {static_cast<std::byte*>(nullptr), a.bytes}; }

// Combines the operands of two ranks, in their order.
void combine(const Args& a, const std::byte* mine, const std::byte* theirs, int rank) {
  if (rank == 0)
    a.reduction.combine(mine, theirs, a.recv.base, a.count);
  else
    a.reduction.combine(theirs, mine, a.recv.base, a.count);
}
void combine_operands(const Args& a, int rank, const std::byte* theirs) {
  combine(a, a.operand().data(), theirs, rank);
}
void combine_blocks(const Args& a, int rank, const std::byte* theirs) { combine(a, a.send[rank].data(), theirs, rank); }
void keep_first(const Args& a, int, const std::byte* theirs) { a.reduction.single(a.recv.base, theirs, a.count); }
void keep_operand(const Args& a, int) { a.reduction.single(a.recv.base, a.operand().data(), a.count); }

OneExchange of_two(const Args& a, int rank) {
  const bool root = rank == a.root, lower = rank == 0;
  switch (a.collective) {
    case IBCOLL_BARRIER:
      return {0, 2, token, no_token};
    case IBCOLL_ALLREDUCE:
      return {0, 2, operand, one_operand, combine_operands};
    case IBCOLL_REDUCE:
      return root ? OneExchange{0, 2, nullptr, one_operand, combine_operands} : OneExchange{0, 2, operand};
    case IBCOLL_REDUCE_SCATTER:
    case IBCOLL_REDUCE_SCATTER_BLOCK:
      return a.in_place ? OneExchange() : OneExchange{0, 2, block_for, one_operand, combine_blocks};
    case IBCOLL_SCAN:
      return lower ? OneExchange{0, 2, operand, nullptr, nullptr, keep_operand}
                   : OneExchange{0, 2, nullptr, one_operand, combine_operands};
    case IBCOLL_EXSCAN:
      return lower ? OneExchange{0, 2, operand} : OneExchange{0, 2, nullptr, one_operand, keep_first};
    default:
      return {};
  }
}

OneExchange of_all(const Args& a, int rank, int p) {
  const bool root = rank == a.root;
  switch (a.collective) {
    case IBCOLL_BCAST:
      return root ? OneExchange{0, p, whole_buffer} : OneExchange{a.root, a.root + 1, nullptr, into_buffer};
    case IBCOLL_ALLGATHER:
    case IBCOLL_ALLGATHERV:
      return {0, p, own_block, block_from, nullptr, keep_own_block};
    case IBCOLL_ALLTOALL:
    case IBCOLL_ALLTOALLV:
      return a.in_place ? OneExchange() : OneExchange{0, p, block_for, block_from, nullptr, keep_block_for_itself};
    case IBCOLL_GATHER:
    case IBCOLL_GATHERV:
      return root ? OneExchange{0, p, nullptr, block_from, nullptr, keep_own_block}
                  : OneExchange{a.root, a.root + 1, own_block};
    case IBCOLL_SCATTER:
    case IBCOLL_SCATTERV:
      return root ? OneExchange{0, p, block_for, nullptr, nullptr, keep_part_of_root}
                  : OneExchange{a.root, a.root + 1, nullptr, into_buffer};
    default:
      return {};
  }
}

int most_ranks(AsExchange as, const Args& a) {
  switch (as) {
    case AsExchange::kNever:
      return 0;
    case AsExchange::kOfTwo:
      return 2;
    case AsExchange::kOfRadix:
      return static_cast<int>(std::min<uint64_t>(a.parameter, kMostRanks));
    case AsExchange::kOfAll:
      return kMostRanks;
  }
  return 0;
}

// An operation of the program may use its operands as it likes, and one that does not commute may take more messages.
bool is_simple(const Reduction& reduction) { return !reduction.op->user_defined() && reduction.op->commutative; }

}  // namespace

OneExchange find_one_exchange(AsExchange as, const Args& args, int rank, int p, uint64_t most) noexcept {
  if (p < 2 || p > most_ranks(as, args)) return {};
  if (kCatalog[args.collective].reduces() && !is_simple(args.reduction)) return {};
  OneExchange found = p == 2 ? of_two(args, rank) : OneExchange();
  if (!found) found = of_all(args, rank, p);
  for (int peer = found.first; peer < found.end; ++peer)
    if (peer != rank && ((found.out && found.out(args, rank, peer).size() > most) ||
                         (found.in && found.in(args, rank, peer).size() > most)))
      return {};
  return found;
}

}  // namespace ibcoll
