// SPDX-License-Identifier: BSD-3-Clause
// The signs that one peer is alive, until when it has to answer, and whether it is lost. Times of the steady clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "runtime/transport/transport.h"

namespace ibcoll::verbs {

class Liveness {
 public:
  static constexpr Time kQuiet = 1'000'000'000;  // without an answer, after which its device is asked for one
  static constexpr uint32_t kMostAttempts = 16;  // to connect, while nothing comes through

  // ---- its device
  void answered() { heard_ = true; }
  void connected(Time time) {
    last_heard_ = connected_at_ = time;
    first_asked_ = answer_by_ = 0;
  }
  // Notes whether the device has answered since the last look. A connection that has held for `retry_time` counts as
  // one that works.
  void look(Time time, Time retry_time) {
    if (!std::exchange(heard_, false)) return;
    last_heard_ = time;
    first_asked_ = 0;
    if (time - connected_at_ > retry_time) attempts_ = 0;
  }
  bool is_quiet(Time time) const { return time - std::max(last_heard_, last_asked_) >= kQuiet; }
  bool is_asked() const { return first_asked_ != 0; }
  bool unanswered_for(Time time, Time retry_time) const { return is_asked() && time - first_asked_ > retry_time; }
  void ask(Time time) {
    if (first_asked_ == 0) first_asked_ = time;
  }
  void asked(Time time) { last_asked_ = time; }

  // ---- its process: until when it has to answer a greeting. 0: it may compute for as long as it likes.
  bool has_deadline() const { return answer_by_ != 0; }
  bool is_overdue(Time time) const { return has_deadline() && time > answer_by_; }
  void answer_by(Time time) { answer_by_ = time; }
  // No effect where there is no deadline, or a later one.
  void may_take_until(Time time) {
    if (has_deadline()) answer_by_ = std::max(answer_by_, time);
  }

  // ---- attempts to connect anew. False: too many, while `come_through` messages of both directions got no more.
  bool may_reconnect(uint64_t come_through) {
    if (come_through > attempted_after_) attempts_ = 0;
    attempted_after_ = come_through;
    return ++attempts_ <= kMostAttempts;
  }
  uint32_t attempts() const { return attempts_; }

  // ---- its end
  void leave() { left_ = true; }
  bool left() const { return left_; }  // it said that it closes
  // For good, whatever comes after; the connection may still be draining. `lack`: lack_of() its report.
  void lose(std::string why, ibcoll_status_t lack) {
    lost_ = true;
    failure_ = std::move(why);
    lack_ = lack;
  }
  bool lost() const { return lost_; }
  const std::string& failure() const { return failure_; }
  ibcoll_status_t lack() const { return lack_; }
  // True once.
  bool begin_report() { return !std::exchange(reported_, true); }

 private:
  bool heard_ = false;    // since the last look
  Time last_heard_ = 0;   // when that look was
  Time first_asked_ = 0;  // when it was first asked for an answer since; 0: it was not
  Time last_asked_ = 0;
  Time connected_at_ = 0;
  Time answer_by_ = 0;
  uint32_t attempts_ = 0;
  uint64_t attempted_after_ = 0;
  bool left_ = false, lost_ = false, reported_ = false;
  std::string failure_;  // the text of kPeerFailed
  ibcoll_status_t lack_ = IBCOLL_OK;
};

}  // namespace ibcoll::verbs
