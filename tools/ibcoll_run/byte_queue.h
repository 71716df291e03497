// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/unique_fd.h"
#include "tools/ibcoll_run/event_loop.h"

namespace ibcoll::run {

// Writes to a file descriptor without ever blocking the loop, and queues what the other side does not take yet. The
// source of the bytes stops at full() and resumes at the next on_drained.
class ByteQueue {
 public:
  static constexpr size_t kFull = size_t{1} << 20;

  explicit ByteQueue(EventLoop& loop) : loop_(loop) {}
  ~ByteQueue();
  ByteQueue(const ByteQueue&) = delete;
  ByteQueue& operator=(const ByteQueue&) = delete;

  // For a pipe or socket that is this process's own: made non-blocking and closed in the end. Takes the place of one
  // before, and of what was queued for that.
  Status own(UniqueFd fd);
  // For standard output and the like. Their open file belongs to others as well, so its O_NONBLOCK stays as it is.
  Status borrow(int fd);

  void write(std::string_view bytes);
  // Closes once all is written.
  void close_when_written();

  bool full() const { return queued_ >= kFull; }
  bool empty() const { return queued_ == 0; }
  size_t queued() const { return queued_; }
  bool broken() const { return broken_; }  // nobody reads any more; what was queued is dropped
  int broken_reason() const { return broken_reason_; }

  std::function<void()> on_drained;         // after it was full: less than half of that is queued now
  std::function<void(size_t)> on_progress;  // this many bytes were written
  std::function<void()> on_broken;

 private:
  enum class Way {
    kWrite,      // write(2): the file does not block, or is one that never does
    kSend,       // send(2) with MSG_DONTWAIT
    kSmallWrite  // a blocking pipe: as much as poll(2) promises, which is PIPE_BUF
  };
  ssize_t write_some(const char* data, size_t bytes) const;
  size_t write_now(std::string_view bytes);  // how many bytes went
  void flush();
  void wait_for_room(bool wanted);
  void fail(int reason);
  void close();

  EventLoop& loop_;
  UniqueFd owned_;
  int fd_ = -1;
  Way way_ = Way::kWrite;
  bool watched_ = false;
  bool waiting_ = false;
  bool closing_ = false;
  bool broken_ = false;
  int broken_reason_ = 0;
  bool was_full_ = false;
  std::deque<std::string> chunks_;
  size_t sent_of_first_ = 0;
  size_t queued_ = 0;
};

}  // namespace ibcoll::run
