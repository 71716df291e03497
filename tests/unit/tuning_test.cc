// SPDX-License-Identifier: BSD-3-Clause
// The file of timed choices, as jobs read it: what is wrong with a file is said.
#include "runtime/context/tuning.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/sim/random.h"

namespace ibcoll {
namespace {

const Tuning::Identity kHere{"0.1.0", "a processor, 2 CPUs", "shm", "4 ranks on 1 nodes, 2 a core"};

CallClass allgathers(uint64_t longest) {
  CallClass calls{.collective = IBCOLL_ALLGATHER};
  calls.longest = longest;
  calls.total = longest + 8;
  return calls;
}
const TeamLayout kTeam{4, 1, 4, 4, true};

std::string choice(uint64_t longest, const char* algorithm) {
  std::string text = Tuning::key(kTeam, allgathers(longest)).dump();
  text.pop_back();
  return text + fmt::format(R"(,"algorithm":"{}","trials":33,"us":1.25}})", algorithm);
}

// A file as ibcoll_tune writes it.
std::string some_file() {
  std::string text = kHere.json().dump();
  text.pop_back();
  return text + fmt::format(R"(,"ibcoll_tuning":1,"choices":[{},{}]}})", choice(20, "ring"), choice(30, "bruck")) +
         "\n";
}

class TuningFileTest : public testing::Test {
 protected:
  TuningFileTest() { folder_ = ::mkdtemp(folder_.data()); }
  ~TuningFileTest() override { std::filesystem::remove_all(folder_); }
  std::string at(const char* name) const { return folder_ + "/" + name; }

 private:
  std::string folder_ = testing::TempDir() + "tuning.XXXXXX";
};

TEST(Tuning, WhatIsWrittenIsRead) {
  const Result<Tuning> read = Tuning::parse(some_file(), &kHere);
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->size(), 2u);
  const Tuning::Entry* const found = read->find(kTeam, allgathers(30));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->algorithm, "bruck");
  EXPECT_EQ(found->trials, 33u);
  EXPECT_EQ(found->us, 1.25);
  EXPECT_EQ(read->find(kTeam, allgathers(31)), nullptr);
  TeamLayout other = kTeam;
  other.nodes = 2;
  EXPECT_EQ(read->find(other, allgathers(30)), nullptr);
}

// Sizes a quarter of an octave apart are one class.
TEST(Tuning, ClassesOfSizes) {
  EXPECT_EQ(size_class(64), size_class(79));
  EXPECT_NE(size_class(64), size_class(80));
  EXPECT_NE(size_class(6), size_class(7));
  for (uint64_t bytes = 1; bytes < 100'000; ++bytes) EXPECT_LE(size_class(bytes), size_class(bytes + 1));
}

TEST(Tuning, AForeignFileIsNamed) {
  const std::string text = some_file();
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
  const std::string text = some_file();
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
  for (const auto& [cut, why] :
       {std::pair{"{", "it is no JSON from byte"}, std::pair{R"({"ibcoll_tuning": 1})", "a member is missing"},
        std::pair{R"({"ibcoll_tuning": 1, "version": 3})", "another type"}}) {
    const Result<Tuning> read = Tuning::parse(cut, &kHere);
    ASSERT_FALSE(read.ok());
    EXPECT_NE(read.status().text().find(why), std::string::npos) << read.status().text();
  }
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

}  // namespace
}  // namespace ibcoll
