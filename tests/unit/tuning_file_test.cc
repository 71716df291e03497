// SPDX-License-Identifier: BSD-3-Clause
// How ibcoll_tune writes its file.
#include "tools/ibcoll_tune/tuning_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ibcoll::tune {
namespace {

using nlohmann::json;

const json kJob{{"version", "0.1.0"}, {"hardware", "a processor"}, {"transport", "shm"}, {"layout", "4 ranks"}};

json choice(int longest, const char* algorithm) {
  return {{"longest", longest}, {"algorithm", algorithm}, {"us", 1.5}};
}

class TuningFileOfToolTest : public testing::Test {
 protected:
  TuningFileOfToolTest() { folder_ = ::mkdtemp(folder_.data()); }
  ~TuningFileOfToolTest() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/tuning.json"; }
  json choices() const { return json::parse(std::ifstream(path())).at("choices"); }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()));
  }

  std::string folder_ = testing::TempDir() + "tuning.XXXXXX";
};

TEST_F(TuningFileOfToolTest, AChoiceReplacesThatOfItsClass) {
  TuningFile(path(), false, kJob).merge({choice(8, "ring"), choice(9, "ring")});
  TuningFile(path(), false, kJob).merge({choice(9, "bruck"), choice(10, "shm")});
  EXPECT_EQ(choices(), json({choice(8, "ring"), choice(9, "bruck"), choice(10, "shm")}));
  EXPECT_EQ(files(), 2u) << "the file and its lock";
}

TEST_F(TuningFileOfToolTest, OnlyTheCacheIsCreated) {
  const std::string inside = folder_ + "/a/b/tuning.json";
  EXPECT_THROW(TuningFile(inside, false, kJob), std::runtime_error);
  EXPECT_EQ(files(), 0u);
  TuningFile(inside, true, kJob).merge({choice(8, "ring")});
  EXPECT_TRUE(std::filesystem::exists(inside));
}

// The limit of a file's size stands for a full disk: what was there stays, and nothing is left beside it.
TEST_F(TuningFileOfToolTest, AFullDiskLeavesTheOldFile) {
  const TuningFile file(path(), false, kJob);
  file.merge({choice(8, "ring")});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 100;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string why;
  try {
    file.merge({choice(9, "bruck")});
  } catch (const std::runtime_error& problem) {
    why = problem.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
  EXPECT_NE(why.find("cannot write"), std::string::npos) << why;
  EXPECT_EQ(choices(), json::array({choice(8, "ring")}));
  EXPECT_EQ(files(), 2u);
}

}  // namespace
}  // namespace ibcoll::tune
