// SPDX-License-Identifier: BSD-3-Clause
#include "tests/test_main.h"

#include <gtest/gtest.h>

#include "runtime/log.h"

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

}  // namespace

void expect_error_lines() { lines_expected = true; }

}  // namespace ibcoll

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new ibcoll::ErrorLineWatch);  // GoogleTest deletes it
  return RUN_ALL_TESTS();
}
