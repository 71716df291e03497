// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/report.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "tools/options/csv_field.h"

namespace ibcoll::perf {
namespace {

// Two digits after the point for short times, none for long ones: about four significant digits.
std::string time_text(double us) {
  if (us < 100) return fmt::format("{:.2f}", us);
  return us < 10000 ? fmt::format("{:.1f}", us) : fmt::format("{:.0f}", us);
}

struct Column {
  const char* name;
  double CallTimes::*value;
  bool full = false;  // shown on demand
};
constexpr Column kTimes[] = {{"t_min", &CallTimes::t_min},   {"t_avg", &CallTimes::t_avg},
                             {"t_max", &CallTimes::t_max},   {"p50", &CallTimes::p50, true},
                             {"p90", &CallTimes::p90, true}, {"p99", &CallTimes::p99}};

// The texts that `text` makes of each column that is shown, one after the other.
template <typename Text>
std::string times_text(bool full, Text text) {
  std::string result;
  for (const Column& column : kTimes)
    if (full || !column.full) result += text(column);
  return result;
}

constexpr size_t kShownArrival = 4;  // columns of arrival figures in a table; the heading has the rest

std::string table_heading(const Heading& heading) {
  std::string times =
      times_text(heading.full, [](const Column& column) { return fmt::format(" {:>11}", column.name); });
  for (size_t i = 0; i < kShownArrival && !heading.arrival.empty(); ++i)
    times += fmt::format(" {:>14}", kArrivalColumns[i].name);
  return fmt::format("{:>10} {:>10}{} {:>8}  {}\n", "bytes", "iterations", times, "errors", "algorithm");
}

}  // namespace

std::string table_line(const Row& row, bool full) {
  const bool ran = row.not_applicable.empty();
  const auto time = [&](const Column& column) {
    return fmt::format(" {:>11}", ran ? time_text(row.times.*column.value) : "");
  };
  std::string times = times_text(full, time);
  for (size_t i = 0; i < kShownArrival && row.arrival; ++i)
    times += fmt::format(" {:>14}", ran ? time_text(kArrivalColumns[i].value(*row.arrival)) : "");
  return fmt::format("{:>10} {:>10}{} {:>8}  {}{}\n", row.bytes, ran ? std::to_string(row.iterations) : "n/a", times,
                     !ran         ? ""
                     : row.errors ? std::to_string(*row.errors)
                                  : "-",
                     row.algorithm, ran ? "" : ": " + row.not_applicable);
}

std::string csv_line(const Row& row, bool full) {
  const bool ran = row.not_applicable.empty();
  const auto time = [&](const Column& column) {
    return ran ? fmt::format("{:.3f},", row.times.*column.value) : std::string(",");
  };
  std::string times = times_text(full, time);
  if (row.arrival) times += ran ? arrival_csv_values(*row.arrival) : std::string(std::size(kArrivalColumns) + 1, ',');
  return fmt::format("{},{},{},{}{},{},{}\n", row.collective, row.bytes, row.iterations, times,
                     ran && row.errors ? std::to_string(*row.errors) : "", row.algorithm,
                     csv_field(row.not_applicable));
}

std::string summary_line(const Outcome& outcome) {
  return fmt::format("# {}: {} rows verified, {} errors; {} not applicable{}\n",
                     outcome.errors == 0 ? "passed" : "FAILED", outcome.measured - outcome.unverifiable, outcome.errors,
                     outcome.not_applicable,
                     outcome.unverifiable > 0 ? fmt::format("; {} not verifiable", outcome.unverifiable) : "");
}

nlohmann::json json_row(const Row& row, bool full) {
  nlohmann::json json = {{"collective", row.collective},
                         {"bytes", row.bytes},
                         {"iterations", row.iterations},
                         {"algorithm", row.algorithm}};
  if (!row.not_applicable.empty()) {
    json["not_applicable"] = row.not_applicable;
    return json;
  }
  for (const Column& column : kTimes)
    if (full || !column.full) json[column.name] = row.times.*column.value;
  if (row.arrival) {
    for (const ArrivalColumn& column : kArrivalColumns) json[column.name] = column.value(*row.arrival);
    json["delays"] = delays_text(*row.arrival);
  }
  json["errors"] = row.errors ? nlohmann::json(*row.errors) : nlohmann::json(nullptr);
  return json;
}

Report::Report(OutputFile& output, Options::Format format, Heading heading)
    : output_(output), format_(format), heading_(heading) {}

void Report::begin() {
  if (format_ != Options::Format::kCsv) return;
  output_.write(
      fmt::format("collective,bytes,iterations,{}{}errors,algorithm,not_applicable\n",
                  times_text(heading_.full, [](const Column& column) { return std::string(column.name) + ","; }),
                  heading_.arrival.empty() ? "" : arrival_csv_names()));
}

void Report::begin_collective(const std::string& name) {
  collectives_.push_back(name);
  if (format_ != Options::Format::kTable) return;
  output_.write(fmt::format("# {} over {} rank{}; times in us{}\n", name, heading_.ranks,
                            heading_.ranks == 1 ? "" : "s",
                            heading_.checked ? ", which include waiting for ranks that verify" : ""));
  output_.write(heading_.arrival + table_heading(heading_));
  output_.flush();
}

void Report::add(const Row& row) {
  switch (format_) {
    case Options::Format::kTable:
      output_.write(table_line(row, heading_.full));
      break;
    case Options::Format::kCsv:
      output_.write(csv_line(row, heading_.full));
      break;
    case Options::Format::kJson:
      rows_.push_back(row);
  }
  output_.flush();  // so that a long run can be watched
}

void Report::end(const Outcome& outcome, uint64_t private_memory, uint64_t buffer_memory) {
  if (format_ == Options::Format::kTable) {
    if (heading_.checked) output_.write(summary_line(outcome));
    output_.write(fmt::format("# private memory: {:.1f} MB per rank at most, {:.1f} MB of it buffers of this program\n",
                              static_cast<double>(private_memory) / 1048576,
                              static_cast<double>(buffer_memory) / 1048576));
  } else if (format_ == Options::Format::kJson) {
    auto rows = nlohmann::json::array();
    for (const Row& row : rows_) rows.push_back(json_row(row, heading_.full));
    nlohmann::json document = {{"collective", collectives_.size() == 1 ? collectives_[0] : "all"},
                               {"ranks", heading_.ranks},
                               {"version", ibcoll_version_string()},
                               {"unit", "us"},
                               {"private_bytes_per_rank", private_memory},
                               {"buffer_bytes_per_rank", buffer_memory},
                               {"rows", rows}};
    if (!heading_.arrival.empty()) document["arrival"] = heading_.arrival.substr(2, heading_.arrival.size() - 3);
    output_.write(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
}

}  // namespace ibcoll::perf
