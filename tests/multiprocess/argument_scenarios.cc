// SPDX-License-Identifier: BSD-3-Clause
// Arguments that are wrong: the error says which and why, nothing is done, and the team works on.
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

constexpr uint64_t kBlock = 64;

// Good arguments of a collective, to be spoilt.
struct Arguments {
  explicit Arguments(int size)
      : p(static_cast<uint64_t>(size)), send(p * kBlock), recv(p * kBlock), counts(p, kBlock), displacements(p) {
    for (uint64_t i = 0; i < p; ++i) displacements[i] = i * kBlock;
  }
  ibcoll_collective_args_t of(ibcoll_collective_t collective) {
    ibcoll_collective_args_t args{};
    args.struct_size = sizeof args;
    args.collective = collective;
    args.send = send.data();
    args.recv = recv.data();
    args.bytes = kBlock;
    args.send_counts = args.recv_counts = counts.data();
    args.send_displacements = args.recv_displacements = displacements.data();
    args.count = kBlock;
    args.type = IBCOLL_UINT8;
    args.op = IBCOLL_SUM;
    return args;
  }

  uint64_t p;
  std::vector<std::byte> send, recv;
  std::vector<uint64_t> counts, displacements, less;
};

using Spoil = std::function<void(ibcoll_collective_args_t&, Arguments&)>;

class Refusals {
 public:
  explicit Refusals(Rank& self) : self_(self) {}

  void refuse(ibcoll_collective_t collective, const char* why, const Spoil& spoil,
              ibcoll_status_t status = IBCOLL_ERR_INVALID_ARGUMENT) {
    Arguments arguments(self_.size);
    ibcoll_collective_args_t args = arguments.of(collective);
    spoil(args, arguments);
    ibcoll_request_t request = nullptr;
    const auto name = ibcoll_collective_name(collective);
    expect_error(ibcoll_collective_init(self_.world, &args, &request), status, why, name ? name : "no collective");
    expect(request == nullptr, "a refused call gave a request");
  }
  // Expects refusal of arguments that are significant at the root alone, which is rank 0: the others do not look at it.
  void refuse_at_root(ibcoll_collective_t collective, const char* why, const Spoil& spoil) {
    if (self_.rank == 0) return refuse(collective, why, spoil);
    Arguments arguments(self_.size);
    ibcoll_collective_args_t args = arguments.of(collective);
    spoil(args, arguments);
    ibcoll_request_t request = nullptr;
    expect_ok(ibcoll_collective_init(self_.world, &args, &request),
              fmt::format("{} on a rank that is not the root: {}", ibcoll_collective_name(collective), why));
    expect_ok(ibcoll_request_free(request), "free");
  }
  template <typename... Collectives>
  void refuse_all(const char* why, const Spoil& spoil, Collectives... collectives) {
    (refuse(collectives, why, spoil), ...);
  }

 private:
  Rank& self_;
};

void null_pointers(Refusals& r) {
  r.refuse_all(
      "recv", [](auto& a, auto&) { a.recv = nullptr; }, IBCOLL_BCAST, IBCOLL_ALLGATHER, IBCOLL_ALLGATHERV,
      IBCOLL_ALLTOALL, IBCOLL_ALLTOALLV, IBCOLL_ALLREDUCE, IBCOLL_SCATTER, IBCOLL_SCATTERV, IBCOLL_REDUCE_SCATTER,
      IBCOLL_REDUCE_SCATTER_BLOCK, IBCOLL_SCAN, IBCOLL_EXSCAN);
  r.refuse_all(
      "send is NULL", [](auto& a, auto&) { a.send = nullptr; }, IBCOLL_ALLGATHER, IBCOLL_ALLGATHERV, IBCOLL_ALLTOALL,
      IBCOLL_ALLTOALLV, IBCOLL_ALLREDUCE, IBCOLL_GATHER, IBCOLL_GATHERV, IBCOLL_REDUCE, IBCOLL_REDUCE_SCATTER,
      IBCOLL_REDUCE_SCATTER_BLOCK, IBCOLL_SCAN, IBCOLL_EXSCAN);
  for (const auto collective : {IBCOLL_GATHER, IBCOLL_GATHERV, IBCOLL_REDUCE})
    r.refuse_at_root(collective, "recv is NULL", [](auto& a, auto&) { a.recv = nullptr; });
  for (const auto collective : {IBCOLL_SCATTER, IBCOLL_SCATTERV})
    r.refuse_at_root(collective, "send is NULL", [](auto& a, auto&) { a.send = nullptr; });
  r.refuse_at_root(IBCOLL_GATHERV, "recv_counts is NULL", [](auto& a, auto&) { a.recv_counts = nullptr; });
  r.refuse_at_root(IBCOLL_GATHERV, "recv_displacements is NULL",
                   [](auto& a, auto&) { a.recv_displacements = nullptr; });
  r.refuse_at_root(IBCOLL_SCATTERV, "send_counts is NULL", [](auto& a, auto&) { a.send_counts = nullptr; });
  r.refuse_at_root(IBCOLL_SCATTERV, "send_displacements is NULL",
                   [](auto& a, auto&) { a.send_displacements = nullptr; });
  r.refuse_all(
      "recv_counts is NULL", [](auto& a, auto&) { a.recv_counts = nullptr; }, IBCOLL_ALLGATHERV, IBCOLL_ALLTOALLV,
      IBCOLL_REDUCE_SCATTER);
  r.refuse_all(
      "recv_displacements is NULL", [](auto& a, auto&) { a.recv_displacements = nullptr; }, IBCOLL_ALLGATHERV,
      IBCOLL_ALLTOALLV);
  r.refuse(IBCOLL_ALLTOALLV, "send_counts is NULL", [](auto& a, auto&) { a.send_counts = nullptr; });
  r.refuse(IBCOLL_ALLTOALLV, "send_displacements is NULL", [](auto& a, auto&) { a.send_displacements = nullptr; });
  r.refuse_all(
      "op is NULL", [](auto& a, auto&) { a.op = nullptr; }, IBCOLL_ALLREDUCE, IBCOLL_REDUCE, IBCOLL_REDUCE_SCATTER,
      IBCOLL_REDUCE_SCATTER_BLOCK, IBCOLL_SCAN, IBCOLL_EXSCAN);
}

void beyond_the_range(Refusals& r, int p) {
  for (const int root : {-1, p, 1 << 30})
    r.refuse_all(
        fmt::format("root is {}", root).c_str(), [=](auto& a, auto&) { a.root = root; }, IBCOLL_BCAST, IBCOLL_GATHER,
        IBCOLL_GATHERV, IBCOLL_SCATTER, IBCOLL_SCATTERV, IBCOLL_REDUCE);
  r.refuse(IBCOLL_ALLREDUCE, "type is 99", [](auto& a, auto&) { a.type = static_cast<ibcoll_type_t>(99); });
  r.refuse(IBCOLL_ALLREDUCE, "type is -1", [](auto& a, auto&) { a.type = static_cast<ibcoll_type_t>(-1); });
  r.refuse(IBCOLL_ALLREDUCE, "bxor is not defined for double", [](auto& a, auto&) {
    a.type = IBCOLL_DOUBLE;
    a.count = kBlock / 8;
    a.op = IBCOLL_BXOR;
  });
  r.refuse(static_cast<ibcoll_collective_t>(42), "collective is 42", [](auto&, auto&) {});
  r.refuse(static_cast<ibcoll_collective_t>(-1), "collective is -1", [](auto&, auto&) {});
  for (const auto collective : {IBCOLL_GATHERV, IBCOLL_SCATTERV})
    r.refuse_at_root(collective, "bytes is 32, but the root's list says 64",
                     [](auto& a, auto&) { a.bytes = kBlock / 2; });
  r.refuse(IBCOLL_REDUCE_SCATTER, "recv_counts[0] is 63 bytes, which is no multiple of the 8 bytes",
           [](auto& a, Arguments& own) {
             a.type = IBCOLL_DOUBLE;
             own.counts[0] = 63;
           });
  r.refuse_all(
      "scheme is 7", [](auto& a, auto&) { a.scheme = static_cast<ibcoll_scheme_t>(7); }, IBCOLL_BARRIER,
      IBCOLL_ALLGATHER);
  r.refuse(IBCOLL_ALLGATHER, "struct_size", [](auto& a, auto&) { a.struct_size = 8; });
  r.refuse(IBCOLL_ALLTOALLV, "to itself", [](auto& a, Arguments& own) {
    own.less.assign(own.p, kBlock / 2);
    a.recv_counts = own.less.data();
  });
}

void overflows(Refusals& r, int p) {
  constexpr uint64_t kMost = ~uint64_t{0};
  for (const uint64_t bytes : {kMost, kMost / 2, kMost / 4 + 100})
    r.refuse_all(
        "", [=](auto& a, auto&) { a.bytes = bytes; }, IBCOLL_ALLGATHER, IBCOLL_ALLTOALL);
  for (const uint64_t bytes : {kMost / 2, kMost / 4 + 100})
    for (const auto collective : {IBCOLL_GATHER, IBCOLL_SCATTER})
      r.refuse_at_root(collective, "", [=](auto& a, auto&) { a.bytes = bytes; });
  r.refuse(IBCOLL_BCAST, "address space", [](auto& a, auto&) { a.bytes = kMost; });
  r.refuse_all(
      "overflow 64 bits",
      [](auto& a, auto&) {
        a.count = kMost / 4;
        a.type = IBCOLL_DOUBLE;
      },
      IBCOLL_ALLREDUCE, IBCOLL_REDUCE, IBCOLL_REDUCE_SCATTER_BLOCK, IBCOLL_SCAN, IBCOLL_EXSCAN);
  if (p > 1)
    r.refuse(IBCOLL_REDUCE_SCATTER, "the sum of recv_counts overflows 64 bits",
             [](auto&, Arguments& own) { own.counts.assign(own.p, ~uint64_t{0} / 2 + 1); });
  for (const auto collective : {IBCOLL_GATHERV, IBCOLL_SCATTERV}) {
    r.refuse_at_root(collective, "address space",
                     [](auto&, Arguments& own) { own.displacements.back() = ~uint64_t{0} - 10; });
    if (p > 1)
      r.refuse_at_root(collective, "address space", [](auto&, Arguments& own) { own.counts.back() = ~uint64_t{0}; });
  }
  r.refuse_all(
      "address space", [](auto&, Arguments& own) { own.displacements.back() = ~uint64_t{0} - 10; }, IBCOLL_ALLGATHERV,
      IBCOLL_ALLTOALLV);
  r.refuse_all(
      "address space", [](auto&, Arguments& own) { own.counts.assign(own.p, ~uint64_t{0}); }, IBCOLL_ALLGATHERV,
      IBCOLL_ALLTOALLV);
}

void overlaps(Refusals& r) {
  r.refuse_all(
      "overlap", [](auto& a, auto&) { a.send = a.recv; }, IBCOLL_ALLGATHER, IBCOLL_ALLGATHERV, IBCOLL_ALLTOALL,
      IBCOLL_ALLTOALLV, IBCOLL_ALLREDUCE);
  r.refuse_all(
      "overlap", [](auto& a, auto&) { a.send = static_cast<std::byte*>(a.recv) + kBlock - 1; }, IBCOLL_ALLGATHER,
      IBCOLL_ALLTOALL, IBCOLL_ALLREDUCE);
  r.refuse_all(
      "recv block 1 and recv block 0 overlap", [](auto&, Arguments& own) { own.displacements[0] = kBlock + 63; },
      IBCOLL_ALLGATHERV, IBCOLL_ALLTOALLV);
  // A large block covers a small one that does not follow it directly.
  r.refuse(IBCOLL_ALLGATHERV, "overlap", [](auto& a, Arguments& own) {
    a.send = IBCOLL_IN_PLACE;
    own.counts[0] = own.p * kBlock;
  });
}

void algorithms(Refusals& r, int p) {
  constexpr auto kStatus = IBCOLL_ERR_NOT_APPLICABLE;
  r.refuse(
      IBCOLL_ALLTOALL, "there are auto, direct, pairwise, ", [](auto& a, auto&) { a.algorithm = "magic"; }, kStatus);
  r.refuse(
      IBCOLL_ALLGATHER, "there is no such algorithm", [](auto& a, auto&) { a.algorithm = "binomial"; }, kStatus);
  if ((p & (p - 1)) == 0) return;
  r.refuse(
      IBCOLL_ALLGATHER, "these apply: ring, ", [](auto& a, auto&) { a.algorithm = "recursive_doubling"; }, kStatus);
  r.refuse(
      IBCOLL_ALLGATHERV, "these apply: ring, ", [](auto& a, auto&) { a.algorithm = "recursive_doubling"; }, kStatus);
}

void bad_arguments(Rank& self) {
  Refusals r(self);
  null_pointers(r);
  beyond_the_range(r, self.size);
  overflows(r, self.size);
  if (self.size > 1) overlaps(r);
  algorithms(r, self.size);
  ibcoll_request_t request = nullptr;
  ibcoll_collective_args_t args = Arguments(self.size).of(IBCOLL_BARRIER);
  expect_error(ibcoll_collective_init(nullptr, &args, &request), IBCOLL_ERR_INVALID_ARGUMENT, "NULL", "init");
  expect_error(ibcoll_collective_init(self.world, nullptr, &request), IBCOLL_ERR_INVALID_ARGUMENT, "NULL", "init");
  expect_error(ibcoll_collective_init(self.world, &args, nullptr), IBCOLL_ERR_INVALID_ARGUMENT, "NULL", "init");
  for (auto* const call : {ibcoll_start, ibcoll_test, ibcoll_wait})
    expect_error(call(nullptr), IBCOLL_ERR_INVALID_ARGUMENT, "request is NULL", "a call without request");
  expect_ok(ibcoll_request_free(nullptr), "free of NULL");
  ibcoll_op_t op = nullptr;
  expect_error(ibcoll_op_create(nullptr, nullptr, 1, &op), IBCOLL_ERR_INVALID_ARGUMENT, "NULL", "ibcoll_op_create");
  expect_error(ibcoll_op_free(IBCOLL_SUM), IBCOLL_ERR_INVALID_ARGUMENT, "predefined", "ibcoll_op_free");
  expect_error(ibcoll_barrier(nullptr), IBCOLL_ERR_INVALID_ARGUMENT, "barrier: team is NULL", "barrier");
  for (const CallParams& params : every_collective(500, self.size)) CheckedCall(self.world, params).run(1);
}

// The answer of ibcoll_explain for blocks of these sizes.
std::string decision(Rank& self, ibcoll_collective_t collective, const std::vector<uint64_t>& counts) {
  std::vector<uint64_t> displacements(counts.size());
  std::partial_sum(counts.begin(), counts.end() - 1, displacements.begin() + 1);
  ibcoll_collective_args_t args{};
  args.struct_size = sizeof args;
  args.collective = collective;
  args.recv_counts = counts.data();
  args.recv_displacements = displacements.data();
  args.type = IBCOLL_UINT8;
  args.op = IBCOLL_SUM;
  std::string text(size_t{64} << 10, '\0');
  expect_ok(ibcoll_explain(self.world, &args, text.data(), text.size()), "ibcoll_explain");
  return text.c_str();
}

// It is the largest block that decides, whichever rank has it.
void decides_by_sizes(Rank& self) {
  const std::vector<uint64_t> small(static_cast<size_t>(self.size), 8);
  std::vector<uint64_t> first = small, last = small;
  first.front() = last.back() = 100'000;
  for (const ibcoll_collective_t collective : {IBCOLL_ALLGATHERV, IBCOLL_REDUCE_SCATTER}) {
    const std::string name = ibcoll_collective_name(collective), of_first = decision(self, collective, first);
    expect(of_first == decision(self, collective, last), "{}: a large block of another rank: {}", name, of_first);
    expect(of_first != decision(self, collective, small), "{}: one large block: {}", name, of_first);
  }
}

constexpr Scenario kArgumentScenarios[] = {
    {"bad_arguments", bad_arguments},
    {"decides_by_sizes", decides_by_sizes},
};

}  // namespace

std::span<const Scenario> argument_scenarios() { return kArgumentScenarios; }

}  // namespace ibcoll::multiprocess
