// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/memory_access.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace ibcoll {
namespace {

class MemoryAccess : public testing::Test {
 protected:
  static constexpr size_t kPages = 5;
  const size_t page_ = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::byte* const start_ = static_cast<std::byte*>(
      ::mmap(nullptr, kPages* page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

  void TearDown() override { ::munmap(start_, kPages * page_); }
  void protect(size_t page, int access) { ::mprotect(start_ + page * page_, page_, access); }
  const std::byte* first(size_t offset, size_t bytes, Access access) const {
    return first_inaccessible({start_ + offset, bytes}, access);
  }
};

TEST_F(MemoryAccess, OrdinaryMemoryIsAccessibleAndStaysAsItIs) {
  std::memset(start_, 7, kPages * page_);
  for (const Access access : {Access::kRead, Access::kWrite}) {
    EXPECT_EQ(first(0, kPages * page_, access), nullptr);
    EXPECT_EQ(first(3, 1, access), nullptr);
    EXPECT_EQ(first_inaccessible({}, access), nullptr);
  }
  for (size_t i = 0; i < kPages * page_; ++i) ASSERT_EQ(start_[i], std::byte{7});
}

TEST_F(MemoryAccess, NamesTheFirstByteThatIsMissing) {
  protect(3, PROT_NONE);
  for (const Access access : {Access::kRead, Access::kWrite}) {
    EXPECT_EQ(first(5, 4 * page_, access), start_ + 3 * page_);
    EXPECT_EQ(first(5, 3 * page_ - 5, access), nullptr) << "ends before it";
    EXPECT_EQ(first(5, 3 * page_ - 4, access), start_ + 3 * page_) << "ends in its first byte";
    EXPECT_EQ(first(4 * page_ - 1, 2, access), start_ + 4 * page_ - 1) << "begins in its last byte";
    EXPECT_EQ(first(4 * page_, page_, access), nullptr) << "begins behind it";
  }
}

TEST_F(MemoryAccess, WhatIsReadOnlyCannotBeWritten) {
  protect(1, PROT_READ);
  EXPECT_EQ(first(0, kPages * page_, Access::kRead), nullptr);
  EXPECT_EQ(first(0, kPages * page_, Access::kWrite), start_ + page_);
}

}  // namespace
}  // namespace ibcoll
