// SPDX-License-Identifier: BSD-3-Clause
// A rank has ended, and another process has got its number: it must be neither read nor written.
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/shm/node_memory.h"
#include "runtime/shm/single_copy.h"
#include "runtime/shm/transport.h"

namespace ibcoll::conformance {
namespace {

// Forks a process with this number, which no process has; -1 and errno where that is not allowed.
pid_t fork_as(pid_t pid) {
  clone_args args{};
  args.exit_signal = SIGCHLD;
  args.set_tid = reinterpret_cast<uint64_t>(&pid);
  args.set_tid_size = 1;
  return static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
}

[[noreturn]] void rest() {
  ::alarm(60);
  for (;;) ::pause();
}

class ShmReusedPid : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<shm::Segment>> made = shm::Segment::create(2, 16 * 1024);
    ASSERT_TRUE(made.ok()) << made.status().text();
    segment_ = std::move(*made);
    peer_ = ::fork();
    if (peer_ == 0) rest();
    transport_ = std::make_unique<shm::Transport>(segment_, std::vector<int>{0, 1}, 0, true);
    memory_ = std::make_unique<shm::NodeMemory>(transport_->node());
    segment_->info(1).pid = peer_;
    // Where the peer, which is a copy of this process, has the word that this one has.
    segment_->info(1).probe = segment_->info(0).probe.load();
    ASSERT_TRUE(transport_->node().probe().ok());
    ASSERT_TRUE(memory_->can_read(1));
  }
  void TearDown() override {
    ::kill(peer_, SIGKILL);
    ::waitpid(peer_, nullptr, 0);
  }
  void replace_peer() {
    ::kill(peer_, SIGKILL);
    ASSERT_EQ(::waitpid(peer_, nullptr, 0), peer_);
    word_ = 666;
    const pid_t impostor = fork_as(peer_);
    if (impostor == 0) rest();
    word_ = 0;
    if (impostor < 0) GTEST_SKIP() << "clone3 with a number: " << std::strerror(errno);
    ASSERT_EQ(impostor, peer_);
  }
  uint64_t address() const { return reinterpret_cast<uint64_t>(&word_); }

  std::shared_ptr<shm::Segment> segment_;
  std::unique_ptr<shm::Transport> transport_;
  std::unique_ptr<shm::NodeMemory> memory_;
  uint64_t word_ = 42;
  pid_t peer_ = -1;
};

TEST_F(ShmReusedPid, IsFoundOutBeforeWhatWasReadCounts) {
  uint64_t to = 0;
  ASSERT_TRUE(memory_->read(1, address(), std::as_writable_bytes(std::span(&to, 1))).ok());
  EXPECT_EQ(to, 42u);
  EXPECT_TRUE(memory_->confirm().ok());
  replace_peer();
  if (IsSkipped()) return;
  Status status = memory_->read(1, address(), std::as_writable_bytes(std::span(&to, 1)));
  if (status.ok()) status = memory_->confirm();
  EXPECT_EQ(status.code(), IBCOLL_ERR_PEER_FAILED) << "read " << to;
  EXPECT_NE(status.text().find("rank 1 of the job failed"), std::string::npos) << status.text();
}

TEST_F(ShmReusedPid, IsNotWrittenTo) {
  ASSERT_TRUE(segment_->ensure_pair(0, 1).ok());
  shm::Exposure& exposure = segment_->pair(0, 1).exposures[0];
  exposure.address = address();
  exposure.bytes = sizeof word_;
  exposure.word = 1 << 2 | shm::Exposure::kExposed;
  const RemoteRegion region{address(), sizeof word_, shm::PairBlock::kExposures};
  replace_peer();
  if (IsSkipped()) return;
  const uint64_t from = 1;
  EXPECT_EQ(transport_->put(1, region, std::as_bytes(std::span(&from, 1)), {}, 0), PutResult::kBusy);
  uint64_t there = 0;
  ASSERT_TRUE(shm::read_process(peer_, address(), std::as_writable_bytes(std::span(&there, 1))).ok());
  EXPECT_EQ(there, 666u);
  std::array<Event, 4> events;
  ASSERT_EQ(transport_->poll(events), 1u);
  EXPECT_EQ(events[0].kind, Event::Kind::kPeerFailed);
}

}  // namespace
}  // namespace ibcoll::conformance
