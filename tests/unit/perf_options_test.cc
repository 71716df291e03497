// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/options.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include <CLI/Error.hpp>
#include <iterator>

#include "perf/ibcoll_perf/plan.h"

namespace ibcoll::perf {
namespace {

using Sizes = std::vector<uint64_t>;

TEST(ParseSizes, FromMinByFactorToMaxItself) {
  EXPECT_EQ(parse_sizes("1:8", 2), (Sizes{1, 2, 4, 8}));
  EXPECT_EQ(parse_sizes("8:100", 4), (Sizes{8, 32, 100}));
  EXPECT_EQ(parse_sizes("0:2", 2), (Sizes{0, 1, 2}));
  EXPECT_EQ(parse_sizes("512K:1M", 2), (Sizes{524288, 1048576}));
  EXPECT_EQ(parse_sizes("64K", 2), (Sizes{65536}));
  EXPECT_EQ(parse_sizes("8:8", 2), (Sizes{8}));
}

TEST(ParseSizes, RefusesWhatIsNoRange) {
  for (const char* text : {"", ":", "1:", ":1", "8:1", "-1:4", "+1:4", " 1:4", "1:2:3", "1.5:8", "x", "1Q",
                           "99999999999999999999", "99999999999G"}) {
    EXPECT_THROW((void)parse_sizes(text, 2), CLI::ValidationError) << text;
  }
}

TEST(ParseSizes, LargestNumbersDoNotOverflow) {
  const Sizes sizes = parse_sizes("1:18446744073709551615", 1u << 31);
  EXPECT_EQ(sizes, (Sizes{1, 1ull << 31, 1ull << 62, UINT64_MAX}));
}

TEST(ParseOptions, SecondsAreANumberInRange) {
  for (const char* text : {"nan", "-nan", "NaN", "inf", "0", "-1", "86401", "1s", ""}) {
    const char* const words[] = {"ibcoll_perf", "barrier", "--seconds", text};
    Options options;
    const std::optional<EarlyEnd> end = parse_options(std::size(words), words, options);
    EXPECT_TRUE(end && end->status == 2 && end->error.find("--seconds") != std::string::npos) << text;
  }
  const char* const words[] = {"ibcoll_perf", "barrier", "--seconds", "1.5"};
  Options options;
  EXPECT_FALSE(parse_options(std::size(words), words, options));
  EXPECT_EQ(options.plan.budget_us, 1.5e6);
}

Options parsed(std::vector<const char*> words) {
  words.insert(words.begin(), "ibcoll_perf");
  Options options;
  const std::optional<EarlyEnd> end = parse_options(static_cast<int>(words.size()), words.data(), options);
  EXPECT_FALSE(end) << end->error;
  return options;
}

TEST(ParseOptions, AllCollectivesInTheirOrder) {
  const Options options = parsed({"all"});
  ASSERT_EQ(options.collectives.size(), static_cast<size_t>(kCollectives));
  for (int i = 0; i < kCollectives; ++i) EXPECT_EQ(options.collectives[static_cast<size_t>(i)], i);
  EXPECT_EQ(parsed({"gatherv"}).collectives, (std::vector{IBCOLL_GATHERV}));
}

TEST(ParseOptions, WordsThatDoNotGoTogether) {
  const std::vector<std::vector<const char*>> mistakes = {{"all", "--algorithm", "dissemination"},
                                                          {"all", "--algorithm", "ring"},
                                                          {"bcast", "--algorithm", "rong"},
                                                          {"allreduce", "--op", "minloc"},
                                                          {"allreduce", "--op", "band", "--type", "double"},
                                                          {"allreduce", "--op", "composition", "--type", "int32"},
                                                          {"bcast", "--message-cost", "1:2"},
                                                          {"allreduce", "--op", "sum", "--type", "double_int"}};
  for (std::vector<const char*> words : mistakes) {
    words.insert(words.begin(), "ibcoll_perf");
    Options options;
    const std::optional<EarlyEnd> end = parse_options(static_cast<int>(words.size()), words.data(), options);
    EXPECT_TRUE(end && end->status == 2) << words[1] << " " << words[3];
  }
  EXPECT_EQ(parsed({"all", "--algorithm", "all"}).algorithm, "all");
  EXPECT_EQ(parsed({"allreduce", "--op", "minloc", "--type", "double_int"}).type, IBCOLL_DOUBLE_INT);
}

TEST(ParseOptions, ShortWordsMeanTheLongOnes) {
  const Options options = parsed({"scan", "-m", "4:16", "-i", "20", "-x", "3", "-f"});
  EXPECT_EQ(options.sizes, (Sizes{4, 8, 16}));
  EXPECT_EQ(options.plan.iterations, 20u);
  EXPECT_EQ(options.plan.warmup, 3);
  EXPECT_TRUE(options.full);
}

TEST(Plan, SizesAreWholeElementsOfTheType) {
  const Options options = parsed({"all", "-m", "1:16", "--type", "double"});
  EXPECT_EQ(sizes_of(options, kCatalog[IBCOLL_REDUCE]), (Sizes{8, 16}));
  EXPECT_EQ(sizes_of(options, kCatalog[IBCOLL_GATHER]), (Sizes{1, 2, 4, 8, 16}));
  EXPECT_EQ(sizes_of(options, kCatalog[IBCOLL_BARRIER]), (Sizes{0}));
}

TEST(Plan, TypesFitTheSizeAndTheOperation) {
  EXPECT_EQ(element_type(parsed({"reduce"}), 24), IBCOLL_DOUBLE);
  EXPECT_EQ(element_type(parsed({"reduce"}), 12), IBCOLL_FLOAT);
  EXPECT_EQ(element_type(parsed({"reduce"}), 3), IBCOLL_UINT8);
  EXPECT_EQ(element_type(parsed({"reduce", "--op", "bor"}), 12), IBCOLL_UINT32);
  EXPECT_EQ(element_type(parsed({"reduce", "--op", "composition"}), 3), IBCOLL_UINT64);
}

TEST(Plan, BlocksAreThoseOfTheDistribution) {
  const Options options = parsed({"all", "--distribution", "half_full", "--root", "1"});
  EXPECT_EQ(call_params(options, kCatalog[IBCOLL_GATHERV], 4, 10).block_bytes(2, 1), 20u);
  EXPECT_EQ(call_params(options, kCatalog[IBCOLL_SCATTERV], 4, 10).block_bytes(1, 3), 0u);
  EXPECT_EQ(call_params(options, kCatalog[IBCOLL_ALLTOALLV], 4, 10).block_bytes(2, 3), 20u);
  EXPECT_EQ(call_params(options, kCatalog[IBCOLL_REDUCE_SCATTER], 4, 16).block_bytes(3, 2), 32u);
  EXPECT_EQ(call_params(options, kCatalog[IBCOLL_GATHER], 4, 10).block_bytes(3, 1), 10u);
  EXPECT_EQ(call_params(options, kCatalog[IBCOLL_SCATTERV], 4, 10).root, 1);
}

}  // namespace
}  // namespace ibcoll::perf
