// SPDX-License-Identifier: BSD-3-Clause
// Buffers of every kind: in place, empty, with gaps, far apart, from ibcoll_mem_alloc; every scheme.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

void in_place(Rank& self) {
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{48}, uint64_t{3001}, uint64_t{50'000}}) {
    for (CallParams params : every_collective(bytes, self.size)) {
      if (!kCatalog[params.collective].may_be_in_place(params.root, params.root)) continue;
      params.in_place = true;
      CheckedCall call(self.world, params);
      for (uint64_t round = 0; round < 3; ++round)
        if (!call.run(round)) return;
    }
  }
}

// Empty and tiny blocks. Nothing is needed for nothing: the buffers may be NULL.
void little_or_nothing(Rank& self) {
  for (int round = 0; round < 3; ++round) {
    for (const uint64_t bytes : {0, 1, 2, 7})
      for (const CallParams& params : every_collective(bytes, self.size))
        CheckedCall(self.world, params).run(static_cast<uint64_t>(round));
  }
  const std::vector<uint64_t> none(static_cast<size_t>(self.size), 0);
  expect_ok(ibcoll_bcast(self.world, nullptr, 0, 0), "bcast of nothing");
  expect_ok(ibcoll_allgather(self.world, nullptr, nullptr, 0), "allgather of nothing");
  expect_ok(ibcoll_allgatherv(self.world, nullptr, nullptr, none.data(), none.data()), "allgatherv of nothing");
  expect_ok(ibcoll_alltoall(self.world, nullptr, nullptr, 0), "alltoall of nothing");
  expect_ok(ibcoll_alltoallv(self.world, nullptr, none.data(), none.data(), nullptr, none.data(), none.data()),
            "alltoallv of nothing");
  expect_ok(ibcoll_allreduce(self.world, nullptr, nullptr, 0, IBCOLL_DOUBLE, IBCOLL_SUM), "allreduce of nothing");
  expect_ok(ibcoll_gather(self.world, nullptr, nullptr, 0, 0), "gather of nothing");
  expect_ok(ibcoll_gatherv(self.world, nullptr, 0, nullptr, none.data(), none.data(), 0), "gatherv of nothing");
  expect_ok(ibcoll_scatter(self.world, nullptr, nullptr, 0, 0), "scatter of nothing");
  expect_ok(ibcoll_scatterv(self.world, nullptr, none.data(), none.data(), nullptr, 0, 0), "scatterv of nothing");
  expect_ok(ibcoll_reduce(self.world, nullptr, nullptr, 0, IBCOLL_DOUBLE, IBCOLL_SUM, 0), "reduce of nothing");
  expect_ok(ibcoll_reduce_scatter(self.world, nullptr, nullptr, none.data(), IBCOLL_DOUBLE, IBCOLL_SUM),
            "reduce_scatter of nothing");
  expect_ok(ibcoll_reduce_scatter_block(self.world, nullptr, nullptr, 0, IBCOLL_DOUBLE, IBCOLL_SUM),
            "reduce_scatter_block of nothing");
  expect_ok(ibcoll_scan(self.world, nullptr, nullptr, 0, IBCOLL_DOUBLE, IBCOLL_SUM), "scan of nothing");
  expect_ok(ibcoll_exscan(self.world, nullptr, nullptr, 0, IBCOLL_DOUBLE, IBCOLL_SUM), "exscan of nothing");
}

// One rank after the other is the only one with data; empty blocks may lie anywhere.
void one_speaks(Rank& self) {
  const auto p = static_cast<size_t>(self.size);
  for (int speaker = 0; speaker < self.size; ++speaker) {
    for (const uint64_t bytes : {uint64_t{5}, uint64_t{100'000}}) {
      std::vector<uint64_t> counts(p, 0), displacements(p, ~uint64_t{0});
      counts[static_cast<size_t>(speaker)] = bytes;
      displacements[static_cast<size_t>(speaker)] = 3;
      const std::vector<uint8_t> mine(bytes, static_cast<uint8_t>(speaker + 1));
      std::vector<uint8_t> all(3 + bytes + 1, 0);
      expect_ok(ibcoll_allgatherv(self.world, mine.data(), all.data(), counts.data(), displacements.data()),
                "allgatherv");
      std::vector<uint8_t> wanted(all.size(), 0);
      std::fill_n(wanted.begin() + 3, bytes, static_cast<uint8_t>(speaker + 1));
      expect(all == wanted, "allgatherv with {} bytes of rank {} alone is wrong", bytes, speaker);
      // In place each rank exchanges one block with itself.
      std::fill(counts.begin(), counts.end(), 0), std::fill(displacements.begin(), displacements.end(), ~uint64_t{0});
      counts[static_cast<size_t>(self.rank)] = bytes;
      displacements[static_cast<size_t>(self.rank)] = 3;
      expect_ok(ibcoll_alltoallv(self.world, IBCOLL_IN_PLACE, nullptr, nullptr, all.data(), counts.data(),
                                 displacements.data()),
                "alltoallv in place");
      expect(all == wanted, "alltoallv of {} bytes in place is wrong", bytes);
    }
  }
}

// Blocks that lie more than 4 GiB apart, in memory that is only reserved.
void far_apart(Rank& self) {
  constexpr uint64_t kStride = (uint64_t{5} << 30) + 12'345;
  const auto p = static_cast<uint64_t>(self.size);
  const size_t reserved = p * kStride;
  const auto reserve = [&] {
    void* const memory =
        ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<uint8_t*>(memory);
  };
  uint8_t* const send = reserve();
  uint8_t* const recv = reserve();
  if (!expect(send && recv, "cannot reserve {} bytes of address space", reserved)) return;
  for (const uint64_t bytes : {uint64_t{100}, uint64_t{40'000}}) {
    std::vector<uint64_t> counts(p, bytes), displacements(p);
    for (uint64_t i = 0; i < p; ++i) displacements[i] = (p - 1 - i) * kStride;
    const auto value = [](uint64_t from, uint64_t to) { return static_cast<uint8_t>(1 + 16 * from + to); };
    const auto me = static_cast<uint64_t>(self.rank);
    for (uint64_t i = 0; i < p; ++i) std::memset(send + displacements[i], value(me, i), bytes);
    expect_ok(ibcoll_alltoallv(self.world, send, counts.data(), displacements.data(), recv, counts.data(),
                               displacements.data()),
              "alltoallv");
    for (uint64_t i = 0; i < p; ++i)
      for (uint64_t at = 0; at < bytes; ++at)
        if (!expect(recv[displacements[i] + at] == value(i, me), "alltoallv: byte {} of block {} is wrong", at, i))
          return;
    for (uint64_t i = 0; i < p; ++i) std::memset(recv + displacements[i], value(me, i), bytes);
    expect_ok(
        ibcoll_alltoallv(self.world, IBCOLL_IN_PLACE, nullptr, nullptr, recv, counts.data(), displacements.data()),
        "alltoallv in place");
    for (uint64_t i = 0; i < p; ++i)
      for (uint64_t at = 0; at < bytes; ++at)
        if (!expect(recv[displacements[i] + at] == value(i, me), "in place: byte {} of block {} is wrong", at, i))
          return;
    expect_ok(ibcoll_allgatherv(self.world, send + displacements[0], recv, counts.data(), displacements.data()),
              "allgatherv");
    for (uint64_t i = 0; i < p; ++i)
      for (uint64_t at = 0; at < bytes; ++at)
        if (!expect(recv[displacements[i] + at] == value(i, 0), "allgatherv: byte {} of block {} is wrong", at, i))
          return;
  }
  ::munmap(send, reserved);
  ::munmap(recv, reserved);
}

// IBCOLL_TEST_SHARE=K/N: of the four combinations of size and scheme each algorithm runs only every N-th, from the K-th
// on; the next algorithm begins with the next one. Halves 0/2 and 1/2: each algorithm at both sizes and in both
// schemes. Quarters, 0/4 to 3/4: one combination; 0/4 and 2/4 together are 0/2.
class Share {
 public:
  Share() {
    const char* const given = std::getenv("IBCOLL_TEST_SHARE");
    if (given == nullptr) return;
    const std::string_view text = given;
    const bool valid =
        text.size() == 3 && text[1] == '/' && (text[2] == '2' || text[2] == '4') && text[0] >= '0' && text[0] < text[2];
    if (!expect(valid, "IBCOLL_TEST_SHARE={}: 0/2, 1/2, or 0/4 to 3/4", text)) return;
    first_ = text[0] - '0';
    of_ = text[2] - '0';
  }
  bool takes(int algorithm, bool large, ibcoll_scheme_t scheme) const {
    const bool copies = scheme == IBCOLL_SCHEME_COPY;
    const int combination = large ? (copies ? 2 : 3) : (copies ? 1 : 0);
    return (algorithm + combination) % of_ == first_;
  }

 private:
  int first_ = 0, of_ = 1;
};

// Every algorithm that applies, in every scheme; one that does not apply says so on all ranks.
void every_algorithm(Rank& self) {
  const Share share;
  for (const uint64_t bytes : {uint64_t{33}, uint64_t{20'000}}) {
    for (CallParams params : every_collective(bytes, self.size)) {
      for (int i = 0; (params.algorithm = ibcoll_algorithm_name(params.collective, i)) != nullptr; ++i) {
        // AUTO takes one of these two, by size.
        for (const ibcoll_scheme_t scheme : {IBCOLL_SCHEME_COPY, IBCOLL_SCHEME_ZERO_COPY}) {
          if (!share.takes(i, bytes > 33, scheme)) continue;
          params.scheme = scheme;
          CheckedCall call(self.world, params);
          const ibcoll_collective_args_t args = call.args();
          ibcoll_request_t request = nullptr;
          const ibcoll_status_t made = ibcoll_collective_init(self.world, &args, &request);
          if (made == IBCOLL_ERR_NOT_APPLICABLE) {
            expect_error(made, IBCOLL_ERR_NOT_APPLICABLE, "these apply: ", params.describe());
            continue;
          }
          if (!expect_ok(made, params.describe())) return;
          const std::string_view runs = ibcoll_request_algorithm(request);  // with its parameter, where it has one
          expect(runs.substr(0, runs.find(':')) == params.algorithm, "{} runs {}", params.describe(), runs);
          for (uint64_t round = 0; round < 2; ++round) {
            call.fill(round);
            expect_ok(ibcoll_start(request), params.describe());
            expect_ok(ibcoll_wait(request), params.describe());
            if (!call.verify(round)) return;
          }
          expect_ok(ibcoll_request_free(request), "free");
        }
      }
    }
  }
}

void library_memory(Rank& self) {
  expect(ibcoll_mem_alloc(self.context, 0) == nullptr, "0 bytes gave memory");
  expect(std::strstr(ibcoll_last_error(), "ibcoll_mem_alloc: 0 bytes") != nullptr, "the error is '{}'",
         ibcoll_last_error());
  expect(ibcoll_mem_alloc(self.context, ~size_t{0}) == nullptr, "2^64 - 1 bytes gave memory");
  expect(std::strstr(ibcoll_last_error(), "ibcoll_mem_alloc") != nullptr, "the error is '{}'", ibcoll_last_error());
  expect_ok(ibcoll_mem_free(self.context, nullptr), "free of NULL");
  int mine = 0;
  expect_error(ibcoll_mem_free(self.context, &mine), IBCOLL_ERR_INVALID_ARGUMENT, "not memory of",
               "free of other memory");
  for (const size_t bytes : {size_t{1}, size_t{100'000}, size_t{5} << 20}) {
    auto* const send = static_cast<uint8_t*>(ibcoll_mem_alloc(self.context, bytes));
    auto* const recv = static_cast<uint8_t*>(ibcoll_mem_alloc(self.context, bytes * static_cast<size_t>(self.size)));
    if (!expect(send && recv, "{} bytes: {}", bytes, ibcoll_last_error())) return;
    expect(reinterpret_cast<uintptr_t>(send) % 4096 == 0, "{} bytes do not start at a page", bytes);
    std::memset(send, self.rank + 1, bytes);
    expect_ok(ibcoll_allgather(self.world, send, recv, bytes), "allgather");
    for (size_t i = 0; i < static_cast<size_t>(self.size); ++i)
      expect(recv[i * bytes] == i + 1 && recv[i * bytes + bytes - 1] == i + 1, "block {} is wrong", i);
    expect_ok(ibcoll_mem_free(self.context, send), "free");
    expect_ok(ibcoll_mem_free(self.context, recv), "free");
    expect_error(ibcoll_mem_free(self.context, recv), IBCOLL_ERR_INVALID_ARGUMENT, "freed already", "freed twice");
  }
}

// A ring (where the environment asks for one) talks to two ranks only, and uses several buffers. Then all talk to all.
void neighbours_first(Rank& self) {
  std::vector<std::unique_ptr<CheckedCall>> rings;
  for (uint64_t salt = 0; salt < 6; ++salt) {
    CallParams params{IBCOLL_ALLGATHER, 256 * 1024};
    params.salt = salt;
    rings.push_back(std::make_unique<CheckedCall>(self.world, params));
    if (!rings.back()->run(0)) return;
  }
  CheckedCall(self.world, {IBCOLL_ALLTOALL, 8}).run(0);
  rings.front()->run(1);
}

constexpr Scenario kDataScenarios[] = {
    {"in_place", in_place},
    {"little_or_nothing", little_or_nothing},
    {"one_speaks", one_speaks},
    {"far_apart", far_apart},
    {"every_algorithm", every_algorithm},
    {"library_memory", library_memory},
    {"neighbours_first", neighbours_first},
};

}  // namespace

std::span<const Scenario> data_scenarios() { return kDataScenarios; }

}  // namespace ibcoll::multiprocess
