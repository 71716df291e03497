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
  trace->write({2, 3, 0x1f, {}});
  const std::vector<std::string> all = lines("trace.2");
  ASSERT_EQ(all.size(), 6u);
  EXPECT_TRUE(all[0].starts_with("# ibcoll trace 4 rank 2 ranks 3 job 000000000000001f ")) << all[0];
  EXPECT_TRUE(all[0].ends_with(" calls 3 dropped 0 sites 1")) << all[0];
  EXPECT_EQ(all[1], "code - - 0x0 -");
  EXPECT_TRUE(all[2].ends_with(" ok 0 10/7/-/- -")) << all[2];
  EXPECT_TRUE(all[3].ends_with(" ok 0 - -")) << all[3];
  EXPECT_TRUE(all[4].ends_with(" ok 0 30/7/-/- -")) << all[4];
  EXPECT_EQ(all[5], "end");
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
