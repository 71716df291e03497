// SPDX-License-Identifier: BSD-3-Clause
// Needed with every known version of UCX (versions.h: kSignals). When it is loaded, libucs installs handlers for the
// signals of crashes and for SIGHUP (UCX_DEBUG_SIGNO, to raise its log level), and replaces the signal stack of the
// thread. These belong to the program: an object of this class, which lives while UCX is loaded, restores them. It asks
// for no version, as that is known only after loading.
#pragma once

#include <array>
#include <csignal>
#include <cstdlib>

namespace ibcoll::ucx {

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

}  // namespace ibcoll::ucx
