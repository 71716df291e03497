// SPDX-License-Identifier: BSD-3-Clause
// The file of learned choices: what is written is read, and what is wrong with a file is said.
#include "runtime/context/tuning.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/sim/random.h"

namespace ibcoll {
namespace {

const Tuning::Identity kHere{"0.1.0", "a processor, 2 CPUs", "shm", "4 ranks on 1 nodes, 2 a core"};

Tuning::Entry entry(uint64_t longest, const char* algorithm) {
  Tuning::Entry one;
  one.team = {4, 1, 4, 4, true};
  one.calls.collective = IBCOLL_ALLGATHER;
  one.calls.longest = longest;
  one.calls.total = longest + 8;
  one.algorithm = algorithm;
  one.trials = 33;
  one.us = 1.25;
  return one;
}

Tuning some() {
  Tuning tuning;
  tuning.put(entry(20, "ring"));
  tuning.put(entry(30, "bruck"));
  return tuning;
}

class TuningFileTest : public testing::Test {
 protected:
  TuningFileTest() { folder_ = ::mkdtemp(folder_.data()); }
  ~TuningFileTest() override { std::filesystem::remove_all(folder_); }
  std::string at(const char* name) const { return folder_ + "/" + name; }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) names.push_back(file.path().filename());
    return names;
  }

 private:
  std::string folder_ = testing::TempDir() + "tuning.XXXXXX";
};

TEST(Tuning, WhatIsWrittenIsRead) {
  const Result<Tuning> read = Tuning::parse(some().text(kHere), &kHere);
  ASSERT_TRUE(read.ok()) << read.status().text();
  const Tuning::Entry wanted = entry(30, "");
  const Tuning::Entry* const found = read.value().find(wanted.team, wanted.calls);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->algorithm, "bruck");
  EXPECT_EQ(found->trials, 33u);
  EXPECT_EQ(found->us, 1.25);
  EXPECT_EQ(read.value().find(wanted.team, entry(31, "").calls), nullptr);
  TeamLayout other = wanted.team;
  other.nodes = 2;
  EXPECT_EQ(read.value().find(other, wanted.calls), nullptr);
}

TEST(Tuning, ANewChoiceReplacesTheOldOne) {
  Tuning tuning = some();
  tuning.put(entry(20, "direct"));
  const Tuning::Entry wanted = entry(20, "");
  EXPECT_EQ(tuning.find(wanted.team, wanted.calls)->algorithm, "direct");
  EXPECT_EQ(tuning.text(kHere).find("ring"), std::string::npos);
}

TEST(Tuning, AForeignFileIsNamed) {
  const std::string text = some().text(kHere);
  const auto refusal = [&](std::string Tuning::Identity::*member) {
    Tuning::Identity other = kHere;
    other.*member = "another one";
    const Result<Tuning> read = Tuning::parse(text, &other);
    EXPECT_FALSE(read.ok());
    return read.ok() ? "" : read.status().text();
  };
  EXPECT_NE(refusal(&Tuning::Identity::version).find("another version: '0.1.0', here 'another one'"),
            std::string::npos);
  EXPECT_NE(refusal(&Tuning::Identity::hardware).find("another hardware"), std::string::npos);
  EXPECT_NE(refusal(&Tuning::Identity::transport).find("another transport"), std::string::npos);
  EXPECT_NE(refusal(&Tuning::Identity::layout).find("another layout"), std::string::npos);
  EXPECT_TRUE(Tuning::parse(text, nullptr).ok());
}

// Cut anywhere, or with any byte changed: it is read or refused, and nothing else happens.
TEST(Tuning, ADamagedFileIsRefused) {
  const std::string text = some().text(kHere);
  for (size_t length = 0; length + 2 < text.size(); length += 7)
    EXPECT_FALSE(Tuning::parse(text.substr(0, length), &kHere).ok()) << length;
  sim::Random random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string changed = text;
    changed[random.below(changed.size())] = static_cast<char>(random.below(256));
    (void)Tuning::parse(changed, &kHere);
  }
  for (const char* const wrong : {"", "{}", "[]", "null", "{\"ibcoll_tuning\": 2}"})
    EXPECT_FALSE(Tuning::parse(wrong, &kHere).ok()) << wrong;
  std::string unknown = text;
  unknown.replace(unknown.find("\"ring\""), 6, "\"rung\"");
  const Result<Tuning> read = Tuning::parse(unknown, &kHere);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.status().text().find("'rung' is not an algorithm of allgather"), std::string::npos);
}

TEST(Tuning, TheFileIsInTheCacheOfTheUser) {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  const std::string cache_before = cache ? cache : "", home_before = home ? home : "";
  ::setenv("XDG_CACHE_HOME", "/cache", 1);
  ::setenv("HOME", "/home/someone", 1);
  const std::string path = tuning_path("", kHere);
  EXPECT_TRUE(path.starts_with("/cache/ibcoll/tuning-")) << path;
  EXPECT_EQ(tuning_path("", kHere), path);
  Tuning::Identity other = kHere;
  other.layout = "5 ranks on 1 nodes, 2.5 a core";
  EXPECT_NE(tuning_path("", other), path);
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_TRUE(tuning_path("", kHere).starts_with("/home/someone/.cache/ibcoll/tuning-"));
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");
  EXPECT_EQ(tuning_path("", kHere), "");
  EXPECT_EQ(tuning_path("off", kHere), "");
  EXPECT_EQ(tuning_path("/a/file", kHere), "/a/file");
  if (cache) ::setenv("XDG_CACHE_HOME", cache_before.c_str(), 1);
  if (home) ::setenv("HOME", home_before.c_str(), 1);
}

TEST_F(TuningFileTest, IsWrittenWholeAndReplaced) {
  const std::string path = at("a/b/tuning.json");
  for (const char* const text : {"first", "second"}) {
    ASSERT_TRUE(write_tuning(path, text).ok());
    EXPECT_EQ(read_tuning(path).value(), text);
  }
  EXPECT_EQ(files(), std::vector<std::string>{"a"});
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(at("a/b")), std::filesystem::directory_iterator()), 1);
}

TEST_F(TuningFileTest, AFileThatIsNotThereIsNoError) {
  const Result<std::string> text = read_tuning(at("none"));
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text.value(), "");
}

TEST_F(TuningFileTest, WhatCannotBeReadIsNamed) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  for (const std::string& path : {at("pipe"), at("."), std::string("/dev/zero")}) {
    const Result<std::string> text = read_tuning(path);
    ASSERT_FALSE(text.ok()) << path;
    EXPECT_NE(text.status().text().find(path), std::string::npos);
  }
  std::ofstream(at("long")) << std::string(Tuning::kMostBytes + 1, ' ');
  EXPECT_FALSE(read_tuning(at("long")).ok());
}

// The limit of a file's size stands for a full disk: what was there stays, and nothing is left beside it.
TEST_F(TuningFileTest, AFullDiskLeavesTheOldFile) {
  ASSERT_TRUE(write_tuning(at("file"), "old").ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 100;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = write_tuning(at("file"), std::string(1000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.text().find("cannot write"), std::string::npos) << status.text();
  EXPECT_EQ(read_tuning(at("file")).value(), "old");
  EXPECT_EQ(files(), std::vector<std::string>{"file"});
}

TEST_F(TuningFileTest, WhatCannotBeWrittenIsNamed) {
  std::ofstream(at("file")) << "no folder";
  const Status status = write_tuning(at("file/tuning.json"), "text");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.text().find("file/tuning.json"), std::string::npos);
}

}  // namespace
}  // namespace ibcoll
