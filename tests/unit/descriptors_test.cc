// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iterator>
#include <optional>

namespace ibcoll {
namespace {

// Some stay for the program, which may have counted on what there was.
TEST(DescriptorLimit, IsRaisedSoThatSomeAreLeft) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const std::filesystem::directory_iterator open("/proc/self/fd");
  const auto used = static_cast<rlim_t>(std::distance(begin(open), end(open)));
  rlimit limit = before;
  limit.rlim_cur = used + 110;
  if (limit.rlim_max < used + 200) GTEST_SKIP() << "the hard limit is " << limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  const Status enough = ensure_descriptors(50, "the test");
  rlimit after_enough{}, after_more{};
  ::getrlimit(RLIMIT_NOFILE, &after_enough);
  const Status more = ensure_descriptors(100, "the test");
  ::getrlimit(RLIMIT_NOFILE, &after_more);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(enough.ok() && more.ok()) << enough.text() << more.text();
  EXPECT_EQ(after_enough.rlim_cur, used + 110) << "there was room";
  EXPECT_GE(after_more.rlim_cur, used + 120);
}

bool is_closed(int fd) { return ::fcntl(fd, F_GETFD) < 0 && errno == EBADF; }

int open_and_close() {
  const int fd = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::close(fd);
  return fd;
}

// How a child without standard descriptors ends, which is 0 where `body` is true in it.
int without_standard_ones(bool (*body)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    ::_exit(body() ? 0 : 1);
  }
  int ending = -1;
  ::waitpid(child, &ending, 0);
  return ending;
}

TEST(HighDescriptors, AreThreeOrAbove) {
  EXPECT_EQ(without_standard_ones([] {
              std::optional<HighDescriptors> first(std::in_place), second(std::in_place);
              first.reset();
              const bool high = open_and_close() >= 3;
              const bool refused = ::write(2, "x", 1) < 0 && errno == EBADF;
              second.reset();
              return high && refused && is_closed(0) && is_closed(1) && is_closed(2);
            }),
            0);
}

TEST(HighDescriptors, LeaveWhatTheProgramOpensMeanwhile) {
  EXPECT_EQ(without_standard_ones([] {
              {
                const HighDescriptors high;
                ::dup2(::open("/dev/null", O_WRONLY), 1);
              }
              return is_closed(0) && ::write(1, "x", 1) == 1;
            }),
            0);
}

TEST(HighDescriptors, AreNotInheritedByAChild) {
  EXPECT_EQ(without_standard_ones([] {
              const HighDescriptors high;
              const pid_t child = ::fork();
              if (child == 0) ::_exit(is_closed(0) && open_and_close() == 0 ? 0 : 1);
              int ending = -1;
              return ::waitpid(child, &ending, 0) == child && ending == 0 && open_and_close() >= 3;
            }),
            0);
}

TEST(HighDescriptors, LeaveErrnoAlone) {
  errno = EXDEV;
  { const HighDescriptors high; }
  EXPECT_EQ(errno, EXDEV);
}

}  // namespace
}  // namespace ibcoll
