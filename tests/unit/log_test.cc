// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/base/log.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/test_main.h"

namespace ibcoll {
namespace {

class Log : public testing::Test {
 protected:
  void TearDown() override {
    set_log_level(LogLevel::kWarning);
    set_log_rank(-1);
  }
  static std::string written(LogLevel level, std::string_view text) {
    testing::internal::CaptureStderr();
    log(level, "{}", text);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(Log, PrefixNamesRankAndLevel) {
  expect_error_lines();
  expect_error_lines();
  EXPECT_EQ(written(LogLevel::kWarning, "low on memory"), "ibcoll: warning: low on memory\n");
  set_log_rank(0);
  EXPECT_EQ(written(LogLevel::kWarning, "x"), "ibcoll rank 0: warning: x\n");
  set_log_rank(3);
  EXPECT_EQ(written(LogLevel::kError, "x"), "ibcoll rank 3: error: x\n");
}

TEST_F(Log, LevelFilters) {
  EXPECT_EQ(written(LogLevel::kInfo, "x"), "");
  set_log_level(LogLevel::kInfo);
  EXPECT_EQ(written(LogLevel::kInfo, "x"), "ibcoll: info: x\n");
  EXPECT_EQ(written(LogLevel::kDebug, "x"), "");
  set_log_level(LogLevel::kError);
  EXPECT_EQ(written(LogLevel::kWarning, "x"), "");
}

TEST_F(Log, LongLinesAreWholeAndEndOnce) {
  expect_error_lines();
  expect_error_lines();
  const std::string text(10000, 'a');
  EXPECT_EQ(written(LogLevel::kError, text + "\n\n"), "ibcoll: error: " + text + "\n");
}

TEST_F(Log, KeepsErrno) {
  expect_error_lines();
  expect_error_lines();
  errno = ENOENT;
  testing::internal::CaptureStderr();
  const int before = errno;
  log_line(LogLevel::kError, "x");
  const int after = errno;
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace ibcoll
