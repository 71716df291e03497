// SPDX-License-Identifier: BSD-3-Clause
#include "perf/apps/radix/sort.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <vector>

namespace radix {
namespace {

constexpr int kDigitBits = 11;  // 3 passes; counters of 16 KB stay in the first-level cache
constexpr size_t kDigits = size_t{1} << kDigitBits;
constexpr int kKeyBits = 32;
using Histogram = std::array<uint64_t, kDigits>;

uint32_t digit_of(uint32_t key, int shift) noexcept { return (key >> shift) & (kDigits - 1); }

double microseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

// Stable: keys of one digit keep their order.
Histogram move_by_digit(const uint32_t* from, uint32_t* to, uint64_t count, int shift) noexcept {
  Histogram histogram{};
  for (uint64_t i = 0; i < count; ++i) ++histogram[digit_of(from[i], shift)];
  Histogram next{};
  for (size_t digit = 1; digit < kDigits; ++digit) next[digit] = next[digit - 1] + histogram[digit - 1];
  for (uint64_t i = 0; i < count; ++i) to[next[digit_of(from[i], shift)]++] = from[i];
  return histogram;
}

// Bytes that go to and come from each rank in one pass. Blocks lie back to back in rank order.
struct KeyExchange {
  explicit KeyExchange(int ranks)
      : send_counts(static_cast<size_t>(ranks)),
        send_displacements(send_counts.size()),
        recv_counts(send_counts.size()),
        recv_displacements(send_counts.size()) {}
  std::vector<uint64_t> send_counts, send_displacements, recv_counts, recv_displacements;
};

// In the order after a pass, all keys with digit 0 come first, those of rank 0 before those of rank 1, then
// those with digit 1, ...: each rank's keys of one digit are one run of positions, which the owners of these positions
// get. Runs of one source have rising positions, so what goes to one owner is contiguous at the source.
KeyExchange plan_exchange(const std::vector<Histogram>& histograms, uint64_t total, int rank, int ranks) {
  KeyExchange plan(ranks);
  const auto owned = [&](uint64_t begin, uint64_t end, int owner) {
    const uint64_t low = std::max(begin, first_key(total, owner, ranks));
    const uint64_t high = std::min(end, first_key(total, owner + 1, ranks));
    return low < high ? (high - low) * sizeof(uint32_t) : 0;
  };
  uint64_t position = 0;
  int owner = 0;  // of `position`
  for (size_t digit = 0; digit < kDigits; ++digit) {
    for (int source = 0; source < ranks; ++source) {
      const uint64_t end = position + histograms[static_cast<size_t>(source)][digit];
      plan.recv_counts[static_cast<size_t>(source)] += owned(position, end, rank);
      while (owner + 1 < ranks && first_key(total, owner + 1, ranks) <= position) ++owner;
      for (int to = owner; source == rank && to < ranks && first_key(total, to, ranks) < end; ++to) {
        plan.send_counts[static_cast<size_t>(to)] += owned(position, end, to);
      }
      position = end;
    }
  }
  for (size_t i = 1; i < plan.send_counts.size(); ++i) {
    plan.send_displacements[i] = plan.send_displacements[i - 1] + plan.send_counts[i - 1];
    plan.recv_displacements[i] = plan.recv_displacements[i - 1] + plan.recv_counts[i - 1];
  }
  return plan;
}

}  // namespace

Keys make_keys(uint64_t count) noexcept {
  if (count > SIZE_MAX / sizeof(uint32_t) / 2) return nullptr;
  return Keys(new (std::nothrow) uint32_t[std::max<uint64_t>(count, 1)]);
}

Error sort(AppJob& job, uint64_t total, Keys& keys, Keys& spare, SortTimes& times) {
  const uint64_t mine = first_key(total, job.rank() + 1, job.size()) - first_key(total, job.rank(), job.size());
  std::vector<Histogram> histograms(static_cast<size_t>(job.size()));
  for (int shift = 0; shift < kKeyBits; shift += kDigitBits) {
    auto begin = std::chrono::steady_clock::now();
    const Histogram own = move_by_digit(keys.get(), spare.get(), mine, shift);
    times.local_us += microseconds_since(begin);

    begin = std::chrono::steady_clock::now();
    Error error = job.allgather(own.data(), histograms.data(), sizeof(Histogram));
    if (!error.empty()) return error;
    const KeyExchange plan = plan_exchange(histograms, total, job.rank(), job.size());
    error = job.alltoallv(spare.get(), plan.send_counts.data(), plan.send_displacements.data(), keys.get(),
                          plan.recv_counts.data(), plan.recv_displacements.data());
    if (!error.empty()) return error;
    times.exchange_us += microseconds_since(begin);

    // What came is one sorted block per source, sources in rank order: one more stable move makes them one.
    begin = std::chrono::steady_clock::now();
    move_by_digit(keys.get(), spare.get(), mine, shift);
    keys.swap(spare);
    times.local_us += microseconds_since(begin);
  }
  return {};
}

}  // namespace radix
