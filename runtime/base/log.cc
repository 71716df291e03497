// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/base/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace ibcoll {
namespace {

std::atomic<LogLevel> level_in_force{LogLevel::kWarning};
std::atomic<int> rank_in_prefix{-1};
std::atomic<uint64_t> error_lines_written{0};

const char* level_name(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::kError:
      return "error";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kDebug:
      return "debug";
  }
  return "?";
}

// Up to PIPE_BUF bytes the kernel takes a write whole; only a longer line can come here twice.
void write_all(const char* data, size_t bytes) noexcept {
  while (bytes > 0) {
    const ssize_t written = ::write(STDERR_FILENO, data, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nowhere left to complain
    data += written;
    bytes -= static_cast<size_t>(written);
  }
}

}  // namespace

bool log_enabled(LogLevel level) noexcept { return level <= level_in_force.load(std::memory_order_relaxed); }

void set_log_level(LogLevel level) noexcept { level_in_force.store(level, std::memory_order_relaxed); }

void set_log_rank(int rank) noexcept { rank_in_prefix.store(rank, std::memory_order_relaxed); }

uint64_t error_lines() noexcept { return error_lines_written.load(std::memory_order_relaxed); }

void log_line(LogLevel level, std::string_view text) noexcept {
  if (level == LogLevel::kError) error_lines_written.fetch_add(1, std::memory_order_relaxed);
  const int saved_errno = errno;  // a caller may log before it looks at errno
  while (text.ends_with('\n')) text.remove_suffix(1);
  const int rank = rank_in_prefix.load(std::memory_order_relaxed);
  try {
    fmt::memory_buffer line;  // 500 bytes on the stack; only longer lines allocate
    // fmt::format_to() would compile all of {fmt} again here.
    const auto append = [&line](std::string_view part) { line.append(part); };
    append("ibcoll");
    if (rank >= 0) {
      append(" rank ");
      append(fmt::format_int(rank).c_str());
    }
    append(": ");
    append(level_name(level));
    append(": ");
    append(text);
    append("\n");
    write_all(line.data(), line.size());
  } catch (...) {
    write_all(text.data(), text.size());
    write_all("\n", 1);
  }
  errno = saved_errno;
}

}  // namespace ibcoll
