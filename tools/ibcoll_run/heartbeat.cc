// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/heartbeat.h"

#include <algorithm>
#include <cmath>

#include "tools/ibcoll_run/agent_channel.h"

namespace ibcoll::run {
namespace {

constexpr Heartbeat::Seconds kInterval{1};
constexpr int kFewestBeats = 10;  // a patience of seconds: still several beats, one of which may be late

}  // namespace

Heartbeat::~Heartbeat() { stop(); }

void Heartbeat::start(Seconds patience, std::function<void()> on_silence) {
  interval_ = std::min(kInterval, patience / kFewestBeats);
  most_silent_beats_ = static_cast<int>(std::ceil(patience / interval_));
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
  // What still waits there says as much once it goes, and an end that takes nothing must cost no memory.
  if (queue_.empty()) send_frame(queue_, {.message = Message::kAlive, .body = {}});
  if (excused_ || silent_beats_++ < most_silent_beats_) return;
  stop();
  on_silence_();
}

}  // namespace ibcoll::run
