// SPDX-License-Identifier: BSD-3-Clause
// allreduce with operations of the program: in rank order, and of whole elements.
#include <cstring>
#include <iterator>

#include "tests/multiprocess/scenario.h"
#include "tools/own_calls.h"

namespace ibcoll::multiprocess {
namespace {

// x -> a x + b modulo 2^32, as one 64-bit element. Composition is associative and not commutative.
void compose_affine(const void* in, void* inout, uint64_t count, ibcoll_type_t, void* calls) {
  expect(count > 0, "the operation is called for no elements");
  ++*static_cast<uint64_t*>(calls);
  const auto* first = static_cast<const uint64_t*>(in);
  auto* second = static_cast<uint64_t*>(inout);
  for (uint64_t i = 0; i < count; ++i) {
    const auto a1 = static_cast<uint32_t>(first[i] >> 32), b1 = static_cast<uint32_t>(first[i]);
    const auto a2 = static_cast<uint32_t>(second[i] >> 32), b2 = static_cast<uint32_t>(second[i]);
    second[i] = static_cast<uint64_t>(a1 * a2) << 32 | static_cast<uint32_t>(a2 * b1 + b2);
  }
}

// 2 x 2 matrices of bytes modulo 256, as one 32-bit element: in times inout.
void multiply_matrices(const void* in, void* inout, uint64_t count, ibcoll_type_t, void* calls) {
  expect(count > 0, "the operation is called for no elements");
  ++*static_cast<uint64_t*>(calls);
  const auto* a = static_cast<const uint8_t*>(in);
  auto* b = static_cast<uint8_t*>(inout);
  for (uint64_t i = 0; i < count; ++i, a += 4, b += 4) {
    const uint8_t product[] = {
        static_cast<uint8_t>(a[0] * b[0] + a[1] * b[2]), static_cast<uint8_t>(a[0] * b[1] + a[1] * b[3]),
        static_cast<uint8_t>(a[2] * b[0] + a[3] * b[2]), static_cast<uint8_t>(a[2] * b[1] + a[3] * b[3])};
    std::memcpy(b, product, 4);
  }
}

template <typename T>
std::vector<T> random_elements(size_t count, int rank) {
  std::vector<T> elements(count);
  uint64_t state = 0x1234567 + static_cast<uint64_t>(rank) * 0x9e3779b97f4a7c15;
  for (T& e : elements) {
    state = state * 6364136223846793005 + 1442695040888963407;
    e = static_cast<T>((state ^ state >> 29) * 0xbf58476d1ce4e5b9 >> (64 - 8 * sizeof(T)));
  }
  return elements;
}

template <typename T>
void check_user_operation(ibcoll_team_t team, ibcoll_reduce_fn function, ibcoll_type_t type, bool in_place) {
  uint64_t calls = 0, unused = 0;
  ibcoll_op_t op = nullptr;
  expect_ok(ibcoll_op_create(function, &calls, 0, &op), "ibcoll_op_create");
  const int p = ibcoll_team_size(team), rank = ibcoll_team_rank(team);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{9}, size_t{3000}, size_t{20'000}, size_t{65'537}}) {
    std::vector<T> wanted = random_elements<T>(count, p - 1);
    for (int r = p - 2; r >= 0 && count > 0; --r)
      function(random_elements<T>(count, r).data(), wanted.data(), count, type, &unused);
    const std::vector<T> mine = random_elements<T>(count, rank);
    std::vector<T> result = in_place ? mine : std::vector<T>(count);
    expect_ok(ibcoll_allreduce(team, in_place ? IBCOLL_IN_PLACE : mine.data(), result.data(), count, type, op),
              "allreduce");
    expect(result == wanted, "p = {}, {} elements{}: not the product in rank order", p, count,
           in_place ? " in place" : "");
  }
  expect_ok(ibcoll_op_free(op), "ibcoll_op_free");
}

// For every p from 1 up to the size of the job: the first p ranks, also in descending order.
void non_commutative(Rank& self) {
  for (int p = 1; p <= self.size; ++p) {
    const TeamOwner team = split(self.world, self.rank < p ? 0 : -1, p % 2 == 0 ? self.rank : -self.rank);
    if (!team.get()) continue;
    for (const bool in_place : {false, true}) {
      check_user_operation<uint64_t>(team.get(), compose_affine, IBCOLL_UINT64, in_place);
      check_user_operation<uint32_t>(team.get(), multiply_matrices, IBCOLL_UINT32, in_place);
    }
  }
}

// A structure of a size that divides no window and no segment. It tells when it is not whole.
struct Structure {
  uint64_t map, complement, product;

  explicit Structure(uint64_t map = 0) : map(map), complement(~map), product(map * 3) {}
  bool whole() const { return complement == ~map && product == map * 3; }
};

void compose_structures(const void* in, void* inout, uint64_t count, ibcoll_type_t type, void* calls) {
  expect(type == IBCOLL_OPAQUE, "the operation is called for type {}", int{type});
  const auto* first = static_cast<const Structure*>(in);
  auto* second = static_cast<Structure*>(inout);
  for (uint64_t i = 0; i < count; ++i) {
    expect(first[i].whole() && second[i].whole(), "element {} of {} is not whole", i, count);
    compose_affine(&first[i].map, &second[i].map, 1, IBCOLL_UINT64, calls);
    second[i] = Structure(second[i].map);
  }
}

void opaque_elements(Rank& self) {
  uint64_t calls = 0;
  ibcoll_op_t op = nullptr;
  expect_ok(ibcoll_op_create(compose_structures, &calls, 0, &op), "ibcoll_op_create");
  const auto operand = [](int rank, size_t count) {
    const std::vector<uint64_t> maps = random_elements<uint64_t>(count, rank);
    return std::vector<Structure>(maps.begin(), maps.end());
  };
  for (const size_t count : {size_t{1}, size_t{700}, size_t{3001}, size_t{50'021}}) {
    std::vector<Structure> wanted = operand(self.size - 1, count), mine = operand(self.rank, count), result(count);
    for (int r = self.size - 2; r >= 0; --r)
      compose_structures(operand(r, count).data(), wanted.data(), count, IBCOLL_OPAQUE, &calls);
    ibcoll_collective_args_t args = own_call(IBCOLL_ALLREDUCE, mine.data(), result.data());
    args.algorithm = nullptr;  // what is being tested
    args.count = count, args.type = IBCOLL_OPAQUE, args.op = op, args.element_bytes = sizeof(Structure);
    expect_ok(run_blocking(self.world, args), "allreduce");
    expect(std::memcmp(result.data(), wanted.data(), count * sizeof(Structure)) == 0,
           "{} structures: not the product in rank order", count);
  }
  expect_ok(ibcoll_op_free(op), "ibcoll_op_free");
}

// One operation for elements of many kinds: `call` says which ones these are.
struct KindOfCall {
  ibcoll_type_t type;
  uint64_t element_bytes;
  uint64_t elements = 0;  // that were combined here
};

void sum_of_kind(const void* in, void* inout, uint64_t count, uint64_t element_bytes, ibcoll_type_t type, void* user,
                 void* call) {
  auto& kind = *static_cast<KindOfCall*>(call);
  expect(user == &sum_of_kind, "the operation has another pointer than it was made with");
  expect(type == kind.type && element_bytes == kind.element_bytes, "type {} of {} bytes in a call of type {}, {} bytes",
         int{type}, element_bytes, int{kind.type}, kind.element_bytes);
  kind.elements += count;
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(inout);
  for (uint64_t i = 0; i < count * element_bytes; ++i)
    to[i] = static_cast<std::byte>(std::to_integer<unsigned>(from[i]) + std::to_integer<unsigned>(to[i]));
}

// Several calls at once, each with its own pointer.
void operation_for_elements(Rank& self) {
  constexpr size_t kCount = 3001;
  ibcoll_op_t op = nullptr;
  expect_error(ibcoll_op_create_for_elements(nullptr, nullptr, 1, &op), IBCOLL_ERR_INVALID_ARGUMENT, "NULL",
               "ibcoll_op_create_for_elements");
  expect_ok(ibcoll_op_create_for_elements(sum_of_kind, reinterpret_cast<void*>(&sum_of_kind), 1, &op),
            "ibcoll_op_create_for_elements");
  KindOfCall kinds[] = {{IBCOLL_UINT8, 1}, {IBCOLL_INT32, 4}, {IBCOLL_OPAQUE, 24}, {IBCOLL_OPAQUE, 7}};
  constexpr size_t kKinds = std::size(kinds);
  std::vector<uint8_t> mine[kKinds], results[kKinds];
  ibcoll_request_t requests[kKinds] = {};
  for (size_t k = 0; k < kKinds; ++k) {
    mine[k].assign(kCount * kinds[k].element_bytes, static_cast<uint8_t>(self.rank + 1 + static_cast<int>(k)));
    results[k].resize(mine[k].size());
    ibcoll_collective_args_t args = own_call(IBCOLL_ALLREDUCE, mine[k].data(), results[k].data());
    args.algorithm = nullptr;
    args.count = kCount, args.type = kinds[k].type, args.op = op, args.element_bytes = kinds[k].element_bytes;
    args.op_call = &kinds[k];
    expect_ok(ibcoll_collective_init(self.world, &args, &requests[k]), "ibcoll_collective_init");
  }
  for (ibcoll_request_t request : requests) expect_ok(ibcoll_start(request), "ibcoll_start");
  uint64_t combined[kKinds] = {}, all[kKinds] = {};
  for (size_t k = 0; k < kKinds; ++k) {
    expect_ok(ibcoll_wait(requests[k]), "ibcoll_wait");
    expect_ok(ibcoll_request_free(requests[k]), "ibcoll_request_free");
    const int p = self.size, sum = p * (p + 1) / 2 + p * static_cast<int>(k);
    expect(results[k] == std::vector<uint8_t>(results[k].size(), static_cast<uint8_t>(sum)), "call {}: wrong sum", k);
    combined[k] = kinds[k].elements;
  }
  expect_ok(ibcoll_allreduce(self.world, combined, all, kKinds, IBCOLL_UINT64, IBCOLL_SUM), "allreduce");
  for (const uint64_t elements : all)
    expect(elements >= kCount * static_cast<uint64_t>(self.size - 1), "only {} elements were combined", elements);
  expect_ok(ibcoll_op_free(op), "ibcoll_op_free");
}

// The data of an operation that calls ibcoll. It runs with ibcoll's lock held, so no call may wait for that.
struct Caller {
  Rank& self;
  ibcoll_team_t team = nullptr;
  ibcoll_request_t request = nullptr;
  ibcoll_op_t op = nullptr;
  int rounds = 0;
};

void call_what_is_refused(const Caller& with) {
  const auto refused = [](ibcoll_status_t status, const char* name) {
    expect_error(status, IBCOLL_ERR_UNSUPPORTED, "inside an operation of the program", name);
  };
  ibcoll_context_t context = nullptr;
  ibcoll_team_t team = nullptr;
  ibcoll_request_t request = nullptr;
  ibcoll_collective_args_t barrier{};
  barrier.struct_size = sizeof barrier;
  barrier.collective = IBCOLL_BARRIER;
  ibcoll_members_t members{};
  members.struct_size = sizeof members;
  const int list[] = {0};
  char text[100];
  refused(ibcoll_progress(with.self.context), "ibcoll_progress");
  refused(ibcoll_start(with.request), "ibcoll_start");
  refused(ibcoll_test(with.request), "ibcoll_test");
  refused(ibcoll_request_status(with.request), "ibcoll_request_status");
  refused(ibcoll_wait(with.request), "ibcoll_wait");
  refused(ibcoll_wait_timeout(with.request, 0), "ibcoll_wait_timeout");
  refused(ibcoll_request_free(with.request), "ibcoll_request_free");
  refused(ibcoll_collective_init(with.team, &barrier, &request), "ibcoll_collective_init");
  refused(ibcoll_collective_start(with.team, &barrier, &request), "ibcoll_collective_start");
  refused(ibcoll_collective_run(with.team, &barrier), "ibcoll_collective_run");
  refused(ibcoll_barrier(with.team), "ibcoll_barrier");
  refused(ibcoll_explain(with.team, &barrier, text, sizeof text), "ibcoll_explain");
  refused(ibcoll_team_create(with.team, list, 1, &team), "ibcoll_team_create");
  refused(ibcoll_team_create_by_members(with.self.context, &members, &team), "ibcoll_team_create_by_members");
  refused(ibcoll_team_split(with.team, 0, 0, &team), "ibcoll_team_split");
  refused(ibcoll_team_free(with.team), "ibcoll_team_free");
  refused(ibcoll_context_create(nullptr, &context), "ibcoll_context_create");
  refused(ibcoll_context_destroy(with.self.context), "ibcoll_context_destroy");
  expect(ibcoll_context_describe(with.self.context, text, sizeof text) == 0, "describe returned '{}'", text);
  expect(ibcoll_info_json(with.self.context, text, sizeof text) == 0, "info_json returned '{}'", text);
}

void call_what_is_harmless(const Caller& with) {
  uint64_t events = 1;
  expect_ok(ibcoll_progress_events(with.self.context, &events), "ibcoll_progress_events");
  expect(events == 0, "{} events inside an operation", events);
  expect(ibcoll_team_size(with.team) == with.self.size, "ibcoll_team_size");
  expect(ibcoll_context_rank(with.self.context) == with.self.rank, "ibcoll_context_rank");
  void* const memory = ibcoll_mem_alloc(with.self.context, 100);
  expect(memory != nullptr, "ibcoll_mem_alloc: {}", ibcoll_last_error());
  expect_ok(ibcoll_mem_free(with.self.context, memory), "ibcoll_mem_free");
  ibcoll_op_t op = nullptr;
  expect_ok(ibcoll_op_create(compose_affine, nullptr, 1, &op), "ibcoll_op_create");
  expect_ok(ibcoll_op_free(op), "ibcoll_op_free");
  expect_status(ibcoll_op_free(with.op), IBCOLL_ERR_BUSY, "ibcoll_op_free of the operation itself");
}

void add_and_call(const void* in, void* inout, uint64_t count, ibcoll_type_t, void* user) {
  Caller& with = *static_cast<Caller*>(user);
  if (with.rounds++ == 0) {
    call_what_is_refused(with);
    call_what_is_harmless(with);
  }
  for (uint64_t i = 0; i < count; ++i) static_cast<uint64_t*>(inout)[i] += static_cast<const uint64_t*>(in)[i];
}

void operation_that_calls(Rank& self) {
  const TeamOwner team = split(self.world, 0, self.rank);
  Caller with{self, team.get()};
  expect_ok(ibcoll_op_create(add_and_call, &with, 1, &with.op), "ibcoll_op_create");
  ibcoll_collective_args_t barrier{};
  barrier.struct_size = sizeof barrier;
  barrier.collective = IBCOLL_BARRIER;
  expect_ok(ibcoll_collective_init(team.get(), &barrier, &with.request), "ibcoll_collective_init");
  for (const size_t count : {size_t{1}, size_t{3000}}) {
    with.rounds = 0;
    std::vector<uint64_t> mine(count, 1), sum(count);
    expect_ok(ibcoll_allreduce(team.get(), mine.data(), sum.data(), count, IBCOLL_UINT64, with.op), "allreduce");
    expect(sum == std::vector<uint64_t>(count, static_cast<uint64_t>(self.size)), "the sums are wrong");
    int called = 0;
    expect_ok(ibcoll_allreduce(team.get(), &with.rounds, &called, 1, IBCOLL_INT, IBCOLL_MAX), "allreduce");
    expect(called > 0, "the operation was never called");
  }
  expect_ok(ibcoll_start(with.request), "ibcoll_start after the operation");
  expect_ok(ibcoll_wait(with.request), "ibcoll_wait");
  expect_ok(ibcoll_request_free(with.request), "ibcoll_request_free");
  expect_ok(ibcoll_op_free(with.op), "ibcoll_op_free");
}

constexpr Scenario kUserOperationScenarios[] = {
    {"non_commutative", non_commutative},
    {"opaque_elements", opaque_elements},
    {"operation_for_elements", operation_for_elements},
    {"operation_that_calls", operation_that_calls},
};

}  // namespace

std::span<const Scenario> user_operation_scenarios() { return kUserOperationScenarios; }

}  // namespace ibcoll::multiprocess
