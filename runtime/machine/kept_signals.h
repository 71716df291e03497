// SPDX-License-Identifier: BSD-3-Clause
// While a library of UCX is loaded: libucs takes the signals of crashes then, SIGHUP (UCX_DEBUG_SIGNO, to raise its log
// level) and the signal stack of the thread. In a host program these are not ours to take: all is put back as it was.
#pragma once

#include <array>
#include <csignal>
#include <cstdlib>

namespace ibcoll {

class KeptSignals {
 public:
  KeptSignals() noexcept {
    for (size_t i = 0; i < kNumbers.size(); ++i) kept_[i] = ::sigaction(kNumbers[i], nullptr, &before_[i]) == 0;
    stack_kept_ = ::sigaltstack(nullptr, &stack_) == 0;
  }
  ~KeptSignals() {
    const bool crashes = std::getenv("UCX_HANDLE_ERRORS") == nullptr;  // else the user wants it so
    const bool debugging = std::getenv("UCX_DEBUG_SIGNO") == nullptr;
    for (size_t i = 0; i < kNumbers.size(); ++i)
      if (kept_[i] && (kNumbers[i] == SIGHUP ? debugging : crashes)) ::sigaction(kNumbers[i], &before_[i], nullptr);
    if (stack_kept_ && crashes) ::sigaltstack(&stack_, nullptr);
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  static constexpr std::array kNumbers{SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGHUP};
  std::array<struct sigaction, kNumbers.size()> before_{};
  std::array<bool, kNumbers.size()> kept_{};
  stack_t stack_{};
  bool stack_kept_ = false;
};

}  // namespace ibcoll
