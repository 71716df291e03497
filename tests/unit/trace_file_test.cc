// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/trace/trace_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/collectives/framework/registry.h"

namespace ibcoll {
namespace {

// A barrier, and a peer of it whose number is the arrival.
void add_barrier(TraceBuffer& buffer, int32_t arrival) {
  TracedCall traced;
  traced.arrival_ns = arrival, traced.exit_ns = 100;
  traced.algorithm = find_algorithm(IBCOLL_BARRIER, "dissemination");
  buffer.add(traced);
  TracedPeer peer;
  peer.job_rank = arrival;
  buffer.add_peer(peer);
}

class TraceFileTest : public testing::Test {
 protected:
  TraceFileTest() { folder_ = ::mkdtemp(folder_.data()); }
  ~TraceFileTest() override { std::filesystem::remove_all(folder_); }
  std::vector<std::string> lines(const std::string& name) const {
    std::vector<std::string> all;
    std::ifstream file(folder_ + "/" + name);
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }
  std::vector<std::string> lines_without_first(const std::string& name) const {
    std::vector<std::string> all = lines(name);
    all.erase(all.begin());
    return all;
  }
  std::string folder_ = "/tmp/ibcoll-test-XXXXXX";
};

TEST_F(TraceFileTest, PeersStandWithTheirCall) {
  const std::unique_ptr<TraceFile> trace = TraceFile::open(folder_, 4, 8, 2);
  ASSERT_NE(trace, nullptr);
  for (int32_t call = 1; call <= 3; ++call) {
    TracedCall traced;
    traced.algorithm = find_algorithm(IBCOLL_BARRIER, "dissemination");
    trace->buffer().add(traced);
    if (call == 2) continue;
    TracedPeer peer;
    peer.job_rank = 10 * call;
    peer.begun_ns = 7;
    trace->buffer().add_peer(peer);
  }
  TraceHeader header;
  header.rank = 2, header.ranks = 3, header.job = 0x1f, header.node = 1, header.cores = 4;
  trace->write(header);
  const std::vector<std::string> all = lines("trace.2");
  ASSERT_EQ(all.size(), 6u);
  EXPECT_TRUE(all[0].starts_with("# ibcoll trace 5 rank 2 ranks 3 job 000000000000001f ")) << all[0];
  EXPECT_TRUE(all[0].ends_with(" calls 3 dropped 0 sites 1 teams 0 counts 0")) << all[0];
  EXPECT_EQ(all[1], "code - - 0x0 -");
  EXPECT_NE(all[0].find(" node 1 cores 4 "), std::string::npos) << all[0];
  EXPECT_TRUE(all[2].ends_with(" ok 0 10/7/-/- - - - - auto - -")) << all[2];
  EXPECT_TRUE(all[3].ends_with(" ok 0 - - - - - auto - -")) << all[3];
  EXPECT_TRUE(all[4].ends_with(" ok 0 30/7/-/- - - - - auto - -")) << all[4];
  EXPECT_EQ(all[5], "end");
}

// Calls stand in the order of their arrival, with their own peers, though they ended in another one.
TEST_F(TraceFileTest, CallsStandInTheOrderOfTheirArrival) {
  const std::unique_ptr<TraceFile> trace = TraceFile::open(folder_, 4, 8, 0);
  ASSERT_NE(trace, nullptr);
  for (const int32_t arrival : {20, 10, 30}) add_barrier(trace->buffer(), arrival);
  trace->write({});
  const std::vector<std::string> all = lines("trace.0");
  ASSERT_EQ(all.size(), 6u);
  for (size_t i = 0; i < 3; ++i) {
    const std::string number = std::to_string(10 * (i + 1));
    EXPECT_TRUE(all[2 + i].starts_with(number + " 100 ")) << all[2 + i];
    EXPECT_NE(all[2 + i].find(" " + number + "/-/-/- "), std::string::npos) << all[2 + i];
  }
}

// There is room for two calls, and for the peers of all.
TEST_F(TraceFileTest, PeersOfCallsThatAreGoneAreLeftOut) {
  const std::unique_ptr<TraceFile> trace = TraceFile::open(folder_, 2, 8, 0);
  ASSERT_NE(trace, nullptr);
  for (const int32_t arrival : {10, 20, 30}) add_barrier(trace->buffer(), arrival);
  trace->write({});
  const std::vector<std::string> all = lines("trace.0");
  ASSERT_EQ(all.size(), 5u);
  EXPECT_NE(all[2].find(" 20/-/-/- "), std::string::npos) << all[2];
  EXPECT_NE(all[3].find(" 30/-/-/- "), std::string::npos) << all[3];
}

TEST_F(TraceFileTest, WhatACallMeans) {
  const std::unique_ptr<TraceFile> trace = TraceFile::open(folder_, 4, 0, 0);
  ASSERT_NE(trace, nullptr);
  TraceLists& lists = trace->buffer().lists();
  const std::vector<int> ranks = {0, 1, 2, 5, 4};
  lists.add_team(0xa1, ranks);
  lists.add_team(0xa1, ranks);
  const std::vector<uint64_t> sizes = {7, 7, 0, 9}, others = {1, 2, 3, 4};
  EXPECT_EQ(lists.keep_counts(sizes), 0u);
  EXPECT_EQ(lists.keep_counts(others), 1u);
  EXPECT_EQ(lists.keep_counts(sizes), 0u);
  TracedCall reduce;
  reduce.algorithm = find_algorithm(IBCOLL_REDUCE, "binomial");
  reduce.root = 3, reduce.type = IBCOLL_OPAQUE, reduce.element_bytes = 24, reduce.operation = kUserDefined;
  reduce.commutative = false, reduce.wait_ns = 0, reduce.scheme = IBCOLL_SCHEME_ZERO_COPY;
  trace->buffer().add(reduce);
  TracedCall gather;
  gather.algorithm = find_algorithm(IBCOLL_ALLGATHERV, "ring");
  gather.counts = 1;
  trace->buffer().add(gather);
  trace->buffer().note_wait(trace->buffer().last(), 55);
  trace->buffer().note_wait(trace->buffer().last(), 99);  // the first one counts
  trace->write({});
  const std::vector<std::string> all = lines_without_first("trace.0");
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[1], "team a1 0-2,5,4");
  EXPECT_EQ(all[2], "counts 1,2,3,4");  // no call has the others
  EXPECT_TRUE(all[3].ends_with(" 3 opaque:24 user_in_order zero_copy - 0")) << all[3];
  EXPECT_TRUE(all[4].ends_with(" - - - auto 0 55")) << all[4];
}

TEST_F(TraceFileTest, IsNamedByItsRankWhereItIsAFile) {
  ASSERT_NE(TraceFile::open(folder_ + "/name", 1, 0, 5), nullptr);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/name.5"));
}

TEST_F(TraceFileTest, ADeviceIsItself) {
  std::filesystem::create_symlink("/dev/null", folder_ + "/device");
  ASSERT_NE(TraceFile::open(folder_ + "/device", 1, 0, 5), nullptr);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/device.5"));
}

}  // namespace
}  // namespace ibcoll
