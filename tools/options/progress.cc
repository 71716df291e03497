// SPDX-License-Identifier: BSD-3-Clause
#include "tools/options/progress.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "tools/terminal.h"

namespace ibcoll {
namespace {

// The columns of the terminal that standard error leads to; 0: none, or one on which lines cannot be overwritten.
// ibcoll_run names the pipe that leads there; a shell may have redirected standard error since.
size_t columns_of_terminal() {
  if (::isatty(STDERR_FILENO) == 1) return overwrites_lines(STDERR_FILENO) ? terminal_size(STDERR_FILENO).ws_col : 0;
  struct stat status {};
  const char* const given = std::getenv("IBCOLL_RUN_TERMINAL");
  size_t columns = 0;
  unsigned long long pipe = 0;
  const bool is_named = given != nullptr && std::sscanf(given, "%zu:%llu", &columns, &pipe) == 2 &&
                        ::fstat(STDERR_FILENO, &status) == 0 && status.st_ino == pipe;
  return is_named ? columns : 0;
}

}  // namespace

ProgressLine::ProgressLine(bool shown) : columns_(shown ? columns_of_terminal() : 0) {
  if (columns_ > 0) thread_ = std::thread([this] { run(); });
}

ProgressLine::~ProgressLine() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    erase();
  }
  changed_.notify_one();
  thread_.join();
}

void ProgressLine::show(std::string text) {
  const std::lock_guard lock(mutex_);
  text_ = std::move(text);
}

void ProgressLine::clear() {
  const std::lock_guard lock(mutex_);
  text_.clear();
  erase();
}

// ibcoll_run passes on a line with this end (erase to the end of the line, carriage return) at once, and overwrites it
// with the next one. A text that fills the last column would begin another line on some terminals.
void ProgressLine::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::seconds(1), [this] { return ending_; })) {
    if (text_.empty()) continue;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
    const std::string time = fmt::format(", {:.0f} s", elapsed.count());
    const size_t room = columns_ - std::min(columns_, time.size() + 1);
    fmt::print(stderr, "{}{}\033[K\r", text_.substr(0, room), time);
    visible_ = true;
  }
}

void ProgressLine::erase() {
  if (std::exchange(visible_, false)) fmt::print(stderr, "\033[K\r");
}

}  // namespace ibcoll
