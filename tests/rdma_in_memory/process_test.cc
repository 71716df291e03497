// SPDX-License-Identifier: BSD-3-Clause
// What registration does to the process.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tests/rdma_in_memory/pair.h"

namespace ibcoll::rdma_in_memory_tests {
namespace {

TEST(ProcessTest, ForkIsRefusedOnceMemoryIsRegistered) {
  const Pair pair;
  ASSERT_TRUE(pair.complete()) << "run this by ibcoll_run --rdma-in-memory -n 1";
  errno = 0;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  EXPECT_EQ(child, -1);
  EXPECT_EQ(errno, ENOTSUP);
  EXPECT_EQ(std::system("true"), 0);  // without fork
}

TEST(ProcessTest, RegisteredMemoryKeepsItsBytes) {
  const Pair pair;
  ASSERT_TRUE(pair.complete());
  constexpr size_t kPages = 3 * 4096;
  auto* const memory =
      static_cast<char*>(::mmap(nullptr, kPages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 'x', kPages);
  ibv_mr* const region = ibv_reg_mr(pair.domain, memory + 5000, 100, int{IBV_ACCESS_LOCAL_WRITE});
  ASSERT_NE(region, nullptr);
  ibv_mr* const again = ibv_reg_mr(pair.domain, memory, kPages, int{IBV_ACCESS_LOCAL_WRITE});
  ASSERT_NE(again, nullptr);
  for (size_t i = 0; i < kPages; ++i) ASSERT_EQ(memory[i], 'x') << i;
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  EXPECT_EQ(ibv_dereg_mr(again), 0);
  ::munmap(memory, kPages);
}

// As of the stack, of files, of other shared memory.
TEST(ProcessTest, MemoryThatStaysWhereItIsCanBeRegistered) {
  Pair pair;
  ASSERT_TRUE(pair.complete());
  char own[64] = "written from the stack";
  ibv_mr* const region = ibv_reg_mr(pair.domain, own, sizeof own, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ASSERT_NE(region, nullptr);
  std::memcpy(pair.source.data(), "by a peer", 10);
  ibv_sge sge{reinterpret_cast<uint64_t>(pair.source.data()), 10, pair.from->lkey};
  ibv_send_wr request{}, *bad = nullptr;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.sg_list = &sge;
  request.num_sge = 1;
  request.wr.rdma = {reinterpret_cast<uint64_t>(own), region->rkey};
  ASSERT_EQ(ibv_post_send(pair.ends[0], &request, &bad), 0);
  EXPECT_EQ(pair.next_status(), IBV_WC_SUCCESS);
  EXPECT_STREQ(own, "by a peer");
}

}  // namespace
}  // namespace ibcoll::rdma_in_memory_tests
