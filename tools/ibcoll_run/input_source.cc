// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/input_source.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

namespace ibcoll::run {
namespace {

using namespace std::chrono_literals;

constexpr auto kBackgroundPause = 300ms;

}  // namespace

InputSource::~InputSource() {
  loop_.cancel(retry_);
  if (waits_) loop_.forget(fd_);
}

// Another reader of the same pipe or terminal may have taken the input that the loop saw. Reading must not block then,
// so this is a second open file, with an O_NONBLOCK of its own.
void InputSource::open() {
  struct stat about {};
  if (::fstat(STDIN_FILENO, &about) != 0) return;
  socket_ = S_ISSOCK(about.st_mode);
  if (!S_ISFIFO(about.st_mode) && ::isatty(STDIN_FILENO) == 0) return;
  own_.reset(::open("/proc/self/fd/0", O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (own_) fd_ = own_.get();  // else of another user's terminal
}

long InputSource::read_some(char* to, size_t bytes) const {
  return socket_ ? ::recv(fd_, to, bytes, MSG_DONTWAIT) : ::read(fd_, to, bytes);
}

void InputSource::start() {
  // A job in the background of a shell must not be stopped because it reads the terminal: the read fails with EIO then.
  ::signal(SIGTTIN, SIG_IGN);
  open();
  const Status status = loop_.watch(fd_, EPOLLIN, [this](uint32_t) { read_once(); });
  waits_ = status.ok();
  if (status.ok()) return;
  if (status.code() != IBCOLL_ERR_UNSUPPORTED) {  // closed: rank 0 sees the end of its input at once
    end();
  } else {
    read_always_ready();
  }
}

void InputSource::read_always_ready() {
  while (!ended_ && room_ > 0) read_once();
}

void InputSource::read_once() {
  std::array<char, 16384> buffer;
  const long got = read_some(buffer.data(), std::min(room_, buffer.size()));
  if (got > 0) {
    room_ -= static_cast<size_t>(got);
    host_.send_input({buffer.data(), static_cast<size_t>(got)});
    if (room_ == 0 && waits_) loop_.change(fd_, 0);
    return;
  }
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got < 0 && errno == EIO && waits_ && ::isatty(fd_) == 1) {
    loop_.change(fd_, 0);
    loop_.cancel(retry_);
    retry_ = loop_.after(kBackgroundPause, [this] { loop_.change(fd_, EPOLLIN); });
    return;
  }
  end();
}

void InputSource::end() {
  ended_ = true;
  if (waits_) loop_.forget(fd_);
  waits_ = false;
  host_.send_input({});
}

void InputSource::taken(size_t bytes) {
  room_ += bytes;
  if (ended_) return;
  if (waits_) {
    loop_.change(fd_, EPOLLIN);
  } else {
    // Later: this is called from within the queue that took the bytes.
    loop_.cancel(retry_);
    retry_ = loop_.after(0s, [this] { read_always_ready(); });
  }
}

}  // namespace ibcoll::run
