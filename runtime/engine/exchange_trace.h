// SPDX-License-Identifier: BSD-3-Clause
// The trace of one collective on one rank: when its peers were served, and what this rank published and waited for in
// the node window. Costs one test of a flag for each event while it is off.
#pragma once

#include <cstdint>

#include "runtime/comm/comm.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

class Engine;
class ExchangeState;
class TraceBuffer;
struct TracedCall;

// The times of the messages between this rank and one peer. 0: not yet.
struct PeerTimes {
  Time begun_at = 0;   // the first byte was handed to the transport
  Time sent_at = 0;    // the source of the last one was reusable
  Time landed_at = 0;  // the last message landed
  bool any() const noexcept { return begun_at != 0 || landed_at != 0; }
};

class ExchangeTrace {
 public:
  // `window`: nullptr when no two ranks of the team share a node.
  ExchangeTrace(Engine& engine, NodeWindow* window) noexcept : engine_(engine), window_(window) {}

  void enable(bool on) noexcept;
  bool enabled() const noexcept { return enabled_; }
  // A new run begins.
  void reset() noexcept {
    if (enabled_) [[unlikely]]
      node_ = {};
  }

  // ---- messages

  void begun(PeerTimes& times) noexcept {
    if (enabled_) [[unlikely]]
      note_begun(times);
  }
  // A put whose source is not reusable yet calls this twice, and the second call counts.
  void sent(PeerTimes& times) noexcept {
    if (enabled_) [[unlikely]]
      note_sent(times);
  }
  void landed(PeerTimes& times) noexcept {
    if (enabled_) [[unlikely]]
      note_landed(times);
  }

  // ---- the node window

  // Before this rank publishes.
  void publishes() noexcept {
    if (enabled_) [[unlikely]]
      note_published();
  }
  // Called while the trace is on: no earlier collective uses the window, and the task waits for other ranks there.
  void suspended(const Wait& wait) noexcept;
  // The task is in such a wait.
  bool in_wait() const noexcept { return node_.suspended_at != 0; }
  // The wait was ended by what this local rank published; -1: by a message.
  void resumed(int local) noexcept;

  // ---- results

  // Adds the call, which has its arrival, and what was noted of its peers and of the node window.
  void add_to(TraceBuffer& buffer, TracedCall call, const ExchangeState& state) const noexcept;

 private:
  // The times of the node window. 0: not yet.
  struct NodeTimes {
    Time published_at = 0;  // the first part, or step
    Time suspended_at = 0;  // it is in a wait of the step that counts from then; 0: in none
    uint64_t step = 0;      // of the last wait
    Time step_from = 0;     // when this rank had published in it, or began to wait
    Time waited_from = 0;   // the waits of the step in which they took longest
    Time waited_until = 0;
    int waited_for = 0;  // local rank that ended the last of them
  };

  void add_node_to(TracedCall& call) const noexcept;
  void note_begun(PeerTimes& times) noexcept;
  void note_sent(PeerTimes& times) noexcept;
  void note_landed(PeerTimes& times) noexcept;
  void note_published() noexcept;

  Engine& engine_;
  NodeWindow* window_;
  bool enabled_ = false;
  NodeTimes node_;
};

}  // namespace ibcoll
