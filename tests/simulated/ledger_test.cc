// SPDX-License-Identifier: BSD-3-Clause
// Tests what ibcoll_sim counts, and what it says of its model.
#include "tools/ibcoll_sim/ledger.h"

#include <gtest/gtest.h>

#include "runtime/engine/channel.h"
#include "tools/ibcoll_sim/calls.h"
#include "tools/ibcoll_sim/model.h"

namespace ibcoll::simulator {
namespace {

class LedgerTest : public testing::Test {
 protected:
  static sim::Params params() {
    sim::Params params;
    params.ranks = 4;
    params.node_of = {0, 0, 1, 1};
    return params;
  }
  void send(int from, int to, NoteKind kind = NoteKind::kEager, uint64_t bytes = 10) {
    sim::Message message;
    message.from = from;
    message.to = to;
    message.note.kind = static_cast<uint16_t>(kind);
    message.bytes = bytes;
    ledger_.posts(message);
    ledger_.taken(message, 0);
  }

  sim::Network network_{params()};
  Ledger ledger_{network_, nullptr};
};

TEST_F(LedgerTest, RoundsAreTheLongestChain) {
  send(0, 1);
  send(1, 2);
  EXPECT_EQ(ledger_.rounds(), 2u);
  send(0, 2);  // a message of a shorter chain shortens none
  send(2, 3);
  EXPECT_EQ(ledger_.rounds(), 3u);
  send(0, 3, NoteKind::kAnnounce);
  EXPECT_EQ(ledger_.rounds(), 3u);
}

TEST_F(LedgerTest, ChainsGoThroughTheMemoryOfANode) {
  send(2, 0);
  ledger_.shows(0, 0);
  send(1, 3);
  EXPECT_EQ(ledger_.rounds(), 1u);
  ledger_.looks(1);
  send(1, 3);
  EXPECT_EQ(ledger_.rounds(), 2u);
}

TEST_F(LedgerTest, DataIsToldFromControlMessages) {
  for (const NoteKind kind : {NoteKind::kEager, NoteKind::kSpill, NoteKind::kFragment, NoteKind::kLanded}) {
    send(0, 2, kind);
    send(0, 1, kind, 7);
  }
  for (const NoteKind kind : {NoteKind::kAnnounce, NoteKind::kConsumed, NoteKind::kCompleted}) send(0, 2, kind);
  EXPECT_EQ(ledger_.between_nodes().messages, 4u);
  EXPECT_EQ(ledger_.between_nodes().bytes, 40u);
  EXPECT_EQ(ledger_.within_nodes().messages, 4u);
  EXPECT_EQ(ledger_.within_nodes().bytes, 28u);
  EXPECT_EQ(ledger_.control_messages(), 3u);
}

TEST(SimModel, ShapesOfTeams) {
  Options options;
  options.ranks = 7;
  options.nodes = 3;
  const Shape some = team_shape(options);
  EXPECT_EQ(some.fewest_local, 2);
  EXPECT_EQ(some.most_local, 3);
  EXPECT_EQ(some.area_bytes, options.window_bytes);
  EXPECT_FALSE(some.single_copy);
  options.nodes = 7;
  EXPECT_EQ(team_shape(options).area_bytes, 0u);
  options.nodes = 1;
  EXPECT_TRUE(team_shape(options).single_copy);
}

// The rank with most to send decides, and the one with most to receive, whichever they are.
TEST(SimModel, AddressesAreForTheLargestBuffers) {
  oracle::CallParams params;
  params.collective = IBCOLL_ALLTOALLV;
  params.p = 4;
  params.sizes = [](int source, int destination) {
    return uint64_t{source == 3 ? 1000u : destination == 2 ? 50u : 1u};
  };
  const Calls calls(params, false);
  ASSERT_TRUE(calls.status().ok());
  EXPECT_EQ(calls.nothing().size(), 4000u + 1150u);
}

// One message takes alpha + gap, one more of a stream the gap.
TEST(SimModel, CostsAreThoseOfTheLinksInUse) {
  Options options;
  options.ranks = 4;
  options.alpha_us = 9, options.gap_us = 2, options.node_alpha_us = 3, options.node_gap_us = 1;
  for (const int nodes : {1, 2}) {
    options.nodes = nodes;
    const CostModel model = cost_model(options);
    EXPECT_EQ(model.alpha_us, nodes == 1 ? 2 : 7);
    EXPECT_EQ(model.cpu_us, nodes == 1 ? 0.5 : 1);
    EXPECT_NEAR(model.beta_us, nodes == 1 ? 1e-4 : 8e-5, 1e-9);
  }
}

}  // namespace
}  // namespace ibcoll::simulator
