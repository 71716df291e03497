// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/single_copy.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ibcoll::shm {
namespace {

std::span<std::byte> bytes_of(uint64_t& word) { return std::as_writable_bytes(std::span(&word, 1)); }

TEST(SingleCopy, ReadsWhatIsThere) {
  uint64_t from = 42, to = 0;
  EXPECT_TRUE(read_process(::getpid(), reinterpret_cast<uint64_t>(&from), bytes_of(to)).ok());
  EXPECT_EQ(to, 42u);
}

TEST(SingleCopy, NamesWhatIsNotThere) {
  uint64_t to = 0;
  const Status status = read_process(::getpid(), 16, bytes_of(to));
  EXPECT_EQ(status.code(), IBCOLL_ERR_SYSTEM);
  EXPECT_NE(status.text().find("process_vm_readv of 8 bytes at 0x10"), std::string::npos) << status.text();
}

// A process of another user, which only some may read.
TEST(SingleCopy, WhatTheKernelRefusesIsAnErrorOfItsOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  int status = 1;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(2);
    uint64_t word = 0;
    const Status read = read_process(::getppid(), reinterpret_cast<uint64_t>(&word), bytes_of(word));
    ::_exit(read.code() == IBCOLL_ERR_UNSUPPORTED ? 0 : 1);
  }
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(SingleCopy, IsTriedAndLeavesTheWordAsItIs) {
  const uint64_t before = *probe_word();
  EXPECT_TRUE(may_copy_process(::getpid(), reinterpret_cast<uint64_t>(probe_word())));
  EXPECT_EQ(*probe_word(), before);
  EXPECT_FALSE(may_copy_process(::getpid(), 16));
  const uint64_t other = 42;
  EXPECT_FALSE(may_copy_process(::getpid(), reinterpret_cast<uint64_t>(&other)));
}

// Between giving back its memory and being seen as ended, a process cannot be read any more either; likewise a zombie.
TEST(SingleCopy, AnEndedProcessIsAFailedPeer) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  uint64_t word = 0;
  const auto address = reinterpret_cast<uint64_t>(&word);
  EXPECT_EQ(read_process(child, address, bytes_of(word)).code(), IBCOLL_ERR_PEER_FAILED) << "as a zombie";
  EXPECT_EQ(write_process(child, address, bytes_of(word)).code(), IBCOLL_ERR_PEER_FAILED) << "as a zombie";
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(read_process(child, address, bytes_of(word)).code(), IBCOLL_ERR_PEER_FAILED);
}

}  // namespace
}  // namespace ibcoll::shm
