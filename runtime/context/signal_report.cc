// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/signal_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <new>
#include <string>
#include <string_view>

#include "runtime/context/progress.h"

namespace ibcoll {
namespace {

std::atomic<Progress*> watched{nullptr};
std::atomic<bool> asked{false};

void write_now(const char* text, size_t bytes) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, bytes);
}

// The text that the handler prints. It is made before, as a handler may only write; no std::string, as a signal may
// come at any time.
char not_waiting[64];
std::atomic<size_t> not_waiting_bytes{0};

// A thread that waits in ibcoll reports soon. Without one, the rank prints that now, and reports in its next call.
void on_signal(int) {
  const int kept = errno;
  const Progress* const progress = watched.load(std::memory_order_acquire);
  if (progress) {
    asked.store(true, std::memory_order_release);
    if (progress->waiting_threads() == 0) write_now(not_waiting, not_waiting_bytes.load(std::memory_order_acquire));
  }
  errno = kept;
}

void report(const Engine& engine) {
  std::string text = engine.describe();
  if (text.empty()) text = fmt::format("rank {}: no collective in flight\n", engine.rank());
  std::string lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines += "ibcoll " + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  write_now(lines.data(), lines.size());
}

}  // namespace

bool report_asked() noexcept { return asked.load(std::memory_order_relaxed); }

void report_if_asked(Progress& progress) noexcept {
  if (!asked.exchange(false, std::memory_order_acq_rel)) return;
  try {
    report(progress.engine());
  } catch (const std::bad_alloc&) {
    constexpr std::string_view kShort = "ibcoll: no memory to report\n";
    write_now(kShort.data(), kShort.size());
  }
}

void report_on_signal(Progress* progress) {
  Progress* none = nullptr;
  if (!watched.compare_exchange_strong(none, progress)) return;  // one context reports for the process
  const auto text = fmt::format_to_n(not_waiting, sizeof not_waiting, "ibcoll rank {}: not waiting in ibcoll\n",
                                     progress->engine().rank());
  not_waiting_bytes.store(text.size, std::memory_order_release);
  struct sigaction old {};
  if (::sigaction(SIGUSR1, nullptr, &old) != 0 || old.sa_handler != SIG_DFL) return;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR1, &action, nullptr);
}

void report_on_signal_no_more(Progress* progress) {
  Progress* mine = progress;
  if (!watched.compare_exchange_strong(mine, nullptr)) return;
  struct sigaction old {};
  if (::sigaction(SIGUSR1, nullptr, &old) == 0 && old.sa_handler == on_signal) std::signal(SIGUSR1, SIG_DFL);
}

}  // namespace ibcoll
