// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/heartbeat.h"

#include <algorithm>
#include <cmath>

#include "tools/ibcoll_run/agent_channel.h"

namespace ibcoll::run {
namespace {

constexpr Heartbeat::Seconds kInterval{1};
constexpr int kFewestBeats = 10;  // in a short timeout, too: one of them may be late

}  // namespace

Heartbeat::~Heartbeat() { stop(); }

void Heartbeat::start(Seconds timeout, std::function<void()> on_silence) {
  interval_ = std::min(kInterval, timeout / kFewestBeats);
  most_silent_beats_ = static_cast<int>(std::ceil(timeout / interval_));
  on_silence_ = std::move(on_silence);
  silent_beats_ = 0;
  beat();
}

void Heartbeat::stop() {
  loop_.cancel(timer_);
  timer_ = 0;
}

void Heartbeat::heard() {
  silent_beats_ = 0;
  excused_ = false;
}

void Heartbeat::excuse() { excused_ = true; }

void Heartbeat::beat() {
  timer_ = loop_.after(interval_, [this] { beat(); });
  // Bytes that are still queued will serve as a sign of life, and an end that reads nothing must cost no memory.
  if (queue_.empty()) send_frame(queue_, {.message = Message::kAlive, .body = {}});
  if (excused_ || silent_beats_++ < most_silent_beats_) return;
  stop();
  on_silence_();
}

}  // namespace ibcoll::run
