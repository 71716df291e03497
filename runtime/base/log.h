// SPDX-License-Identifier: BSD-3-Clause
// Log lines on stderr, each written by one write(2) so that lines of many ranks never mix:
//   ibcoll rank 3: warning: ucx: interface eth0 has a public address ...
// IBCOLL_LOG=error|warn|info|debug sets the level (default warn).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <new>
#include <string_view>

#include "runtime/base/status.h"

namespace ibcoll {

enum class LogLevel { kError = 0, kWarning, kInfo, kDebug };

IBCOLL_MODULE_API bool log_enabled(LogLevel level) noexcept;
IBCOLL_MODULE_API void log_line(LogLevel level, std::string_view text) noexcept;
void set_log_level(LogLevel level) noexcept;
// Error lines that this process has written so far.
uint64_t error_lines() noexcept;
void set_log_rank(int rank) noexcept;  // -1: no rank in the prefix

// Where there is no memory for the line, the format alone is written.
template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) noexcept {
  if (!log_enabled(level)) return;
  try {
    log_line(level, fmt::format(format, std::forward<Args>(args)...));
  } catch (const std::bad_alloc&) {
    const fmt::string_view bare = format;
    log_line(level, {bare.data(), bare.size()});
  }
}

}  // namespace ibcoll
