// SPDX-License-Identifier: BSD-3-Clause
// Modules of the same build are taken, others are not: they would call each other's functions with other arguments.
#include "runtime/machine/module.h"

#include <gtest/gtest.h>

#include <string>

namespace ibcoll {
namespace {

Result<void*> load(const std::string& name, const char* symbol = "ibcoll_of_module") {
  return module_function((IBCOLL_BUILD_MODULES "/libibcoll_" + name + "_build_module.so").c_str(), symbol);
}

TEST(Module, OfThisBuildIsTaken) {
  Result<void*> found = load("this");
  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_NE(*found, nullptr);
}

TEST(Module, OfAnotherBuildIsRefused) {
  for (const Result<void*>& found : {load("other"), load("unnamed"), load("this", "ibcoll_not_there")}) {
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.status().code(), IBCOLL_ERR_UNSUPPORTED);
    EXPECT_NE(found.status().text().find("another build"), std::string::npos) << found.status().text();
    EXPECT_NE(found.status().text().find(IBCOLL_BUILD_MODULES), std::string::npos) << found.status().text();
  }
}

TEST(Module, ThatIsNotThereIsNamed) {
  const Result<void*> found = load("missing");
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.status().text().find("libibcoll_missing_build_module.so"), std::string::npos);
}

}  // namespace
}  // namespace ibcoll
