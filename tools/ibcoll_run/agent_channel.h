// SPDX-License-Identifier: BSD-3-Clause
// The frames between the launcher and the agent of a remote host, through the remote shell's standard streams.
//   agent -> launcher   kGreeting, preceded by whatever the remote shell prints; then frames
//   launcher -> agent   frames, the job first
// The end of either stream ends the ranks, and so does silence (heartbeat.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "tools/ibcoll_run/byte_queue.h"
#include "tools/ibcoll_run/host.h"

namespace ibcoll::run {

// The bytes around the text do not occur in what shells print; versions must be equal.
inline constexpr std::string_view kGreeting{"\0\1ibcoll agent 6\2\n", 18};

enum class Message : uint32_t {
  // to the agent
  kJob = 1,   // pack_job()
  kSignal,    // value: number
  kKillRank,  // rank
  kResize,    // value: rows << 16 | columns, neither above 65535
  kAsk,
  kPause,  // value: 1 pause, 0 resume
  kInput,  // bytes; none: the end
  // to the launcher
  kStarted,     // rank, value: pid
  kExited,      // rank, value: status, or 256 + signal
  kOutput,      // rank, value: stream, bytes
  kInputTaken,  // value: bytes
  kSays,        // text
  kFailed,      // value: exit code, text
  kFinished,
  // to either: a sign of life
  kAlive,
};

struct AgentFrame {
  Message message{};
  int32_t rank = 0;
  int32_t value = 0;
  std::string_view body;  // valid until the reader takes in more
};

void send_frame(ByteQueue& queue, const AgentFrame& frame);

// Cuts a byte stream into frames.
class AgentFrameReader {
 public:
  void add(std::string_view bytes);
  // False: not a whole frame yet. INVALID_ARGUMENT: not the stream of an agent.
  Result<bool> next(AgentFrame& frame);

 private:
  std::string buffer_;
  size_t taken_ = 0;
};

// MessagePack, because arguments and variables are bytes, not always the UTF-8 that JSON text wants.
std::string pack_job(const HostJob& job);
Result<HostJob> unpack_job(std::string_view bytes);

}  // namespace ibcoll::run
