// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/options.h"

#include <gtest/gtest.h>

namespace ibcoll::run {
namespace {

using Words = std::vector<const char*>;

ParsedOptions parsed(Words words) {
  words.insert(words.begin(), "ibcoll_run");
  return parse_options(static_cast<int>(words.size()), words.data());
}

// The options of a command line that is right.
Options options_of(const Words& words) {
  const ParsedOptions result = parsed(words);
  EXPECT_FALSE(result.stop) << result.text;
  return result.options;
}

std::string mistake_in(const Words& words) {
  const ParsedOptions result = parsed(words);
  EXPECT_TRUE(result.stop);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(result.text.starts_with("ibcoll_run: ")) << result.text;
  EXPECT_EQ(std::count(result.text.begin(), result.text.end(), '\n'), 1) << result.text;
  return result.text;
}

TEST(Options, EndAtTheProgram) {
  const Options options =
      options_of({"-n", "4", "--nodes", "2", "-x", "A=1", "-x", "B", "prog", "-n", "7", "--help", "--", "x"});
  EXPECT_EQ(options.ranks(), 4);
  EXPECT_EQ(options.nodes, 2);
  EXPECT_EQ(options.programs.front().exports, (std::vector<std::string>{"A=1", "B"}));
  EXPECT_EQ(options.programs.front().program, (std::vector<std::string>{"prog", "-n", "7", "--help", "--", "x"}));
}

TEST(Options, RdmaInMemory) {
  EXPECT_FALSE(options_of({"prog"}).rdma_in_memory);
  EXPECT_TRUE(options_of({"--rdma-in-memory", "prog"}).rdma_in_memory);
}

TEST(Options, DashesMaySeparateTheProgram) {
  const Options options = options_of({"-n", "1", "--", "prog", "-x", ":", "y"});
  EXPECT_EQ(options.programs.front().program, (std::vector<std::string>{"prog", "-x", ":", "y"}));
}

TEST(Options, Mistakes) {
  for (const Words& words : std::vector<Words>{{},
                                               {"-n", "4"},
                                               {"-n", "0", "prog"},
                                               {"-n", "x", "prog"},
                                               {"-n"},
                                               {"--nodes", "0", "prog"},
                                               {"--net", "smoke", "prog"},
                                               {"--timeout", "-1", "prog"},
                                               {"--timeout", "0", "prog"},
                                               {"--np=", "prog"},
                                               {"--ntasks=", "4", "prog"},
                                               {"--host=", "prog"},
                                               {"--nodelist=", "prog"},
                                               {"--timeout", "soon", "prog"},
                                               {"--timeout", "nan", "prog"},
                                               {"--timeout", "inf", "prog"},
                                               {"--unknown", "prog"},
                                               {"-unknown", "prog"},
                                               {"-", "prog"},
                                               {"-N", "0", "prog"},
                                               {"--map-by", "socket", "prog"},
                                               {"--bind-to", "l3cache", "prog"},
                                               {"--bind-to", "core", "--no-bind", "prog"},
                                               {"--bind-to", "numa", "--cpus-per-rank", "2", "prog"},
                                               {"--pty", "--no-pty", "prog"},
                                               {"--host", "a", "--hostfile", "f", "prog"},
                                               {"--host", "a", "--nodes", "2", "prog"}}) {
    mistake_in(words);
  }
}

TEST(Options, Help) {
  const ParsedOptions result = parsed({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.text.find("ibcoll_run [OPTIONS] PROGRAM [ARGUMENTS...]"), std::string::npos) << result.text;
}

TEST(Options, AsMpirunAndSrunSpellThem) {
  for (const char* ranks : {"-n", "-np", "--np", "--ntasks"}) EXPECT_EQ(options_of({ranks, "4", "prog"}).ranks(), 4);
  EXPECT_EQ(options_of({"--ntasks=4", "prog"}).ranks(), 4);
  EXPECT_EQ(options_of({"-n4", "prog"}).ranks(), 4);
  for (const char* hosts : {"-H", "-host", "--host", "-hosts", "-w", "--nodelist"})
    EXPECT_EQ(options_of({hosts, "a,b", "prog"}).hosts, "a,b") << hosts;
  for (const char* file : {"-hostfile", "-machinefile", "--machinefile", "-f"})
    EXPECT_EQ(options_of({file, "list", "prog"}).hostfile, "list") << file;
  for (const char* folder : {"-wdir", "--wdir", "-wd", "-D", "--chdir"})
    EXPECT_EQ(options_of({folder, "/tmp", "prog"}).programs.front().folder, "/tmp") << folder;
  for (const char* each : {"-N", "-npernode", "-ppn", "--ntasks-per-node"})
    EXPECT_EQ(options_of({each, "3", "prog"}).per_node, 3) << each;
  for (const char* more : {"-oversubscribe", "--oversubscribe", "-O", "--overcommit"})
    EXPECT_TRUE(options_of({more, "prog"}).oversubscribe) << more;
  for (const char* cores : {"--cpus-per-rank", "--cpus-per-proc", "--cpus-per-task"})
    EXPECT_EQ(options_of({cores, "2", "prog"}).cpus_per_rank, 2) << cores;
  EXPECT_EQ(options_of({"-map-by", "node", "prog"}).map_by, "node");
  EXPECT_EQ(options_of({"-bynode", "prog"}).map_by, "node");
  EXPECT_EQ(options_of({"-bind-to", "none", "prog"}).bind_to, "none");
  EXPECT_TRUE(options_of({"-report-bindings", "prog"}).report_bindings);
  EXPECT_TRUE(options_of({"-tag-output", "prog"}).tag_output);
}

TEST(Options, WhatIsAskedForBinds) {
  EXPECT_EQ(options_of({"prog"}).bind_to, "");
  EXPECT_EQ(options_of({"--no-bind", "prog"}).bind_to, "none");
  EXPECT_EQ(options_of({"--cpus-per-rank", "2", "prog"}).bind_to, "core");
}

TEST(Options, Terminals) {
  EXPECT_FALSE(options_of({"prog"}).pty.has_value());
  EXPECT_EQ(options_of({"--pty", "prog"}).pty, true);
  EXPECT_EQ(options_of({"--no-pty", "prog"}).pty, false);
}

TEST(Options, SeveralPrograms) {
  const Options options = options_of(
      {"-np", "1", "--timeout", "3", "-x", "A=1", "a", "x", ":", "-n", "2", "-wdir", "/tmp", "b", "-n", "9"});
  ASSERT_EQ(options.programs.size(), 2U);
  EXPECT_EQ(options.ranks(), 3);
  EXPECT_EQ(options.timeout, 3);
  EXPECT_EQ(options.programs[0].program, (std::vector<std::string>{"a", "x"}));
  EXPECT_EQ(options.programs[0].exports, (std::vector<std::string>{"A=1"}));
  EXPECT_EQ(options.programs[1].program, (std::vector<std::string>{"b", "-n", "9"}));
  EXPECT_EQ(options.programs[1].folder, "/tmp");
  EXPECT_EQ(options.programs[1].exports, std::vector<std::string>());
}

TEST(Options, MistakesWithSeveralPrograms) {
  EXPECT_NE(mistake_in({"-n", "1", "a", ":", "b"}).find("b: how many ranks?"), std::string::npos);
  EXPECT_NE(mistake_in({"a", ":", "-n", "1", "b"}).find("a: how many ranks?"), std::string::npos);
  EXPECT_NE(mistake_in({"-n", "1", "a", ":"}).find("':' separates programs"), std::string::npos);
  EXPECT_NE(mistake_in({"-n", "1", "a", ":", "-n", "1"}).find("which PROGRAM?"), std::string::npos);
  EXPECT_NE(mistake_in({"-n", "1", "a", ":", "-n", "x", "b"}).find("-n"), std::string::npos);
  EXPECT_NE(mistake_in({"-n", "1", "a", ":", "--frob", "b"}).find("unknown option --frob"), std::string::npos);
  EXPECT_NE(mistake_in({"-n", "1", "a", ":", "-n", "1", "--timeout", "3", "b"})
                .find("--timeout is for all programs: it stands before the first"),
            std::string::npos);
}

}  // namespace
}  // namespace ibcoll::run
