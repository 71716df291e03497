// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "tools/ibcoll_trace/analysis.h"
#include "tools/ibcoll_trace/output.h"
#include "tools/ibcoll_trace/served.h"
#include "tools/options/csv_field.h"

namespace ibcoll::tracing {
namespace {

std::string late(const Row& row) {
  if (row.late_calls == 0) return "-";
  return fmt::format("{}: {:.0f} %", row.late_rank,
                     100.0 * static_cast<double>(row.late_calls) / static_cast<double>(row.calls));
}

std::string table_line(const std::vector<std::string>& cells) {
  static constexpr std::array<int, 8> kWidths = {20, 8, 12, 10, 10, 12, 12, 12};
  std::string line = fmt::format("{:<{}}", cells[0], kWidths[0]);
  for (size_t i = 1; i < kWidths.size(); ++i) line += fmt::format(" {:>{}}", cells[i], kWidths[i]);
  return line + fmt::format("  {:<12} {}\n", cells[8], cells[9]);
}

std::string table(const TracedJob& job, const std::vector<Row>& rows, size_t calls) {
  std::string text = table_line(table_titles());
  for (const Row& row : rows) text += table_line(table_cells(row));
  text += message_time(job) + '\n';
  if (job.dropped > 0)
    text += fmt::format("{} records were dropped, the oldest ones: raise IBCOLL_TRACE_CALLS\n", job.dropped);
  if (job.incomplete > 0) text += fmt::format("{} calls are left out: not all ranks have a record\n", job.incomplete);
  if (job.failed > 0) text += fmt::format("{} calls are left out: they failed\n", job.failed);
  for (const std::string& problem : job.problems) text += problem + '\n';
  for (const ClockOffset& offset : job.clocks)
    text += offset.known
                ? fmt::format("clock of machine {}: offset {:.1f} us, error up to {:.1f} us\n", offset.clock,
                              static_cast<double>(offset.offset_ns) / 1e3, static_cast<double>(offset.error_ns) / 1e3)
                : fmt::format(
                      "clock of machine {}: offset unknown, no synchronizing call with rank 0's "
                      "machine; its times cannot be compared\n",
                      offset.clock);
  for (const Call* const call : furthest_apart(job, calls)) text += served_text(*call);
  return text;
}

std::string csv(const std::vector<Row>& rows) {
  std::string text =
      "collective,site,function,file,line,address,calls,mean_bytes,message_us,average_factor,worst_factor,spread_us,"
      "after_last_us,late_rank,"
      "late_calls\n";
  for (const Row& row : rows)
    text += fmt::format("{},{},{},{},{},{},{},{:.1f},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{},{}\n", row.collective,
                        csv_field(row.site.text), csv_field(row.site.function), csv_field(row.site.file), row.site.line,
                        csv_field(row.site.address), row.calls, row.mean_bytes, row.message_us, row.average_factor,
                        row.worst_factor, row.spread_us, row.after_last_us, row.late_rank, row.late_calls);
  return text;
}

std::string json(const TracedJob& job, const std::vector<Row>& rows, size_t calls) {
  nlohmann::ordered_json all = {{"ranks", job.ranks},
                                {"alpha_us", job.alpha_us},
                                {"beta_us_per_byte", job.beta_us_per_byte},
                                {"dropped", job.dropped},
                                {"incomplete", job.incomplete},
                                {"failed", job.failed},
                                {"problems", job.problems},
                                {"clocks", nlohmann::ordered_json::array()},
                                {"rows", nlohmann::ordered_json::array()}};
  for (const ClockOffset& offset : job.clocks)
    all["clocks"].push_back({{"clock", offset.clock},
                             {"known", offset.known},
                             {"offset_us", static_cast<double>(offset.offset_ns) / 1e3},
                             {"error_us", static_cast<double>(offset.error_ns) / 1e3}});
  for (const Row& row : rows)
    all["rows"].push_back({{"collective", row.collective},
                           {"site", row.site.text},
                           {"function", row.site.function},
                           {"file", row.site.file},
                           {"line", row.site.line},
                           {"address", row.site.address},
                           {"calls", row.calls},
                           {"mean_bytes", row.mean_bytes},
                           {"message_us", row.message_us},
                           {"average_factor", row.average_factor},
                           {"worst_factor", row.worst_factor},
                           {"spread_us", row.spread_us},
                           {"after_last_us", row.after_last_us},
                           {"late_rank", row.late_rank},
                           {"late_calls", row.late_calls}});
  if (calls > 0) all["served"] = nlohmann::ordered_json::array();
  for (const Call* const call : furthest_apart(job, calls)) all["served"].push_back(served_json(*call));
  return all.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::vector<std::string> table_titles() {
  return {"collective", "calls",     "mean bytes", "T us", "average/T",
          "worst/T",    "spread us", "after us",   "late", "call site"};
}

std::vector<std::string> table_cells(const Row& row) {
  return {row.collective,
          std::to_string(row.calls),
          fmt::format("{:.0f}", row.mean_bytes),
          fmt::format("{:.2f}", row.message_us),
          fmt::format("{:.1f}", row.average_factor),
          fmt::format("{:.1f}", row.worst_factor),
          fmt::format("{:.2f}", row.spread_us),
          fmt::format("{:.2f}", row.after_last_us),
          late(row),
          row.site.text};
}

std::string message_time(const TracedJob& job) {
  return fmt::format("{} ranks; T = {:.3g} us + {:.3g} us per byte", job.ranks, job.alpha_us, job.beta_us_per_byte);
}

std::string report(const TracedJob& job, const std::string& format, size_t calls) {
  const std::vector<Row> rows = table_one(job);
  return format == "json" ? json(job, rows, calls) : format == "csv" ? csv(rows) : table(job, rows, calls);
}

}  // namespace ibcoll::tracing
