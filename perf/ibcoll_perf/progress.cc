// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/progress.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace ibcoll::perf {
namespace {

// ibcoll_run names the pipe that leads there; a shell may have redirected standard error since.
bool leads_to_a_terminal() {
  if (::isatty(STDERR_FILENO) == 1) return true;
  struct stat status {};
  const char* const pipe = std::getenv("IBCOLL_RUN_TERMINAL");
  return pipe != nullptr && ::fstat(STDERR_FILENO, &status) == 0 && std::to_string(status.st_ino) == pipe;
}

}  // namespace

Progress::Progress(bool shown) {
  if (shown && leads_to_a_terminal()) thread_ = std::thread([this] { run(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    erase();
  }
  changed_.notify_one();
  thread_.join();
}

void Progress::show(std::string text) {
  const std::lock_guard lock(mutex_);
  text_ = std::move(text);
}

void Progress::clear() {
  const std::lock_guard lock(mutex_);
  text_.clear();
  erase();
}

// ibcoll_run passes on a line with this end (erase to the end of the line, carriage return) at once, and overwrites it
// with the next one.
void Progress::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::seconds(1), [this] { return ending_; })) {
    if (text_.empty()) continue;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
    fmt::print(stderr, "{}, {:.0f} s\033[K\r", text_, elapsed.count());
    visible_ = true;
  }
}

void Progress::erase() {
  if (std::exchange(visible_, false)) fmt::print(stderr, "\033[K\r");
}

}  // namespace ibcoll::perf
