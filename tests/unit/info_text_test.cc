// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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
}

TEST(TextTree, EmptyAndUnknownAreSaid) {
  EXPECT_EQ(text_tree(json{{"a", json::array()}, {"b", json::object()}, {"c", nullptr}}, 0),
            "a: none\nb: none\nc: unknown\n");
  EXPECT_EQ(text_tree(json{{"texts", {"x", "y"}}}, 0), "texts: x, y\n");
}

}  // namespace
}  // namespace ibcoll::info
