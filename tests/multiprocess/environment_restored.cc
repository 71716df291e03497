// SPDX-License-Identifier: BSD-3-Clause
// Tests here set variables that the ranks they fork inherit. After each test the environment is what it was before, so
// that no test depends on which one ran before it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace ibcoll::multiprocess {
namespace {

class RestoredEnvironment : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    before_.clear();
    for (char** variable = environ; *variable; ++variable) {
      const std::string text = *variable;
      const size_t equals = text.find('=');
      before_.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  void OnTestEnd(const testing::TestInfo&) override {
    ::clearenv();
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  std::vector<std::pair<std::string, std::string>> before_;
};

[[maybe_unused]] const bool kListens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new RestoredEnvironment);  // GoogleTest deletes it
  return true;
}();

}  // namespace
}  // namespace ibcoll::multiprocess
