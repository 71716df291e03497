// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/watch.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>
#include <string>

#include "runtime/machine/memory_limit.h"

namespace ibcoll::simulator {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kRankBytes = 6500;            // of a rank with two or three peers
constexpr uint64_t kReserve = 256 << 20;         // that a running simulation leaves to others
constexpr std::chrono::milliseconds kEach{200};  // between two looks at memory

std::atomic<bool> ended_by_user{false};

void on_interrupt(int) { ended_by_user.store(true); }

// "MemAvailable" of /proc/meminfo.
uint64_t free_on_machine() {
  std::ifstream lines("/proc/meminfo");
  std::string key, unit;
  for (uint64_t kilobytes = 0; lines >> key >> kilobytes && std::getline(lines, unit);)
    if (key == "MemAvailable:") return kilobytes << 10;
  return std::numeric_limits<uint64_t>::max();
}

double gigabytes(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

}  // namespace

uint64_t memory_available() { return std::min({free_on_machine(), memory_left(), address_space_left()}); }

Status fits(int ranks, std::string_view what, uint64_t more, uint64_t available) {
  const uint64_t bytes = static_cast<uint64_t>(ranks) * kRankBytes;
  if (more <= available && bytes <= available - more) return {};
  if (more > available)
    return error(IBCOLL_ERR_NO_MEMORY, "{} of {} ranks take {:.1f} GB, and {:.1f} GB are available; use fewer ranks",
                 what, ranks, gigabytes(more), gigabytes(available));
  return error(IBCOLL_ERR_NO_MEMORY,
               "{} ranks take at least {:.1f} GB, and {:.1f} GB are available: enough for {} ranks", ranks,
               gigabytes(bytes + more), gigabytes(available), (available - more) / kRankBytes);
}

Watch::Watch(double expected_us) : line_(isatty(STDERR_FILENO) == 1), expected_us_(expected_us) {}

Status Watch::look(SimJob& job) {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double us = static_cast<double>(job.network().now()) / 1000;
  const auto events = static_cast<double>(job.network().counters().events);
  std::string text = fmt::format("{:.1f} million events, {:.1f} a second, {:.0f} us", events / 1e6,
                                 events / 1e6 / std::max(seconds, 1e-3), us);
  if (expected_us_ > us && us > 0)
    text += fmt::format(" of about {:.0f}, {:.0f} s left", expected_us_, seconds * (expected_us_ - us) / us);
  line_.show(std::move(text));
  if (interrupted())
    return error(IBCOLL_ERR_TIMEOUT, "ended by the user after {:.0f} us and {:.0f} events", us, events);
  if (now < memory_seen_ + kEach) return {};
  memory_seen_ = now;
  const uint64_t left = memory_available();
  if (left >= kReserve) return {};
  return error(IBCOLL_ERR_NO_MEMORY, "{} MB of memory are left after {:.0f} us and {:.0f} events; use fewer ranks",
               left >> 20, us, events);
}

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return ended_by_user.load(); }

}  // namespace ibcoll::simulator
