// SPDX-License-Identifier: BSD-3-Clause
// Only the ranks of the job get the node's segment, whatever other processes ask for it, and any number of times.
#include "runtime/shm/handover.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

namespace ibcoll::shm {
namespace {

constexpr uint64_t kKey = 4711;
constexpr uint64_t kRing = 4096;
constexpr int kRanks[] = {4, 7, 9};  // in the job

Deadline in_seconds(double seconds) {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<int>(seconds * 1000));
}

class Handover : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Segment>> made = Segment::create(3, kRing);
    ASSERT_TRUE(made.ok()) << made.status().text();
    segment_ = std::move(*made);
    Result<UniqueFd> offer = offer_segment(name_, 3);
    ASSERT_TRUE(offer.ok()) << offer.status().text();
    server_ = std::thread([this, listener = std::move(*offer)]() mutable {
      served_ = hand_over(*segment_, std::move(listener), kKey, kRanks, in_seconds(60));
    });
  }
  void TearDown() override {
    if (server_.joinable()) server_.join();
  }
  Result<std::unique_ptr<Segment>> receive(uint64_t key, int rank, double seconds = 60) {
    return receive_segment(name_, key, rank, 3, kRing, in_seconds(seconds));
  }
  // Both ranks get it, and nothing else was handed out to them.
  void expect_handover() {
    for (int rank = 1; rank < 3; ++rank) {
      Result<std::unique_ptr<Segment>> got = receive(kKey, rank);
      ASSERT_TRUE(got.ok()) << got.status().text();
      segment_->info(rank).pid = 100 + rank;
      EXPECT_EQ((*got)->info(rank).pid.load(), 100 + rank) << "another segment";
    }
    server_.join();
    EXPECT_TRUE(served_.ok()) << served_.text();
  }

  const std::string name_ = "ibcoll-test-" + std::to_string(::getpid());
  std::unique_ptr<Segment> segment_;
  std::thread server_;
  Status served_;
};

TEST_F(Handover, IsToTheRanksOfTheJob) { expect_handover(); }

TEST_F(Handover, IsNotToWhoDoesNotKnowTheKey) {
  EXPECT_EQ(receive(kKey + 1, 1, 0.1).status().code(), IBCOLL_ERR_TIMEOUT);
  EXPECT_EQ(receive(kKey, 3, 0.1).status().code(), IBCOLL_ERR_TIMEOUT) << "there is no such rank";
  expect_handover();
}

TEST(HandoverInVain, NamesTheRanksThatDidNotCome) {
  Result<std::unique_ptr<Segment>> made = Segment::create(3, kRing);
  ASSERT_TRUE(made.ok()) << made.status().text();
  Result<UniqueFd> offer = offer_segment(fmt::format("ibcoll-in-vain-{}", ::getpid()), 3);
  ASSERT_TRUE(offer.ok()) << offer.status().text();
  const Status served = hand_over(**made, std::move(*offer), 1, kRanks, in_seconds(0.1));
  EXPECT_EQ(served.code(), IBCOLL_ERR_TIMEOUT);
  EXPECT_TRUE(served.text().ends_with("(IBCOLL_TIMEOUT): 7, 9")) << served.text();
}

TEST_F(Handover, IsNotToAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(2);
    // Past its own check of the leader, as an attacker would go.
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data(), name_.size());
    const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET, 0));
    const timeval timeout{2, 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    const int64_t claim[] = {kKey, 1};
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) ::_exit(3);
    (void)::send(socket.get(), claim, sizeof claim, MSG_NOSIGNAL);
    char byte = 0;
    ::_exit(::recv(socket.get(), &byte, 1, 0) > 0 ? 1 : 0);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "1: it was handed over";
  expect_handover();
}

// As a profiler sends them.
TEST_F(Handover, IsNotEndedBySignals) {
  static std::atomic<int> taken;
  taken = 0;
  struct sigaction count {
  }, before{};
  count.sa_handler = [](int) { ++taken; };  // and no SA_RESTART
  ASSERT_EQ(::sigaction(SIGUSR2, &count, &before), 0);
  for (int sent = 1; sent <= 100; ++sent) {
    ASSERT_EQ(::pthread_kill(server_.native_handle(), SIGUSR2), 0);
    for (const Deadline end = in_seconds(60); taken < sent && !end.passed();) std::this_thread::yield();
    ASSERT_EQ(taken, sent) << "it waits no more";
  }
  expect_handover();
  ::sigaction(SIGUSR2, &before, nullptr);
}

TEST_F(Handover, IsHeldUpByNoStrangers) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name_.data(), name_.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 200; ++i) {  // each waits until it is let in
    strangers.emplace_back(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(strangers.back().get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    if (i % 2 == 0) (void)::send(strangers.back().get(), "hello", 5, MSG_NOSIGNAL);
  }
  expect_handover();
}

}  // namespace
}  // namespace ibcoll::shm
