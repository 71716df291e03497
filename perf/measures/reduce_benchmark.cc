// SPDX-License-Identifier: BSD-3-Clause
// Measures the cost of sums, against memcpy moving as many bytes: for each set of instructions that this processor has,
// in caches and out of them. A sum of n bytes moves 3 n: it reads two operands and writes one result. memcpy of n moves
// 2 n. Both are timed alternately, by the processor's time of this thread, so that other work on the machine disturbs
// little; `of_memcpy` is the ratio of their bytes per second. Run: ibcoll_reduce_benchmark --benchmark_repetitions=9
// --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "runtime/comm/reduce/kernels.h"

namespace {

using namespace ibcoll;

enum class Form { kInPlace, kApart };  // the result replaces an operand, or has a buffer of its own

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
class Buffer {
 public:
  // Each begins at another offset in its page, as buffers of programs do: at equal offsets, loads wait for stores of
  // other pages.
  explicit Buffer(uint64_t bytes, uint64_t number)
      : memory_(static_cast<std::byte*>(std::aligned_alloc(4096, (bytes / 4096 + 2) * 4096))),
        offset_(number * 17 * 64) {}
  std::byte* get() const { return memory_.get() + offset_; }

 private:
  std::unique_ptr<std::byte, Free> memory_;
  uint64_t offset_;
};

// All pages are touched, so that no page fault is timed; every element is 1.0 or near it.
template <typename T>
Buffer filled(uint64_t bytes, uint64_t number) {
  Buffer buffer(bytes, number);
  for (uint64_t i = 0; i < bytes / sizeof(T); ++i) {
    const T value = T{1} / static_cast<T>(1 + i % 7);
    std::memcpy(buffer.get() + i * sizeof(T), &value, sizeof value);
  }
  return buffer;
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Work>
double seconds(uint64_t times, Work&& work) {
  const double start = processor_seconds();
  for (uint64_t i = 0; i < times; ++i) {
    work();
    benchmark::ClobberMemory();
  }
  return processor_seconds() - start;
}

// `bytes`: of one operand.
template <typename T>
void sum(benchmark::State& state, ReduceKernel kernel, Form form, uint64_t bytes) {
  const Buffer lower = filled<T>(bytes, 0), upper = filled<T>(bytes, 1), apart = filled<T>(bytes, 2);
  // A sum in place goes through two operands of n bytes; the copy beside it moves 1.5 n, from one half of as much
  // memory to another.
  const uint64_t copied = bytes / 2 * 3;
  const Buffer from = filled<T>(copied, 0), to = filled<T>(copied, 1);
  std::byte* const result = form == Form::kInPlace ? upper.get() : apart.get();
  const uint64_t times = std::max<uint64_t>(1, (1 << 20) / bytes);
  double summing = 0, copying = 0;
  for (auto _ : state) {
    const double once = seconds(times, [&] { kernel(lower.get(), upper.get(), result, bytes / sizeof(T)); });
    summing += once;
    copying += seconds(times, [&] { std::memcpy(to.get(), from.get(), copied); });
    state.SetIterationTime(once);
  }
  const double moved = static_cast<double>(state.iterations() * times) * static_cast<double>(3 * bytes);
  state.counters["sum_bytes/s"] = moved / summing;
  state.counters["memcpy_bytes/s"] = moved / copying;
  state.counters["of_memcpy"] = copying / summing;
}

template <typename T>
void add(const KernelSet& set, ibcoll_type_t type) {
  const ReduceKernel kernel = (*set.kernels)[type][kSum];
  for (const auto& [form, name] : {std::pair{Form::kInPlace, "in_place"}, std::pair{Form::kApart, "apart"}}) {
    for (const uint64_t kilobytes : {8, 128, 1024, 65'536}) {
      const std::string title = std::string("sum/") + type_name(type) + "/" + name + "/" + set.instructions + "/" +
                                std::to_string(kilobytes) + "K";
      benchmark::RegisterBenchmark(title.c_str(), [kernel, form = form, kilobytes](benchmark::State& state) {
        sum<T>(state, kernel, form, kilobytes * 1024);
      })->UseManualTime();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const KernelSet& set : kernel_sets()) {
    if (!set.runs_here()) continue;
    add<float>(set, IBCOLL_FLOAT);
    add<double>(set, IBCOLL_DOUBLE);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
