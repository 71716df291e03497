// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/base/status.h"

#include <gtest/gtest.h>

namespace ibcoll {
namespace {

TEST(Status, DefaultIsOkWithoutText) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), IBCOLL_OK);
  EXPECT_TRUE(status.text().empty());
}

TEST(Status, ErrorKeepsClassAndText) {
  const Status status = error(IBCOLL_ERR_TIMEOUT, "rank {}: no answer from rank {}", 3, 7);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), IBCOLL_ERR_TIMEOUT);
  EXPECT_EQ(status.text(), "rank 3: no answer from rank 7");
}

TEST(Status, OkCodeDropsTheText) {
  const Status status(IBCOLL_OK, "never seen");
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(status.text().empty());
}

TEST(Status, CopiesShareOneError) {
  const Status first = error(IBCOLL_ERR_SYSTEM, "disk full");
  const Status second = first;
  EXPECT_EQ(&first.text(), &second.text());
}

TEST(Result, HoldsValueOrStatus) {
  const Result<int> good(5);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good.value(), 5);
  EXPECT_TRUE(good.status().ok());

  const Result<int> bad(error(IBCOLL_ERR_NO_MEMORY, "none left"));
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().code(), IBCOLL_ERR_NO_MEMORY);
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> owned(std::make_unique<int>(9));
  ASSERT_TRUE(owned.ok());
  const std::unique_ptr<int> taken = std::move(*owned);
  EXPECT_EQ(*taken, 9);
}

}  // namespace
}  // namespace ibcoll
