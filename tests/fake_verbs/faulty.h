// SPDX-License-Identifier: BSD-3-Clause
// The base that the tests of faults share: traffic of which all has to come, and losses that both sides report.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/world.h"
#include "tests/fake_verbs/group.h"
#include "tests/test_main.h"

namespace ibcoll::fake_verbs {

using conformance::fill;
using conformance::first_wrong;
using conformance::numbered;
using conformance::World;

class FaultTest : public ::testing::Test {
 protected:
  // The setting of tests that wait for a timeout: a device gives a packet up after 29 ms, a peer has 0.4 s to answer.
  static constexpr const char* kSoon = "IBCOLL_VERBS_TIMEOUT=10";
  // nullptr: a device cannot be opened.
  std::unique_ptr<World> make(int size, std::vector<const char*> settings = {});
  // As make(), with ranks 0 and 1 connected.
  std::unique_ptr<World> make_connected(int size, std::vector<const char*> settings = {});
  // The text with which `rank` has reported `peer` as lost; empty: it has not.
  static std::string lost(World& world, int rank, int peer);
  // The status of what `rank` itself lacks, as that report says; OK: nothing, or there is no report.
  static ibcoll_status_t lack(World& world, int rank, int peer);
  // In both directions messages of all lengths, short puts and long ones: each comes once, in order, with its bytes.
  void expect_traffic(World& world, int a, int b, uint32_t rounds = 12);
  // Until ranks 0 and 1 have lost each other, while both send: in seconds, and with this text on rank `first`. `both`:
  // false where the other rank cannot be reached, and does not notice.
  void expect_loss(World& world, int first, const std::string& text, bool both = true);
  // Polls until nothing is under way any more, not even acknowledgements.
  static void drain(World& world);
  static void expect_text(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in '" << text << "'";
  }

 private:
  uint32_t next_ = 1;
};

}  // namespace ibcoll::fake_verbs
