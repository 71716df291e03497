// SPDX-License-Identifier: BSD-3-Clause
#include "perf/apps/layer/report.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "perf/call_times.h"

namespace apps {
namespace {

// CLOCK_MONOTONIC is one clock for all processes of one boot of one machine, but for namespaces of time.
using ClockName = std::array<char, 64>;

ClockName clock_name() {
  std::string name;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), name);
  struct stat about {};
  if (stat("/proc/self/ns/time", &about) == 0) name += fmt::format(" {}", about.st_ino);
  ClockName result{};
  name.copy(result.data(), result.size() - 1);
  return result;
}

Error compare_clocks(AppJob& job, bool& common) {
  const ClockName own = clock_name();
  std::vector<ClockName> all(static_cast<size_t>(job.size()));
  Error error = job.library().allgather(own.data(), all.data(), sizeof own);
  common = std::all_of(all.begin(), all.end(), [&](const ClockName& one) { return one == all[0] && one[0] != '\0'; });
  return error;
}

// Half a round trip, the median of several.
Error time_message(AppJob& job, uint64_t bytes, double& message_us) {
  constexpr int kUntimed = 2, kTimed = 11;
  std::vector<char> buffer(std::max<uint64_t>(bytes, 1));
  std::vector<double> times;
  Error error = job.library().barrier();
  for (int i = 0; i < kUntimed + kTimed && error.empty(); ++i) {
    const double begin = ibcoll::perf::now_us();
    error = job.library().message(buffer.data(), bytes, false);
    if (error.empty()) error = job.library().message(buffer.data(), bytes, true);
    if (i >= kUntimed) times.push_back((ibcoll::perf::now_us() - begin) / 2);
  }
  if (!error.empty()) return error;
  std::nth_element(times.begin(), times.begin() + kTimed / 2, times.end());
  message_us = times[kTimed / 2];
  return job.from_rank_0(&message_us, sizeof message_us);
}

void add_call(Row& row, const Call& call, const Imbalance& one) {
  ++row.calls;
  row.bytes += call.bytes;
  row.in_calls_us += one.in_call;
  row.after_last_us += one.after_last;
  row.average_case += one.average;
  row.worst_case += one.worst;
}

Row& row_of(Report& report, const std::string& collective) {
  for (Row& row : report.rows)
    if (row.collective == collective) return row;
  report.rows.emplace_back().collective = collective;
  return report.rows.back();
}

}  // namespace

Error make_report(AppJob& job, Report& report) {
  Error error = compare_clocks(job, report.common_clock);
  if (!error.empty()) return error;
  report.total_us = job.largest(job.total_us());
  const std::vector<Call>& calls = job.calls();
  std::vector<Visit> one(static_cast<size_t>(job.size()));
  for (const Call& call : calls) {
    error = job.library().allgather(&call.visit, one.data(), sizeof(Visit));
    if (!error.empty()) return error;
    add_call(row_of(report, call.collective), call, imbalance(one));
  }
  for (Row& row : report.rows) {
    const auto count = static_cast<double>(row.calls);
    row.bytes /= row.calls;
    error = job.from_rank_0(&row.bytes, sizeof row.bytes);  // of alltoallv each rank has its own mean
    if (error.empty()) error = time_message(job, row.bytes, row.message_us);
    if (!error.empty()) return error;
    const double all_us = row.message_us * count;
    row.average_case = job.size() > 1 && all_us > 0 ? row.average_case / all_us : 0;
    row.worst_case = job.size() > 1 && all_us > 0 ? row.worst_case / all_us : 0;
  }
  return {};
}

std::string text_of(const Report& report, const std::string& title, int ranks) {
  std::string text = fmt::format("{}; {} rank{} over {}\n{:<12}{:>7}{:>10}{:>14}{:>15}{:>13}{:>14}{:>12}\n", title,
                                 ranks, ranks == 1 ? "" : "s", Library::name(), "collective", "calls", "bytes",
                                 "in calls ms", "after last ms", "message us", "average-case", "worst-case");
  double in_calls = 0;
  for (const Row& row : report.rows) {
    in_calls += row.in_calls_us;
    text += fmt::format("{:<12}{:>7}{:>10}{:>14.3f}", row.collective, row.calls, row.bytes, row.in_calls_us / 1e3);
    if (report.common_clock) {
      text += fmt::format("{:>15.3f}{:>13.1f}{:>14.2f}{:>12.2f}\n", row.after_last_us / 1e3, row.message_us,
                          row.average_case, row.worst_case);
    } else {
      text += fmt::format("{:>15}{:>13.1f}{:>14}{:>12}\n", "-", row.message_us, "-", "-");
    }
  }
  if (!report.common_clock) text += "The ranks have no common clock: arrivals cannot be compared.\n";
  return text + fmt::format("in collectives {:.3f} ms (mean of the ranks), in total {:.3f} ms (slowest rank)\n",
                            in_calls / 1e3, report.total_us / 1e3);
}

std::string csv_of(const Report& report) {
  std::string text = "collective,calls,bytes,in_calls_us,after_last_us,message_us,average_case,worst_case,total_us\n";
  for (const Row& row : report.rows) {
    text += fmt::format("{},{},{},{:.3f},", row.collective, row.calls, row.bytes, row.in_calls_us);
    if (report.common_clock) {
      text += fmt::format("{:.3f},{:.3f},{:.3f},{:.3f}", row.after_last_us, row.message_us, row.average_case,
                          row.worst_case);
    } else {
      text += fmt::format(",{:.3f},,", row.message_us);
    }
    text += fmt::format(",{:.3f}\n", report.total_us);
  }
  return text;
}

}  // namespace apps
