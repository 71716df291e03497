// SPDX-License-Identifier: BSD-3-Clause
#include "tests/test_main.h"

#include <execinfo.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>

#include "runtime/base/log.h"

namespace ibcoll {
namespace {

bool lines_expected = false;

class ErrorLineWatch : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    lines_expected = false;
    before_ = error_lines();
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    const uint64_t written = error_lines() - before_;
    if (written == 0 || lines_expected || test.result()->Skipped()) return;
    ADD_FAILURE() << written
                  << " unexpected error line(s) of the runtime, see above; a test that provokes errors calls "
                     "expect_error_lines()";
  }
  uint64_t before_ = 0;
};

// An abort() in a library that happens once in a thousand runs leaves its call stack in the log.
void print_stack_of_abort(int) {
  std::array<void*, 64> frames{};
  ::backtrace_symbols_fd(frames.data(), ::backtrace(frames.data(), static_cast<int>(frames.size())), STDERR_FILENO);
  std::signal(SIGABRT, SIG_DFL);
  std::raise(SIGABRT);
}

void print_stacks_of_aborts() {
  std::array<void*, 1> frame{};
  ::backtrace(frame.data(), 1);  // loads what it needs, which a handler must not
  std::signal(SIGABRT, print_stack_of_abort);
}

}  // namespace

void expect_error_lines() { lines_expected = true; }

}  // namespace ibcoll

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  ibcoll::print_stacks_of_aborts();
  testing::UnitTest::GetInstance()->listeners().Append(new ibcoll::ErrorLineWatch);  // GoogleTest deletes it
  const int status = RUN_ALL_TESTS();
  const bool none = !GTEST_FLAG_GET(list_tests) && testing::UnitTest::GetInstance()->test_to_run_count() == 0;
  if (none) std::fputs("no test fits the filter\n", stderr);
  return none ? 1 : status;
}
