// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/ibcoll_info/selection.h"
#include "tools/ibcoll_info/text_tree.h"

namespace ibcoll::info {
namespace {

using nlohmann::json;

TEST(TextTree, NestsByIndentation) {
  EXPECT_EQ(text_tree(json{{"name", "shm"}, {"model", {{"alpha_us", 0.5}}}}, 2),
            "  model:\n    alpha_us: 0.5\n  name: shm\n");
}

TEST(TextTree, RunsOfNumbersAreShort) {
  EXPECT_EQ(text_tree(json{{"ranks", {0, 1, 2, 3, 8}}}, 0), "ranks: 0-3,8\n");
  EXPECT_EQ(text_tree(json{{"ranks", {4, 5, 9}}}, 0), "ranks: 4,5,9\n");
  EXPECT_EQ(text_tree(json{{"ranks", {7}}}, 0), "ranks: 7\n");
}

TEST(TextTree, ListsOfObjectsGoByTheirNames) {
  EXPECT_EQ(text_tree(json::array({{{"name", "ucx"}, {"used", false}}, {{"used", true}}}), 0),
            "ucx:\n  used: no\n1:\n  used: yes\n");
  EXPECT_EQ(text_tree(json::array({{{"name", "ucx"}}}), 0), "ucx:\n  name: ucx\n") << "nothing else to say";
}

TEST(TextTree, EmptyAndUnknownAreSaid) {
  EXPECT_EQ(text_tree(json{{"a", json::array()}, {"b", json::object()}, {"c", nullptr}, {"d", ""}}, 0),
            "a: none\nb: none\nc: unknown\nd: none\n");
  EXPECT_EQ(text_tree(json{{"texts", {"x", "y"}}}, 0), "texts: x, y\n");
}

TEST(SelectionText, JoinsNeighboursWithOneAlgorithm) {
  const std::string text = selection_text({{8, "ring", "lowest predicted cost: ring 1 us"},
                                           {16, "ring", "lowest predicted cost: ring 2 us"},
                                           {32, "bruck", "demanded by IBCOLL_ALLGATHER"},
                                           {64, "", "'x' does not apply"}});
  EXPECT_EQ(text,
            "    8 to 16        ring\n"
            "      at 8: lowest predicted cost: ring 1 us\n"
            "      at 16: lowest predicted cost: ring 2 us\n"
            "    32             bruck: demanded by IBCOLL_ALLGATHER\n"
            "    64             'x' does not apply\n");
}

TEST(SizeText, UsesASuffixWhereItIsExact) {
  EXPECT_EQ(size_text(0), "0");
  EXPECT_EQ(size_text(1000), "1000");
  EXPECT_EQ(size_text(65536), "64K");
  EXPECT_EQ(size_text(1048577), "1048577");
  EXPECT_EQ(size_text(uint64_t{3} << 30), "3G");
  EXPECT_EQ(size_text(uint64_t{3} << 40), "3072G");
}

}  // namespace
}  // namespace ibcoll::info
