// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/memory_limit.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace ibcoll {
namespace {

class MemoryLimit : public testing::Test {
 protected:
  MemoryLimit() { root_ = ::mkdtemp(root_.data()); }
  ~MemoryLimit() override { std::filesystem::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_ + file).substr(0, (root_ + file).rfind('/')));
    std::ofstream(root_ + file) << text << '\n';
  }
  std::string root_ = "/tmp/ibcoll-test-XXXXXX";
};

TEST_F(MemoryLimit, IsThatOfTheTightestGroup) {
  write("/job/memory.max", "60000000");
  write("/job/memory.current", "50000000");
  write("/job/memory.stat", "anon 1\ninactive_file 5000000\nactive_file 7");
  write("/job/step/memory.max", "max");
  EXPECT_EQ(memory_left_in(root_, "/job/step", true), 15'000'000u);
  write("/job/step/memory.max", "1000");
  write("/job/step/memory.current", "2000");
  EXPECT_EQ(memory_left_in(root_, "/job/step", true), 0u);
}

TEST_F(MemoryLimit, IsReadFromTheFirstVersionToo) {
  write("/memory.limit_in_bytes", "9223372036854771712");
  write("/job/memory.limit_in_bytes", "1000");
  write("/job/memory.usage_in_bytes", "900");
  EXPECT_EQ(memory_left_in(root_, "/job", false), 100u);
}

TEST_F(MemoryLimit, IsNoneWhereNobodySaysOne) {
  EXPECT_EQ(memory_left_in(root_, "/", true), UINT64_MAX);
  EXPECT_EQ(memory_left_in(root_, "/job/step", true), UINT64_MAX);
  write("/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(memory_left_in(root_, "/job", false), UINT64_MAX);
}

}  // namespace
}  // namespace ibcoll
