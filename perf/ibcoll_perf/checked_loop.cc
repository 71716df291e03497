// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/checked_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "perf/ibcoll_perf/pattern.h"

namespace ibcoll::perf {
namespace {

constexpr std::byte kGuard{0xC3};
constexpr uint64_t kMostCalls = 3;  // between two verifications
constexpr int kReported = 3;        // damages of one size that get a line

// Buffers of one rank before and after a call.
class Payload {
 public:
  explicit Payload(BenchCase& bench) : bench_(bench), layout_(bench.layout()) {}

  // Before the first call of a round: nothing of an earlier one is left.
  void prepare(uint64_t round) {
    std::byte* recv = bench_.buffers().recv();
    std::memset(recv - kGuardBytes, static_cast<int>(kGuard), kGuardBytes + layout_.recv_bytes + kGuardBytes);
    const int poison = 0x5A ^ static_cast<int>(round % 7);
    for (const Block& block : layout_.recv) std::memset(recv + block.offset, poison, block.bytes);
    send_afresh(round, 0);
  }

  // Other data for the next call, number `call` of the round.
  void send_afresh(uint64_t round, uint64_t call) {
    iteration_ = round * kMostCalls + call;
    for (const Block& block : layout_.send) {
      if (is_reduction()) {
        fill_elements(sent(block), width(), key(block), kPatternStep);
      } else {
        fill_pattern(sent(block), key(block));
      }
    }
  }

  // Wrong bytes of this rank.
  uint64_t verify() {
    uint64_t wrong = 0;
    for (const Block& block : layout_.recv) wrong += count_block(verify_received(block), "received", block);
    if (!layout_.send_in_recv) {
      for (const Block& block : layout_.send) {
        const auto damage = is_reduction() ? verify_elements(sent(block), width(), key(block), kPatternStep)
                                           : verify_pattern(sent(block), key(block));
        wrong += count_block(damage, "sent (must stay as they are)", block);
      }
    }
    return wrong + verify_guards();
  }

 private:
  bool is_reduction() const { return bench_.options().collective == IBCOLL_ALLREDUCE; }
  size_t width() const { return element_width(bench_.bytes()); }
  uint64_t key(const Block& block) const { return pattern_key(block.source, block.destination, iteration_); }
  std::span<std::byte> sent(const Block& block) const {
    std::byte* base = layout_.send_in_recv ? bench_.buffers().recv() : bench_.buffers().send();
    return {base + block.offset, block.bytes};
  }
  std::span<std::byte> received(uint64_t offset, uint64_t bytes) const {
    return {bench_.buffers().recv() + offset, bytes};
  }

  std::optional<Damage> verify_received(const Block& block) const {
    const auto bytes = received(block.offset, block.bytes);
    if (!is_reduction()) return verify_pattern(bytes, key(block));
    const int ranks = bench_.job().size();
    uint64_t sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += pattern_key(rank, 0, iteration_);
    return verify_elements(bytes, width(), sum, static_cast<uint64_t>(ranks) * kPatternStep);
  }

  // In front of, between and behind the blocks, which lie in ascending order.
  uint64_t verify_guards() {
    uint64_t wrong = count(verify_constant(bench_.buffers().guard_before(), kGuard), "in front of the receive buffer");
    uint64_t end = 0;
    for (const Block& block : layout_.recv) {
      const auto gap = verify_constant(received(end, block.offset - end), kGuard);
      if (gap) wrong += count(gap, fmt::format("in the gap at byte {} of the receive buffer", end));
      end = block.offset + block.bytes;
    }
    return wrong + count(verify_constant(bench_.buffers().guard_after(end), kGuard), "behind the receive buffer");
  }

  uint64_t count_block(const std::optional<Damage>& damage, const char* what, const Block& block) {
    if (!damage) return 0;
    return count(
        damage, fmt::format("{} {} bytes from rank {} to rank {}", what, block.bytes, block.source, block.destination));
  }

  uint64_t count(const std::optional<Damage>& damage, const std::string& where) {
    if (!damage) return 0;
    if (reported_++ < kReported) {
      fmt::print(
          stderr,
          "ibcoll_perf: rank {}: {}: round {}: {}: {} wrong, the first at {}, which is {:#04x} and not {:#04x}\n",
          bench_.job().rank(), bench_.title(), iteration_ / kMostCalls, where, damage->bytes, damage->first,
          std::to_integer<int>(damage->found), std::to_integer<int>(damage->expected));
    }
    return damage->bytes;
  }

  BenchCase& bench_;
  const Layout& layout_;
  uint64_t iteration_ = 0;
  int reported_ = 0;
};

// One round: fill, some calls but `most` at most, verify the last one. Appends the time of each call.
bool run_round(BenchCase& bench, Payload& payload, uint64_t round, uint64_t most, std::vector<double>& calls,
               uint64_t& wrong) {
  payload.prepare(round);
  for (uint64_t i = 0; i < std::min(1 + round % kMostCalls, most); ++i) {
    if (i > 0) payload.send_afresh(round, i);
    const double begin = now_us();
    if (!bench.call()) return false;
    calls.push_back(now_us() - begin);
  }
  wrong += payload.verify();
  return true;
}

bool run_rounds(BenchCase& bench, const LoopPlan& plan, std::vector<double>& calls, uint64_t& wrong) {
  Payload payload(bench);
  uint64_t round = 0;
  double round_us = 0;  // of the last warm-up: the first one connects and touches memory
  const auto warmup = static_cast<uint64_t>(std::max<int64_t>(plan.warmup, 2));
  for (; round < warmup; ++round) {
    const double begin = now_us();
    if (!run_round(bench, payload, round, kMostCalls, calls, wrong)) return false;
    round_us = now_us() - begin;
  }
  if (!bench.largest(round_us)) return false;
  const double fitting = std::clamp(plan.budget_us / round_us, 3.0, 200.0);
  const uint64_t wanted = plan.iterations > 0 ? plan.iterations : static_cast<uint64_t>(fitting);
  calls.clear();
  while (calls.size() < wanted) {
    if (!run_round(bench, payload, round++, wanted - calls.size(), calls, wrong)) return false;
  }
  return bench.job().sum(wrong);
}

// Compares, call by call, when the last rank entered and the first one left.
bool check_barriers(BenchCase& bench, const LoopPlan& plan, std::vector<double>& calls,
                    std::optional<uint64_t>& errors) {
  const uint64_t count = plan.iterations > 0 ? plan.iterations : 1000;
  std::vector<double> times, all;
  for (int64_t i = 0; i < std::max<int64_t>(plan.warmup, 2); ++i) {
    if (!bench.call()) return false;
  }
  for (uint64_t i = 0; i < count; ++i) {
    times.push_back(now_us());
    if (!bench.call()) return false;
    times.push_back(now_us());
    calls.push_back(times[2 * i + 1] - times[2 * i]);
  }
  int one_clock = 0;
  if (!ranks_on_this_kernel(bench.job(), one_clock) || !bench.job().gather(times, all)) return false;
  if (one_clock < bench.job().size()) return true;
  errors = 0;
  for (uint64_t i = 0; i < count && !all.empty(); ++i) {
    double last_in = 0;
    for (size_t rank = 0; rank < static_cast<size_t>(bench.job().size()); ++rank) {
      last_in = std::max(last_in, all[rank * times.size() + 2 * i]);
    }
    for (size_t rank = 0; rank < static_cast<size_t>(bench.job().size()); ++rank) {
      if (all[rank * times.size() + 2 * i + 1] < last_in) ++*errors;
    }
  }
  return bench.job().sum(*errors);
}

}  // namespace

bool run_checked_loop(BenchCase& bench, const LoopPlan& plan, std::vector<double>& calls,
                      std::optional<uint64_t>& errors) {
  calls.clear();
  errors.reset();
  if (bench.options().collective == IBCOLL_BARRIER) return check_barriers(bench, plan, calls, errors);
  uint64_t wrong = 0;
  if (!run_rounds(bench, plan, calls, wrong)) return false;
  errors = wrong;
  return true;
}

}  // namespace ibcoll::perf
