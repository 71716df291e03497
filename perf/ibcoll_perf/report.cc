// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace ibcoll::perf {
namespace {

// Two digits behind the point for short times, none for long ones: four figures that mean something.
std::string time_text(double us) {
  if (us < 100) return fmt::format("{:.2f}", us);
  return us < 10000 ? fmt::format("{:.1f}", us) : fmt::format("{:.0f}", us);
}

// In a field of CSV (RFC 4180).
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + '"';
}

}  // namespace

std::string table_line(const Row& row) {
  if (!row.not_applicable.empty()) {
    return fmt::format("{:>10} {:>10} {:>11} {:>11} {:>11} {:>11} {:>8}  {}: {}\n", row.bytes, "n/a", "", "", "", "",
                       "", row.algorithm, row.not_applicable);
  }
  return fmt::format("{:>10} {:>10} {:>11} {:>11} {:>11} {:>11} {:>8}  {}\n", row.bytes, row.iterations,
                     time_text(row.times.t_min), time_text(row.times.t_avg), time_text(row.times.t_max),
                     time_text(row.times.p99), row.errors ? std::to_string(*row.errors) : "-", row.algorithm);
}

std::string csv_line(const std::string& collective, const Row& row) {
  if (!row.not_applicable.empty()) {
    return fmt::format("{},{},0,,,,,,{},{}\n", collective, row.bytes, row.algorithm, quoted(row.not_applicable));
  }
  return fmt::format("{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{},{},\n", collective, row.bytes, row.iterations,
                     row.times.t_min, row.times.t_avg, row.times.t_max, row.times.p99,
                     row.errors ? std::to_string(*row.errors) : "", row.algorithm);
}

nlohmann::json json_row(const Row& row) {
  nlohmann::json json = {{"bytes", row.bytes}, {"iterations", row.iterations}, {"algorithm", row.algorithm}};
  if (!row.not_applicable.empty()) {
    json["not_applicable"] = row.not_applicable;
    return json;
  }
  json["t_min"] = row.times.t_min;
  json["t_avg"] = row.times.t_avg;
  json["t_max"] = row.times.t_max;
  json["p99"] = row.times.p99;
  json["errors"] = row.errors ? nlohmann::json(*row.errors) : nlohmann::json(nullptr);
  return json;
}

Report::Report(OutputFile& output, Options::Format format, Heading heading)
    : output_(output), format_(format), heading_(std::move(heading)) {}

void Report::begin() {
  if (format_ == Options::Format::kCsv) {
    output_.write("collective,bytes,iterations,t_min,t_avg,t_max,p99,errors,algorithm,not_applicable\n");
  } else if (format_ == Options::Format::kTable) {
    output_.write(fmt::format("# {} over {} rank{}; times in us{}\n", heading_.collective, heading_.ranks,
                              heading_.ranks == 1 ? "" : "s",
                              heading_.checked ? ", which include waiting for ranks that verify" : ""));
    output_.write(fmt::format("{:>10} {:>10} {:>11} {:>11} {:>11} {:>11} {:>8}  {}\n", "bytes", "iterations", "t_min",
                              "t_avg", "t_max", "p99", "errors", "algorithm"));
  }
}

void Report::add(const Row& row) {
  switch (format_) {
    case Options::Format::kTable:
      return output_.write(table_line(row));
    case Options::Format::kCsv:
      return output_.write(csv_line(heading_.collective, row));
    case Options::Format::kJson:
      rows_.push_back(row);
  }
}

void Report::end(uint64_t private_memory, uint64_t buffer_memory) {
  if (format_ == Options::Format::kTable) {
    output_.write(fmt::format("# private memory: {:.1f} MB per rank at most, {:.1f} MB of it buffers of this program\n",
                              static_cast<double>(private_memory) / 1048576,
                              static_cast<double>(buffer_memory) / 1048576));
  } else if (format_ == Options::Format::kJson) {
    auto rows = nlohmann::json::array();
    for (const Row& row : rows_) rows.push_back(json_row(row));
    const nlohmann::json document = {{"collective", heading_.collective},
                                     {"ranks", heading_.ranks},
                                     {"version", ibcoll_version_string()},
                                     {"unit", "us"},
                                     {"private_bytes_per_rank", private_memory},
                                     {"buffer_bytes_per_rank", buffer_memory},
                                     {"rows", rows}};
    output_.write(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
}

}  // namespace ibcoll::perf
