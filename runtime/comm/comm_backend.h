// SPDX-License-Identifier: BSD-3-Clause
// The backend carries out the communication of one collective on one rank; all Comms of the collective share it. An
// interface, so that algorithms and Comm do not know the engine, which implements it (runtime/engine/exchange.h).
#pragma once

#include <cstdint>

#include "runtime/base/arena.h"
#include "runtime/base/buffer.h"
#include "runtime/base/status.h"
#include "runtime/comm/task.h"

namespace ibcoll {

// The event that a suspended task waits for.
enum class WaitKind : uint8_t {
  kNone,
  // messages
  kReady,
  kArrival,
  kReceived,
  kReceivedFrom,
  kLanding,
  kFlushed,
  // no event ends these, they have to be polled
  kPassed,
  // flags in the node window
  kStep,
  kSoleStep,
  kOwnStep,
  kPublished,
  kAllPublished,
  kPartOrLanding
};
constexpr bool is_polled(WaitKind kind) noexcept { return kind >= WaitKind::kPassed; }
constexpr bool polls_window(WaitKind kind) noexcept { return kind >= WaitKind::kStep; }

struct Wait {
  WaitKind kind = WaitKind::kNone;
  int peer = -1;  // team rank, or a rank of the node window
  // Bytes (of kReceivedFrom: that may be missing), puts that may be left, passes, parts of a step, or the address of
  // parts().
  uint64_t value = 0;
  // How many parts kPartOrLanding awaits of each local rank.
  const uint32_t* parts() const noexcept { return reinterpret_cast<const uint32_t*>(value); }
};

// One copy from the private memory of a local rank.
struct MemoryRead {
  int local;
  uint64_t address;  // in that process
  Bytes into;
  Wait wait = {};       // until the owner has sent the bytes
  bool failed = false;  // and so has the collective
};

// Ranks are team ranks. `called`: the rank in the Comm that an algorithm has used, which is what it gets back.
class CommBackend {
 public:
  CommBackend(const CommBackend&) = delete;
  CommBackend& operator=(const CommBackend&) = delete;

  // Its memory lasts as long as the collective.
  Arena& arena() noexcept { return arena_; }
  CallStack& stack() noexcept { return stack_; }
  // The digest of the call.
  uint32_t signature() const noexcept { return signature_; }

  // ---- messages: see Comm

  virtual void announce(int peer, Bytes into, int called) noexcept = 0;
  virtual void put(int peer, ConstBytes piece, uint64_t total) noexcept = 0;
  virtual void serve(int peer, uint64_t bytes, int called) noexcept = 0;
  virtual void watch(int peer, int called) noexcept = 0;
  virtual bool moves_meanwhile(int peer) noexcept = 0;

  // ---- waits

  virtual bool satisfied(const Wait& wait) noexcept = 0;
  virtual void suspend(const Wait& wait) noexcept = 0;
  // Of the engine over its transports, since it was made.
  virtual uint64_t passes() const noexcept = 0;
  // Once such a wait is satisfied.
  virtual int take_arrival() noexcept = 0;
  virtual int take_landing() noexcept = 0;
  virtual int take_part_or_landing(const Wait& wait) noexcept = 0;

  // ---- node

  virtual void lend(ConstBytes memory) noexcept = 0;
  // True: the bytes were read, or the collective has failed. False: the owner was asked to send them; read.wait is for
  // that.
  virtual bool begin_read(MemoryRead& read) noexcept = 0;
  // This rank is about to publish in the node window, which wants notice of that. False: the collective has failed.
  virtual bool before_publication() noexcept = 0;
  virtual void copy_when_idle(Bytes to, ConstBytes from) noexcept = 0;

  // ---- failures

  virtual void fail(Status status) noexcept = 0;
  virtual void mismatch(int peer, uint64_t theirs, uint64_t mine, const char* what) noexcept = 0;
  virtual bool failed() const noexcept = 0;

 protected:
  // `arena_bytes`, `long_blocks`: see Arena.
  CommBackend(uint32_t signature, size_t arena_bytes, LongBlocks* long_blocks) noexcept
      : signature_(signature), arena_(arena_bytes, long_blocks) {}
  ~CommBackend() = default;
  // The memory of the Comms that were made is going to be reused.
  void forget_comms() noexcept { on_node_ = leaders_ = nullptr; }

  uint32_t signature_;
  Arena arena_;
  CallStack stack_;

 private:
  friend class Comm;
  Comm* on_node_ = nullptr;  // made when first asked for
  Comm* leaders_ = nullptr;
};

}  // namespace ibcoll
