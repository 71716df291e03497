// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/arguments.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/unit/arguments_of.h"

namespace ibcoll {
namespace {

constexpr int kRanks = 3, kRank = 1;
constexpr uint64_t kBlock = 16;

class Arguments : public testing::Test {
 protected:
  ibcoll_collective_args_t args(ibcoll_collective_t collective) {
    return arguments_of(collective, send_, recv_, kBlock, counts_.data(), displacements_.data(), 4, IBCOLL_INT32);
  }
  std::string refusal(const ibcoll_collective_args_t& a) {
    const Result<Args> checked = check_arguments(a, kRank, kRanks);
    EXPECT_EQ(checked.status().code(), checked.ok() ? IBCOLL_OK : IBCOLL_ERR_INVALID_ARGUMENT);
    return checked.status().text();
  }
  uint32_t signature(const ibcoll_collective_args_t& a, const char* algorithm = "ring",
                     ibcoll_scheme_t scheme = IBCOLL_SCHEME_AUTO) {
    Result<Args> checked = check_arguments(a, kRank, kRanks);
    EXPECT_TRUE(checked.ok()) << checked.status().text();
    return checked.ok() ? call_signature(*checked, algorithm, scheme, kRanks) : 0;
  }

  std::byte send_[256], recv_[256];
  std::vector<uint64_t> counts_{kBlock, kBlock, kBlock}, displacements_{0, kBlock, 2 * kBlock};
};

TEST_F(Arguments, GoodOnesPass) {
  for (int i = 0; i < kCollectives; ++i) EXPECT_EQ(refusal(args(static_cast<ibcoll_collective_t>(i))), "") << i;
}

// What is left in a field that a collective does not use is no part of the call.
TEST_F(Arguments, OnlyRootedCollectivesHaveARoot) {
  for (int i = 0; i < kCollectives; ++i) {
    ibcoll_collective_args_t a = args(static_cast<ibcoll_collective_t>(i)), b = a;
    a.root = 0, b.root = 1;
    EXPECT_EQ(signature(a) == signature(b), !kCatalog[i].rooted) << i;
  }
}

TEST_F(Arguments, NothingNeedsNoBuffer) {
  counts_ = {0, 0, 0};
  for (int i = 0; i < kCollectives; ++i) {
    ibcoll_collective_args_t a = args(static_cast<ibcoll_collective_t>(i));
    a.send = a.recv = nullptr;
    a.bytes = a.count = 0;
    EXPECT_EQ(refusal(a), "") << i;
  }
}

TEST_F(Arguments, TheRefusalNamesRankCollectiveAndReason) {
  ibcoll_collective_args_t a = args(IBCOLL_ALLGATHER);
  a.recv = nullptr;
  const std::string text = refusal(a);
  EXPECT_NE(text.find("rank 1: allgather: recv is NULL"), std::string::npos) << text;
}

// Blocks may touch, lie in any order and leave gaps; those of nothing may lie anywhere.
TEST_F(Arguments, BlocksMayLieAnyhow) {
  displacements_ = {2 * kBlock, 0, 5 * kBlock};
  EXPECT_EQ(refusal(args(IBCOLL_ALLGATHERV)), "");
  EXPECT_EQ(refusal(args(IBCOLL_ALLTOALLV)), "");
  counts_[0] = 0;
  displacements_[0] = ~uint64_t{0};
  EXPECT_EQ(refusal(args(IBCOLL_ALLGATHERV)), "");
}

// The same bytes may be sent to several ranks, but not received from several.
TEST_F(Arguments, SendBlocksMayOverlapEachOther) {
  const std::vector<uint64_t> same = {0, 0, 0};
  ibcoll_collective_args_t a = args(IBCOLL_ALLTOALLV);
  a.send_displacements = same.data();
  EXPECT_EQ(refusal(a), "");
  a = args(IBCOLL_ALLTOALLV);
  a.recv_displacements = same.data();
  EXPECT_NE(refusal(a).find("overlap"), std::string::npos);
}

// Receive blocks may, where the caller asks for that; a block that is read never does.
TEST_F(Arguments, ReceiveBlocksOverlapEachOtherWhereThatIsAllowed) {
  ibcoll_collective_args_t a = args(IBCOLL_ALLGATHERV);
  displacements_ = {0, kBlock / 2, 0};
  EXPECT_NE(refusal(a).find("overlap"), std::string::npos);
  EXPECT_TRUE(check_arguments(a, kRank, kRanks, Overlap::kAllowed).ok());
  a.send = recv_ + kBlock;
  EXPECT_FALSE(check_arguments(a, kRank, kRanks, Overlap::kAllowed).ok());
}

// Whose hulls do.
TEST_F(Arguments, BlocksMayInterleave) {
  ibcoll_collective_args_t a = args(IBCOLL_ALLTOALLV);
  std::vector<uint64_t> between{3 * kBlock, kBlock, 5 * kBlock};
  displacements_ = {4 * kBlock, 0, 2 * kBlock};
  a.recv = send_;
  a.recv_displacements = between.data();
  EXPECT_EQ(refusal(a), "");
  between[0] = 2 * kBlock;
  EXPECT_NE(refusal(a).find("overlap"), std::string::npos);
}

TEST_F(Arguments, OverlapsAreFoundThroughOthers) {
  counts_ = {100, 4, 4};
  displacements_ = {0, 10, 50};  // both lie within block 0, apart from each other
  EXPECT_NE(refusal(args(IBCOLL_ALLGATHERV)).find("block 0"), std::string::npos);
  ibcoll_collective_args_t a = args(IBCOLL_ALLTOALL);
  a.send = recv_ + kRanks * kBlock;  // touches
  EXPECT_EQ(refusal(a), "");
  a.send = recv_ + kRanks * kBlock - 1;
  EXPECT_NE(refusal(a).find("overlap"), std::string::npos);
}

TEST_F(Arguments, InPlaceNeedsNoSendArguments) {
  for (const auto collective :
       {IBCOLL_ALLGATHER, IBCOLL_ALLGATHERV, IBCOLL_ALLTOALL, IBCOLL_ALLTOALLV, IBCOLL_ALLREDUCE}) {
    ibcoll_collective_args_t a = args(collective);
    a.send = IBCOLL_IN_PLACE;
    a.send_counts = a.send_displacements = nullptr;
    EXPECT_EQ(refusal(a), "");
    EXPECT_TRUE(check_arguments(a, kRank, kRanks).value().in_place);
  }
}

// A root in place has its block where the list says, of that size: `bytes` is no part of its call.
TEST_F(Arguments, ARootInPlaceNeedsNoBytes) {
  for (const auto collective : {IBCOLL_GATHERV, IBCOLL_SCATTERV}) {
    ibcoll_collective_args_t a = args(collective);
    a.root = kRank;
    a.bytes = kBlock + 1;
    EXPECT_NE(refusal(a).find("bytes is 17, but the root's list says 16"), std::string::npos) << refusal(a);
    if (collective == IBCOLL_GATHERV)
      a.send = IBCOLL_IN_PLACE;
    else
      a.recv = IBCOLL_IN_PLACE;
    EXPECT_EQ(refusal(a), "") << kCatalog[collective].name;
  }
}

// Also for blocks of no bytes, for which the address does not matter.
TEST_F(Arguments, InPlaceElsewhereIsRefused) {
  const auto refused = [&](ibcoll_collective_t collective, bool as_recv, const char* rule) {
    for (const uint64_t bytes : {kBlock, uint64_t{0}}) {
      ibcoll_collective_args_t a = args(collective);
      a.root = kRank + 1;
      a.bytes = bytes;
      if (as_recv)
        a.recv = IBCOLL_IN_PLACE;
      else
        a.send = IBCOLL_IN_PLACE;
      EXPECT_NE(refusal(a).find(rule), std::string::npos) << kCatalog[collective].name << ": " << refusal(a);
    }
  };
  refused(IBCOLL_BCAST, true, "is IBCOLL_IN_PLACE, which bcast takes nowhere");
  for (const auto collective : {IBCOLL_GATHER, IBCOLL_GATHERV, IBCOLL_REDUCE})
    refused(collective, false, "takes as send at the root only (rank 2)");
  for (const auto collective : {IBCOLL_SCATTER, IBCOLL_SCATTERV})
    refused(collective, true, "takes as recv at the root only (rank 2)");
  for (const auto collective : {IBCOLL_ALLGATHER, IBCOLL_ALLREDUCE, IBCOLL_SCAN, IBCOLL_REDUCE_SCATTER_BLOCK})
    refused(collective, true, "takes as send only");
}

TEST_F(Arguments, WithoutBuffersTheRestIsChecked) {
  const auto refusal_of = [](const ibcoll_collective_args_t& a) {
    return check_without_buffers(a, kRank, kRanks).status().text();
  };
  for (int i = 0; i < kCollectives; ++i) {
    ibcoll_collective_args_t a = args(static_cast<ibcoll_collective_t>(i));
    a.send = a.recv = nullptr;
    EXPECT_EQ(refusal_of(a), "") << i;
    a.send_displacements = a.recv_displacements = nullptr;
    EXPECT_EQ(refusal_of(a), "") << i;
    a.send_counts = nullptr;
    EXPECT_EQ(refusal_of(a), "") << i;
    a.recv_counts = nullptr;
    EXPECT_EQ(refusal_of(a), "") << i;
    a.scheme = static_cast<ibcoll_scheme_t>(7);
    EXPECT_NE(refusal_of(a).find("scheme is 7"), std::string::npos) << i;
    a.struct_size = 8;
    EXPECT_NE(refusal_of(a).find("struct_size is 8"), std::string::npos) << i;
  }
  ibcoll_collective_args_t a = args(IBCOLL_BCAST);
  a.root = kRanks;
  EXPECT_NE(refusal_of(a).find("root is 3"), std::string::npos);
  a = args(IBCOLL_ALLREDUCE);
  a.op = nullptr;
  EXPECT_NE(refusal_of(a).find("op is NULL"), std::string::npos);
  a = args(IBCOLL_ALLTOALLV);
  a.send_counts = a.recv_counts = nullptr;
  EXPECT_EQ(check_without_buffers(a, kRank, kRanks).value().recv.bytes, kBlock);
  a.bytes = ~uint64_t{0};
  EXPECT_NE(refusal_of(a).find("overflow"), std::string::npos);
}

TEST_F(Arguments, OperationsFitTheirTypes) {
  ibcoll_collective_args_t a = args(IBCOLL_ALLREDUCE);
  a.op = IBCOLL_MINLOC;
  EXPECT_NE(refusal(a).find("operation minloc is not defined for int32, which has sum, prod,"), std::string::npos);
  a.op = IBCOLL_BAND, a.type = IBCOLL_COMPLEX_FLOAT;
  EXPECT_NE(refusal(a).find("band is not defined for complex_float, which has sum, prod, replace"), std::string::npos);
  a.op = IBCOLL_MAXLOC, a.type = IBCOLL_DOUBLE_INT;
  EXPECT_EQ(refusal(a), "");
  EXPECT_EQ(check_arguments(a, kRank, kRanks)->bytes, 4u * 16);
}

TEST_F(Arguments, OnlyOpaqueElementsHaveASizeOfTheCaller) {
  ibcoll_collective_args_t a = args(IBCOLL_ALLREDUCE);
  a.element_bytes = 4;  // of int32
  EXPECT_EQ(refusal(a), "");
  a.element_bytes = 16;
  EXPECT_NE(refusal(a).find("element_bytes is 16, but type int32 has 4"), std::string::npos) << refusal(a);
  a.type = IBCOLL_OPAQUE, a.op = IBCOLL_REPLACE;
  EXPECT_EQ(refusal(a), "");
  EXPECT_EQ(check_arguments(a, kRank, kRanks)->bytes, 4u * 16);
  EXPECT_EQ(check_arguments(a, kRank, kRanks)->reduction.element_bytes(), 16u);
  a.element_bytes = 0;
  EXPECT_NE(refusal(a).find("element_bytes is 0"), std::string::npos) << refusal(a);
  a.element_bytes = ~uint64_t{0} / 2;
  EXPECT_NE(refusal(a).find("overflow 64 bits"), std::string::npos) << refusal(a);
}

TEST_F(Arguments, SignaturesTellCallsApart) {
  const uint32_t one = signature(args(IBCOLL_ALLGATHER));
  EXPECT_EQ(one, signature(args(IBCOLL_ALLGATHER)));
  EXPECT_NE(one, signature(args(IBCOLL_ALLTOALL)));
  EXPECT_NE(one, signature(args(IBCOLL_ALLGATHER), "bruck"));
  EXPECT_NE(one, signature(args(IBCOLL_ALLGATHER), "ring", IBCOLL_SCHEME_COPY));
  ibcoll_collective_args_t a = args(IBCOLL_ALLGATHER);
  a.bytes = kBlock + 1;
  EXPECT_NE(one, signature(a));
  a = args(IBCOLL_BCAST);
  const uint32_t root_0 = signature(a);
  a.root = 2;
  EXPECT_NE(root_0, signature(a));
  a = args(IBCOLL_ALLREDUCE);
  const uint32_t sum = signature(a);
  a.op = IBCOLL_MAX;
  EXPECT_NE(sum, signature(a));
  a = args(IBCOLL_ALLREDUCE);
  a.type = IBCOLL_FLOAT;
  EXPECT_NE(sum, signature(a));
  a.type = IBCOLL_OPAQUE, a.op = IBCOLL_REPLACE, a.element_bytes = 8, a.count = 0;
  const uint32_t eight = signature(a);
  a.element_bytes = 16;
  EXPECT_NE(eight, signature(a));
}

// What only this rank knows must not be part of it: buffers, and the counts of alltoallv.
TEST_F(Arguments, SignaturesAreTheSameOnAllRanks) {
  const uint32_t before = signature(args(IBCOLL_ALLTOALLV));
  counts_ = {1, 2, 3};
  displacements_ = {100, 50, 0};
  EXPECT_EQ(before, signature(args(IBCOLL_ALLTOALLV)));
  ibcoll_collective_args_t a = args(IBCOLL_ALLGATHER);
  const uint32_t here = signature(a);
  a.send = IBCOLL_IN_PLACE;
  a.recv = send_;
  EXPECT_EQ(here, signature(a));
  const uint32_t counts = signature(args(IBCOLL_ALLGATHERV));
  counts_[2] = 4;
  EXPECT_NE(counts, signature(args(IBCOLL_ALLGATHERV)));
}

// ---------------------------------------------------------------- calls that repeat an earlier one

class Repeated : public Arguments {
 protected:
  // The checked call, by a rank that keeps count arrays of its own, as a request does.
  void remember(const ibcoll_collective_args_t& call) {
    Reaches reaches;
    const Result<Args> checked = check_arguments(call, kRank, kRanks, Overlap::kRefused, &reaches);
    ASSERT_TRUE(checked.ok()) << checked.status().text();
    args_ = checked.value();
    held_.clear();
    held_.reserve(4 * kRanks);
    for (const uint64_t** array :
         {&args_.send.counts, &args_.send.displacements, &args_.recv.counts, &args_.recv.displacements}) {
      if (!*array) continue;
      held_.insert(held_.end(), *array, *array + kRanks);
      *array = held_.data() + held_.size() - kRanks;
    }
    repeated_.remember(call, args_, reaches);
  }
  bool allows(const ibcoll_collective_args_t& call) const { return repeated_.allows(call, args_, kRanks); }

  RepeatedCall repeated_;
  Args args_;
  std::vector<uint64_t> held_;
};

TEST_F(Repeated, OtherBuffersAreAllowed) {
  std::byte other_send[256], other_recv[256];
  for (int i = 0; i < kCollectives; ++i) {
    const ibcoll_collective_args_t call = args(static_cast<ibcoll_collective_t>(i));
    EXPECT_FALSE(RepeatedCall().allows(call, args_, kRanks)) << i;
    remember(call);
    ibcoll_collective_args_t again = call;
    EXPECT_TRUE(allows(again)) << i;
    again.send = other_send, again.recv = other_recv;
    EXPECT_TRUE(allows(again)) << i;
    again.send = recv_ + sizeof recv_ - 1, again.recv = send_;
    EXPECT_TRUE(allows(again)) << i;
  }
}

// Whatever else changes: what is allowed would pass the checks, and mean the same.
TEST_F(Repeated, OnlyWhatPassesTheChecksAndIsTheSameIsAllowed) {
  const std::vector<std::function<void(ibcoll_collective_args_t&)>> changes = {
      [](ibcoll_collective_args_t& a) { a.send = nullptr; },
      [](ibcoll_collective_args_t& a) { a.recv = nullptr; },
      [](ibcoll_collective_args_t& a) { a.send = IBCOLL_IN_PLACE; },
      [](ibcoll_collective_args_t& a) { a.recv = IBCOLL_IN_PLACE; },
      [](ibcoll_collective_args_t& a) { a.recv = reinterpret_cast<void*>(UINTPTR_MAX); },
      [this](ibcoll_collective_args_t& a) { a.send = recv_; },
      [this](ibcoll_collective_args_t& a) { a.send = recv_ + kBlock - 1; },
      [this](ibcoll_collective_args_t& a) { a.recv = send_ + kBlock - 1; },
      [this](ibcoll_collective_args_t& a) { a.recv = send_ + kRanks * kBlock - 1; },
      [](ibcoll_collective_args_t& a) { a.collective = IBCOLL_BARRIER; },
      [](ibcoll_collective_args_t& a) { a.collective = IBCOLL_EXSCAN; },
      [](ibcoll_collective_args_t& a) { a.bytes = kBlock - 1; },
      [](ibcoll_collective_args_t& a) { a.count = 3; },
      [](ibcoll_collective_args_t& a) { a.type = IBCOLL_FLOAT; },
      [](ibcoll_collective_args_t& a) { a.op = IBCOLL_MAX; },
      [](ibcoll_collective_args_t& a) { a.element_bytes = 8; },
      [](ibcoll_collective_args_t& a) { a.root = 1; },
      [](ibcoll_collective_args_t& a) { a.root = kRanks; },
      [](ibcoll_collective_args_t& a) { a.scheme = IBCOLL_SCHEME_COPY; },
      [](ibcoll_collective_args_t& a) { a.recv_counts = nullptr; },
      [](ibcoll_collective_args_t& a) { a.send_counts = nullptr; },
      [](ibcoll_collective_args_t& a) { a.recv_displacements = nullptr; },
      [](ibcoll_collective_args_t& a) { a.send_displacements = nullptr; },
      [this](ibcoll_collective_args_t&) { counts_[2] = kBlock - 4; },
      [this](ibcoll_collective_args_t&) { counts_[0] = 2 * kBlock; },
      [this](ibcoll_collective_args_t&) { displacements_[2] = 3 * kBlock; },
  };
  const std::vector<uint64_t> counts = counts_, displacements = displacements_;
  for (int i = 0; i < kCollectives; ++i) {
    for (int root : {0, 1}) {
      for (size_t change = 0; change < changes.size(); ++change) {
        counts_ = counts, displacements_ = displacements;
        ibcoll_collective_args_t call = args(static_cast<ibcoll_collective_t>(i));
        call.root = root;
        remember(call);
        changes[change](call);
        if (!allows(call)) continue;
        Result<Args> checked = check_arguments(call, kRank, kRanks);
        ASSERT_TRUE(checked.ok()) << "collective " << i << ", change " << change << ": " << checked.status().text();
        EXPECT_FALSE(checked->in_place);
        EXPECT_EQ(checked->bytes, args_.bytes) << i << ' ' << change;
        EXPECT_EQ(checked->count, args_.count) << i << ' ' << change;
        EXPECT_EQ(call_signature(*checked, "ring", call.scheme, kRanks),
                  call_signature(args_, "ring", IBCOLL_SCHEME_AUTO, kRanks))
            << i << ' ' << change;
        for (int block = 0; block < kRanks; ++block) {
          EXPECT_EQ(checked->recv.size(block), args_.recv.size(block)) << i << ' ' << change;
          if (!checked->send.displacements) continue;
          EXPECT_EQ(checked->send.offset(block), args_.send.offset(block)) << i << ' ' << change;
        }
      }
    }
  }
}

// A program may free its operation, and the next one may have its address.
TEST_F(Repeated, OperationsOfTheProgramAreCheckedEachTime) {
  ibcoll_op_t op = nullptr;
  ASSERT_EQ(ibcoll_op_create([](const void*, void*, uint64_t, ibcoll_type_t, void*) {}, nullptr, 1, &op), IBCOLL_OK);
  ibcoll_collective_args_t call = args(IBCOLL_ALLREDUCE);
  call.op = op;
  remember(call);
  EXPECT_FALSE(allows(call));
  EXPECT_EQ(ibcoll_op_free(op), IBCOLL_OK);
}

}  // namespace
}  // namespace ibcoll
