// SPDX-License-Identifier: BSD-3-Clause
#include "tests/simulated/collective_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/collectives/framework/arguments.h"

namespace ibcoll {
namespace {

constexpr uint64_t kGuard = 64;  // bytes before and after each buffer
constexpr uint64_t kScribble = 0x5c;
constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15u;

std::byte pattern(uint64_t key, uint64_t offset) { return static_cast<std::byte>((key + offset * kMultiplier) >> 56); }
uint64_t key_of(uint64_t seed, int source, int destination, uint64_t round) {
  return mix64(seed ^ mix64(round << 48 ^ static_cast<uint64_t>(source) << 24 ^ static_cast<uint64_t>(destination)));
}

void fill_pattern(std::byte* to, uint64_t bytes, uint64_t key) {
  for (uint64_t i = 0; i < bytes; ++i) to[i] = pattern(key, i);
}

template <typename T>
void store_small(std::byte* to, uint64_t at, uint64_t value) {
  const T element = static_cast<T>(value);
  std::memcpy(to + at * sizeof(T), &element, sizeof(T));
}

// "byte 17 of 64: 3f instead of 80"
std::string difference(const std::vector<std::byte>& got, const std::vector<std::byte>& wanted) {
  const auto [at, other] = std::mismatch(got.begin(), got.end(), wanted.begin());
  if (at == got.end()) return "";
  return fmt::format("byte {} of {}: {:02x} instead of {:02x}", at - got.begin() - static_cast<long>(kGuard),
                     got.size() - 2 * kGuard, static_cast<int>(*at), static_cast<int>(*other));
}

bool is_alltoall(ibcoll_collective_t c) { return c == IBCOLL_ALLTOALL || c == IBCOLL_ALLTOALLV; }
bool is_allgather(ibcoll_collective_t c) { return c == IBCOLL_ALLGATHER || c == IBCOLL_ALLGATHERV; }

}  // namespace

std::string CaseParams::describe() const {
  uint64_t total = 0;
  for (const uint64_t n : counts) total += n;
  return fmt::format("{} p={} bytes={} total={} count={} type={} op={} root={}{} scheme={}",
                     ibcoll_collective_name(collective), p, bytes, total, count, type_name(type), op ? op->name : "-",
                     root, in_place ? " in place" : "", static_cast<int>(scheme));
}

CollectiveCase::CollectiveCase(CaseParams params, uint64_t seed)
    : params_(std::move(params)), seed_(seed), ranks_(static_cast<size_t>(params_.p)) {
  if (params_.collective == IBCOLL_ALLREDUCE) {
    reduction_ = {params_.op, params_.type, reduce_kernel(params_.op, params_.type)};
  }
  SimRandom random = SimRandom(seed).split(7);
  for (int rank = 0; rank < params_.p; ++rank) lay_out(rank, random);
}

// Blocks of v-collectives lie in random order with gaps.
void CollectiveCase::lay_out(int rank, SimRandom& random) {
  const size_t p = static_cast<size_t>(params_.p), me = static_cast<size_t>(rank);
  RankBuffers& b = of(rank);
  const auto place = [&](const std::vector<uint64_t>& counts, std::vector<uint64_t>& displacements) {
    std::vector<size_t> order(p);
    for (size_t i = 0; i < p; ++i) order[i] = i;
    for (size_t i = p; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    displacements.resize(p);
    uint64_t end = 0;
    for (const size_t i : order) {
      end += random.one_in(3) ? random.below(9) : 0;
      displacements[i] = end;
      end += counts[i];
    }
    return end;
  };
  switch (params_.collective) {
    case IBCOLL_BARRIER:
    case IBCOLL_COLLECTIVE_COUNT:
      break;
    case IBCOLL_BCAST:
      b.recv_bytes = params_.bytes;
      break;
    case IBCOLL_ALLREDUCE:
      b.send_bytes = b.recv_bytes = params_.count * type_bytes(params_.type);
      break;
    case IBCOLL_ALLGATHER:
      b.send_bytes = params_.bytes;
      b.recv_bytes = params_.bytes * p;
      break;
    case IBCOLL_ALLTOALL:
      b.send_bytes = b.recv_bytes = params_.bytes * p;
      break;
    case IBCOLL_ALLGATHERV:
      b.recv_counts = params_.counts;
      b.send_bytes = b.recv_counts[me];
      b.recv_bytes = place(b.recv_counts, b.recv_displacements);
      break;
    case IBCOLL_ALLTOALLV:
      for (size_t i = 0; i < p; ++i) {
        b.send_counts.push_back(params_.counts[me * p + i]);
        b.recv_counts.push_back(params_.counts[i * p + me]);
      }
      b.send_bytes = place(b.send_counts, b.send_displacements);
      b.recv_bytes = place(b.recv_counts, b.recv_displacements);
      break;
  }
  if (params_.in_place) b.send_bytes = 0;
  b.send.resize(b.send_bytes + 2 * kGuard);
  b.recv.resize(b.recv_bytes + 2 * kGuard);
}

// As a caller would say it.
Result<Args> CollectiveCase::args(int rank) {
  RankBuffers& b = of(rank);
  const auto array = [](const std::vector<uint64_t>& v) { return v.empty() ? nullptr : v.data(); };
  ibcoll_collective_args_t given{};
  given.struct_size = sizeof given;
  given.collective = params_.collective;
  given.send = params_.in_place ? IBCOLL_IN_PLACE : b.send.data() + kGuard;
  given.recv = b.recv.data() + kGuard;
  given.bytes = params_.bytes;
  given.send_counts = array(b.send_counts);
  given.send_displacements = array(b.send_displacements);
  given.recv_counts = array(b.recv_counts);
  given.recv_displacements = array(b.recv_displacements);
  given.count = params_.count;
  given.type = params_.type;
  given.op = params_.op;
  given.root = params_.root;
  given.scheme = params_.scheme;
  return check_arguments(given, rank, params_.p);
}

Blocks CollectiveCase::recv_blocks(int rank) {
  RankBuffers& b = of(rank);
  const bool v = !b.recv_counts.empty();
  return {b.recv.data() + kGuard, params_.bytes, v ? b.recv_counts.data() : nullptr, b.recv_displacements.data()};
}

Blocks CollectiveCase::send_blocks(int rank) {
  RankBuffers& b = of(rank);
  const bool v = !b.send_counts.empty();
  return {b.send.data() + kGuard, params_.bytes, v ? b.send_counts.data() : nullptr, b.send_displacements.data()};
}

Shape CollectiveCase::shape() const {
  Shape shape;
  shape.p = params_.p;
  shape.bytes = params_.collective == IBCOLL_ALLREDUCE ? of(0).recv_bytes : params_.bytes;
  for (const uint64_t n : params_.counts) {
    shape.bytes = std::max(shape.bytes, n);
    shape.total += n;
  }
  shape.sizes_known = params_.collective != IBCOLL_ALLTOALLV;
  if (!shape.sizes_known) shape.bytes = shape.total = 0;
  if (params_.collective == IBCOLL_ALLREDUCE) {
    shape.commutative = params_.op->commutative;
    shape.element_bytes = type_bytes(params_.type);
  }
  return shape;
}

// ---------------------------------------------------------------- content

void CollectiveCase::overlay(std::vector<std::byte>& image, uint64_t at, int source, int destination, uint64_t bytes,
                             uint64_t round) const {
  fill_pattern(image.data() + kGuard + at, bytes, key_of(seed_, source, destination, round));
}

// Small numbers, so that floating point results are exact in any order.
void CollectiveCase::operand(std::byte* to, int rank, uint64_t round) const {
  const uint64_t key = key_of(seed_, rank, 0, round);
  const bool product = params_.op == IBCOLL_PROD;
  for (uint64_t i = 0; i < params_.count; ++i) {
    const uint64_t word = mix64(key + i);
    const uint64_t value = product ? 1 + (word % 8 == 0) : word % 8;
    switch (params_.type) {
      case IBCOLL_INT8:
      case IBCOLL_UINT8:
        store_small<uint8_t>(to, i, value);
        break;
      case IBCOLL_INT16:
      case IBCOLL_UINT16:
        store_small<uint16_t>(to, i, value);
        break;
      case IBCOLL_INT32:
      case IBCOLL_UINT32:
        store_small<uint32_t>(to, i, value);
        break;
      case IBCOLL_INT64:
        store_small<uint64_t>(to, i, value);
        break;
      case IBCOLL_UINT64:
        store_small<uint64_t>(to, i, params_.op->index < 0 ? word : value);
        break;
      case IBCOLL_FLOAT:
        store_small<float>(to, i, value);
        break;
      case IBCOLL_DOUBLE:
        store_small<double>(to, i, value);
        break;
      case IBCOLL_TYPE_COUNT:
        break;
    }
  }
}

const std::vector<std::byte>& CollectiveCase::reduced(uint64_t round) {
  std::vector<std::byte>& result = reduced_[round];
  if (!result.empty() || params_.count == 0) return result;
  std::vector<std::byte> in(of(0).recv_bytes);
  result.resize(in.size());
  operand(result.data(), params_.p - 1, round);
  for (int rank = params_.p - 2; rank >= 0; --rank) {
    operand(in.data(), rank, round);
    reduction_(in.data(), result.data(), params_.count);
  }
  return result;
}

// The receive buffer before the start or after completion.
std::vector<std::byte> CollectiveCase::image(int rank, uint64_t round, bool after) {
  const RankBuffers& b = of(rank);
  std::vector<std::byte> image(b.recv.size());
  fill_pattern(image.data(), image.size(), key_of(seed_, rank, -1, round));
  const Blocks recv = recv_blocks(rank);
  const bool own = after || params_.in_place;
  if (params_.collective == IBCOLL_BCAST && (after || rank == params_.root)) {
    overlay(image, 0, params_.root, 0, params_.bytes, round);
  } else if (params_.collective == IBCOLL_ALLREDUCE && own) {
    if (after) {
      const std::vector<std::byte>& result = reduced(round);
      std::copy(result.begin(), result.end(), image.begin() + kGuard);
    } else {
      operand(image.data() + kGuard, rank, round);
    }
  } else if (is_allgather(params_.collective)) {
    for (int i = 0; i < params_.p; ++i) {
      if (after || (own && i == rank)) overlay(image, recv.offset(i), i, 0, recv.size(i), round);
    }
  } else if (is_alltoall(params_.collective) && own) {
    for (int i = 0; i < params_.p; ++i) {
      overlay(image, recv.offset(i), after ? i : rank, after ? rank : i, recv.size(i), round);
    }
  }
  return image;
}

void CollectiveCase::fill(int rank, uint64_t round) {
  RankBuffers& b = of(rank);
  const std::vector<std::byte> before = image(rank, round, false);
  std::copy(before.begin(), before.end(), b.recv.begin());
  if (params_.in_place) return;
  if (is_allgather(params_.collective)) overlay(b.send, 0, rank, 0, b.send_bytes, round);
  if (params_.collective == IBCOLL_ALLREDUCE) operand(b.send.data() + kGuard, rank, round);
  if (!is_alltoall(params_.collective)) return;
  const Blocks send = send_blocks(rank);
  for (int i = 0; i < params_.p; ++i) overlay(b.send, send.offset(i), rank, i, send.size(i), round);
}

std::string CollectiveCase::check(int rank, uint64_t round) {
  const RankBuffers& b = of(rank);
  const std::string wrong = difference(b.recv, image(rank, round, true));
  if (wrong.empty()) return "";
  return fmt::format("{}: rank {} round {}: {}", params_.describe(), rank, round, wrong);
}

void CollectiveCase::scribble(int rank) {
  std::fill(of(rank).send.begin(), of(rank).send.end(), std::byte{kScribble});
  std::fill(of(rank).recv.begin(), of(rank).recv.end(), std::byte{kScribble});
}

std::string CollectiveCase::check_scribbled(int rank) const {
  const std::string wrong =
      difference(of(rank).recv, std::vector<std::byte>(of(rank).recv.size(), std::byte{kScribble}));
  return wrong.empty() ? "" : fmt::format("{}: rank {}: written after the end: {}", params_.describe(), rank, wrong);
}

std::string CollectiveCase::check_guards(int rank, uint64_t round) const {
  const RankBuffers& b = of(rank);
  const uint64_t key = key_of(seed_, rank, -1, round);
  for (uint64_t i = 0; i < b.recv.size(); ++i) {
    if (i >= kGuard && i < b.recv.size() - kGuard) continue;
    if (b.recv[i] != pattern(key, i)) {
      return fmt::format("{}: rank {}: guard byte {} was overwritten", params_.describe(), rank, i);
    }
  }
  return "";
}

}  // namespace ibcoll
