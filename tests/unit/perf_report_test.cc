// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/report.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace ibcoll::perf {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class OutputFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "ibcoll_output.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }
  fs::path folder_;
};

TEST_F(OutputFileTest, AppearsAtCommitOnly) {
  const fs::path path = folder_ / "times.csv";
  OutputFile file;
  ASSERT_EQ(file.open(path.string()), "");
  file.write("a,b\n");
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(file.commit(), "");
  EXPECT_EQ(content(path), "a,b\n");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, OldFileSurvivesARunThatFails) {
  const fs::path path = folder_ / "times.csv";
  std::ofstream(path) << "old";
  {
    OutputFile file;
    ASSERT_EQ(file.open(path.string()), "");
    file.write("new");
  }
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, WritesThroughASymbolicLink) {
  fs::create_symlink(folder_ / "target", folder_ / "link");
  OutputFile file;
  ASSERT_EQ(file.open((folder_ / "link").string()), "");
  file.write("x");
  EXPECT_EQ(file.commit(), "");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(content(folder_ / "target"), "x");
}

TEST_F(OutputFileTest, ModesAreThoseOfOtherPrograms) {
  const auto write = [&](const fs::path& path) {
    OutputFile file;
    ASSERT_EQ(file.open(path.string()), "");
    EXPECT_EQ(file.commit(), "");
  };
  const mode_t before = ::umask(027);
  write(folder_ / "new");
  EXPECT_EQ(::umask(before), 027u);
  EXPECT_EQ(fs::status(folder_ / "new").permissions(), fs::perms{0640});
  std::ofstream(folder_ / "old") << "old";
  fs::permissions(folder_ / "old", fs::perms{0600});
  write(folder_ / "old");
  EXPECT_EQ(fs::status(folder_ / "old").permissions(), fs::perms{0600});
}

TEST_F(OutputFileTest, MissingFolderIsNamed) {
  OutputFile file;
  const std::string problem = file.open((folder_ / "none" / "times.csv").string());
  EXPECT_NE(problem.find("none/times.csv"), std::string::npos) << problem;
}

TEST(OutputFileDevice, FullDiskIsAnErrorAndTheDeviceStays) {
  OutputFile file;
  ASSERT_EQ(file.open("/dev/full"), "");
  file.write("x\n");
  EXPECT_NE(file.commit().find("No space left"), std::string::npos);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

Row measured() {
  Row row;
  row.collective = "alltoall";
  row.bytes = 64;
  row.iterations = 100;
  row.times = {1.5, 2.25, 1234.5, 99.994, 2.125, 8.5};
  row.algorithm = "ring";
  return row;
}

Row not_applicable() {
  Row row;
  row.collective = "alltoall";
  row.bytes = 64;
  row.algorithm = "bruck";
  row.not_applicable = "needs \"2^k\" ranks, has 3";
  return row;
}

TEST(Report, CsvHasOneFieldPerColumn) {
  EXPECT_EQ(csv_line(measured(), false), "alltoall,64,100,1.500,2.250,1234.500,99.994,,ring,\n");
  EXPECT_EQ(csv_line(not_applicable(), false), "alltoall,64,0,,,,,,bruck,\"needs \"\"2^k\"\" ranks, has 3\"\n");
  EXPECT_EQ(csv_line(measured(), true), "alltoall,64,100,1.500,2.250,1234.500,2.125,8.500,99.994,,ring,\n");
  EXPECT_EQ(csv_line(not_applicable(), true), "alltoall,64,0,,,,,,,,bruck,\"needs \"\"2^k\"\" ranks, has 3\"\n");
  Row checked = measured();
  checked.errors = 0;
  EXPECT_NE(csv_line(checked, false).find(",0,ring"), std::string::npos);
}

TEST(Report, JsonTellsUncheckedFromRight) {
  EXPECT_TRUE(json_row(measured(), false)["errors"].is_null());
  Row checked = measured();
  checked.errors = 0;
  EXPECT_EQ(json_row(checked, false)["errors"], 0);
  EXPECT_FALSE(json_row(not_applicable(), false).contains("t_avg"));
}

TEST(Report, SummaryCountsRows) {
  EXPECT_EQ(summary_line({.measured = 12, .not_applicable = 3}),
            "# passed: 12 rows verified, 0 errors; 3 not applicable\n");
  EXPECT_EQ(summary_line({.measured = 12, .unverifiable = 2, .errors = 7}),
            "# FAILED: 10 rows verified, 7 errors; 0 not applicable; 2 not verifiable\n");
}

TEST(Report, TableLineNamesTheReason) {
  EXPECT_NE(table_line(measured(), false).find("1234.5"), std::string::npos);
  EXPECT_NE(table_line(not_applicable(), false).find("bruck: needs"), std::string::npos);
}

}  // namespace
}  // namespace ibcoll::perf
