// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/byte_queue.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ibcoll::run {

ByteQueue::~ByteQueue() { close(); }

Status ByteQueue::own(UniqueFd fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return error(IBCOLL_ERR_SYSTEM, "fcntl: {}", std::strerror(errno));
  }
  close();
  chunks_.clear();
  queued_ = sent_of_first_ = 0;
  closing_ = broken_ = was_full_ = false;
  owned_ = std::move(fd);
  fd_ = owned_.get();
  return {};
}

Status ByteQueue::borrow(int fd) {
  struct stat about {};
  if (::fstat(fd, &about) != 0) return error(IBCOLL_ERR_SYSTEM, "file descriptor {}: {}", fd, std::strerror(errno));
  fd_ = fd;
  if ((::fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) return {};  // the first write tells
  if (S_ISSOCK(about.st_mode)) {
    way_ = Way::kSend;
  } else if (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode)) {
    // A second open file of the same pipe or terminal has a flag of its own.
    owned_.reset(::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    if (owned_) {
      fd_ = owned_.get();
    } else {
      way_ = Way::kSmallWrite;
    }
  }
  return {};
}

ssize_t ByteQueue::write_some(const char* data, size_t bytes) const {
  if (way_ == Way::kSend) return ::send(fd_, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (way_ == Way::kSmallWrite) {
    pollfd entry{fd_, POLLOUT, 0};
    if (::poll(&entry, 1, 0) == 0) {
      errno = EAGAIN;
      return -1;
    }
    bytes = std::min<size_t>(bytes, PIPE_BUF);
  }
  return ::write(fd_, data, bytes);
}

size_t ByteQueue::write_now(std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = write_some(bytes.data() + done, bytes.size() - done);
    if (written >= 0) {
      done += static_cast<size_t>(written);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      fail(errno);
      return bytes.size();
    }
  }
  if (done > 0 && on_progress) on_progress(done);
  return done;
}

void ByteQueue::write(std::string_view bytes) {
  if (broken_ || fd_ < 0) return;
  if (empty()) bytes.remove_prefix(write_now(bytes));
  if (bytes.empty() || broken_) return;
  if (chunks_.empty() || chunks_.back().size() + bytes.size() > 65536) chunks_.emplace_back();
  chunks_.back() += bytes;
  queued_ += bytes.size();
  was_full_ = was_full_ || full();
  wait_for_room(true);
}

void ByteQueue::flush() {
  while (!chunks_.empty() && !broken_) {
    const std::string_view rest = std::string_view(chunks_.front()).substr(sent_of_first_);
    const size_t done = write_now(rest);
    if (broken_) return;
    queued_ -= done;
    sent_of_first_ += done;
    if (done < rest.size()) break;
    chunks_.pop_front();
    sent_of_first_ = 0;
  }
  if (empty()) wait_for_room(false);
  if (was_full_ && queued_ < kFull / 2) {
    was_full_ = false;
    if (on_drained) on_drained();
  }
  if (empty() && closing_) close();
}

void ByteQueue::wait_for_room(bool wanted) {
  if (wanted == waiting_) return;
  waiting_ = wanted;
  if (watched_) {
    loop_.change(fd_, wanted ? uint32_t{EPOLLOUT} : 0);
    return;
  }
  const Status status = loop_.watch(fd_, EPOLLOUT, [this](uint32_t) { flush(); });
  if (status.ok()) {
    watched_ = true;
  } else {
    fail(EIO);  // a file that cannot be waited for does not answer EAGAIN either
  }
}

void ByteQueue::close_when_written() {
  closing_ = true;
  if (empty()) close();
}

void ByteQueue::fail(int reason) {
  broken_ = true;
  broken_reason_ = reason;
  chunks_.clear();
  queued_ = 0;
  close();
  if (on_broken) on_broken();
}

void ByteQueue::close() {
  if (watched_) loop_.forget(fd_);
  watched_ = waiting_ = false;
  fd_ = -1;
  owned_.reset();
}

}  // namespace ibcoll::run
