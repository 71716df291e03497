// SPDX-License-Identifier: BSD-3-Clause
// Round-optimal schedules on circulant graphs: a broadcast of n blocks to p ranks in n - 1 + q rounds, q = ceil(lg p),
// the least possible where a rank sends one block and receives one in a round. Reversed it is a reduction; played for
// all roots at once, an allgather.
// Source: Traff, "(Poly)Logarithmic Time Construction of Round-optimal n-Block Broadcast Schedules for Broadcast and
// irregular Allgather in MPI", 2022 (arXiv 2205.10072), and "Optimal, Non-pipelined Reduce-scatter and Allreduce
// Algorithms", 2024.
//
// Ranks count from the root: r stands for (rank - root) mod p. In round i, with k = i mod q, rank r sends to r +
// skip(k) and receives from r - skip(k), mod p. Its receive schedule says which block it receives. It sends the block
// that the receiver's schedule says.
#pragma once

#include <cstdint>

namespace ibcoll {

// The receive schedules of all ranks for one phase of q rounds: p q bytes.
class CirculantTable {
 public:
  static constexpr int kMostRounds = 31;  // ceil(lg p)

  // The table of p ranks: made at the first call, in O(p lg p), and kept until the process ends, for all teams of this
  // size. Takes no lock. nullptr: no memory.
  static const CirculantTable* of(int p) noexcept;

  CirculantTable(const CirculantTable&) = delete;
  CirculantTable& operator=(const CirculantTable&) = delete;

  int p() const noexcept { return p_; }
  int q() const noexcept { return q_; }
  // Distinct, rising with k; skip(q()) = p.
  int skip(int k) const noexcept { return skip_[k]; }
  // Which block rank r gets in round k of the first phase; in the f-th one after it, that number + f q. Not for the
  // root.
  int received(int r, int k) const noexcept { return blocks_[static_cast<int64_t>(r) * q_ + k]; }
  // Which block it sends, likewise; the root, if it receives itself, nothing.
  int sent(int r, int k) const noexcept {
    const int to = r + skip_[k];
    return received(to < p_ ? to : to - p_, k);
  }

 private:
  CirculantTable(int p, int8_t* blocks) noexcept;
  static CirculantTable* make(int p) noexcept;

  int p_;
  int q_;
  int skip_[kMostRounds + 1];
  int8_t* blocks_;
  CirculantTable* next_ = nullptr;  // of another size
};

// One round of a broadcast of n blocks. Ranks are counted from the root; a block of -1 is none.
struct CirculantRound {
  const CirculantTable& table;
  int64_t blocks;  // n
  int k;           // the round's place in its phase
  int skip;        // rank r sends to r + skip and receives from r - skip
  int64_t later;   // than in the first phase

  int64_t received(int r) const noexcept { return r == 0 ? -1 : block(table.received(r, k)); }
  int64_t sent(int r) const noexcept { return r + skip == table.p() ? -1 : block(table.sent(r, k)); }

 private:
  int64_t block(int in_first_phase) const noexcept {
    const int64_t block = in_first_phase + later;
    return block < 0 ? -1 : block < blocks ? block : blocks - 1;
  }
};

// All of them: count() rounds, of which the k of every q in a row are different.
class CirculantRounds {
 public:
  CirculantRounds(const CirculantTable& table, int64_t n) noexcept
      : table_(table), n_(n), q_(table.q()), left_out_(q_ > 0 ? (q_ - (n - 1) % q_) % q_ : 0) {}

  int64_t count() const noexcept { return q_ > 0 ? n_ - 1 + q_ : 0; }
  CirculantRound operator[](int64_t round) const noexcept {
    const int64_t i = round + left_out_;
    const int k = static_cast<int>(i % q_);
    return {table_, n_, k, table_.skip(k), i - k - left_out_};
  }

 private:
  const CirculantTable& table_;
  int64_t n_;
  int64_t q_;
  int64_t left_out_;  // rounds of the first phase
};

class Comm;
// The table of the Comm's size. nullptr: the collective has failed; co_return.
const CirculantTable* circulant_table(Comm& c) noexcept;

}  // namespace ibcoll
