// SPDX-License-Identifier: BSD-3-Clause
// Measures what the link of a node carries, when the job starts. A device reports the speed of its hardware; a shaper,
// a virtual switch or a shared port after it may let through a tenth of that, and many virtual devices report nothing.
//
// One rank of each node requests bytes from a rank of the previous node, and sends to a rank of the next one, so all
// links are busy in both directions, as in a collective. It requests ahead, so that they stay busy: a token bucket
// fills in pauses. What the bucket lets through at once at the start does not count.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "runtime/transport/transport.h"

namespace ibcoll {

class LinkTrial {
 public:
  // The transport's only user meanwhile. `from` is timed; `to` times this rank; both are job ranks, and may be the
  // same.
  LinkTrial(Transport& transport, int from, int to);

  // Never blocks. True: nothing more to do, or the trial has failed.
  bool step();
  // Microseconds per byte, rounded, so that the same link gives the same value in most runs; 0: not known.
  double us_per_byte() const;
  // Ok, or which peer could not be reached.
  const Status& failure() const { return failure_; }

 private:
  static constexpr int kIntervals = 4;

  void ask();
  void answer();
  void take(const Event& event);
  void landed(uint64_t bytes);
  bool send(int peer, uint16_t kind, uint64_t bytes, std::span<const std::byte> payload);

  Transport& transport_;
  const int from_;
  const int to_;
  std::vector<std::byte> payload_;
  uint64_t asked_ = 0;   // bytes
  uint64_t landed_ = 0;  // of them
  uint64_t first_ = 0;   // bytes of the first message, and when it landed
  Time first_at_ = 0;
  std::array<Time, kIntervals + 1> marks_{};  // when what counts began to land, and the end of each interval
  double us_per_byte_ = 0;
  bool ended_ = false;      // this rank wants no more
  bool end_sent_ = false;   // `from` knows
  uint64_t requested_ = 0;  // by `to`, and not sent yet: bytes
  bool done_ = false;       // it wants no more
  Status failure_;
};

// The speed that a job assumes: what its devices report, or the link in the middle of those that were timed, of two the
// faster one, as what else happens on a machine makes links look slow. Devices that report a speed are believed unless
// that link carries less than half of it.
double believed_us_per_byte(const LinkModel& model, std::vector<double> timed);

}  // namespace ibcoll
