// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/options/csv_field.h"

namespace ibcoll::simulator {
namespace {

const char* const kColumns =
    "bytes,algorithm,selected,time_us,mean_us,predicted_us,predicted_late_us,rounds,messages_between,bytes_between,"
    "messages_within,bytes_within,control_messages,errors,not_applicable";

std::string table_line(const Row& row, bool check) {
  const std::string name = row.algorithm + (row.selected ? " *" : "");
  if (!row.why_not.empty()) return fmt::format("{:>10}  {:<28} n/a: {}\n", row.bytes, name, row.why_not);
  std::string line = fmt::format("{:>10}  {:<28} {:>12.2f} {:>12.2f} {:>7} {:>10} {:>14} {:>10} {:>14}", row.bytes,
                                 name, row.time_us, row.mean_us, row.rounds, row.between_nodes.messages,
                                 row.between_nodes.bytes, row.within_nodes.messages, row.within_nodes.bytes);
  if (check) line += fmt::format(" {:>8}", row.errors);
  return line + "\n";
}

std::string csv_line(const Row& row) {
  if (!row.why_not.empty())
    return fmt::format("{},{},,,,,,,,,,,,,{}\n", row.bytes, row.algorithm, csv_field(row.why_not));
  return fmt::format("{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{},{},{},{},{},{},{},\n", row.bytes, row.algorithm,
                     row.selected ? "yes" : "no", row.time_us, row.mean_us, row.predicted_us, row.predicted_late_us,
                     row.rounds, row.between_nodes.messages, row.between_nodes.bytes, row.within_nodes.messages,
                     row.within_nodes.bytes, row.control_messages, row.errors);
}

nlohmann::ordered_json json_row(const Row& row) {
  nlohmann::ordered_json json = {{"bytes", row.bytes}, {"algorithm", row.algorithm}};
  if (!row.why_not.empty()) {
    json["not_applicable"] = row.why_not;
    return json;
  }
  json.update({{"selected", row.selected},
               {"time_us", row.time_us},
               {"mean_us", row.mean_us},
               {"predicted_us", row.predicted_us},
               {"predicted_late_us", row.predicted_late_us},
               {"rounds", row.rounds},
               {"messages_between", row.between_nodes.messages},
               {"bytes_between", row.between_nodes.bytes},
               {"messages_within", row.within_nodes.messages},
               {"bytes_within", row.within_nodes.bytes},
               {"control_messages", row.control_messages},
               {"errors", row.errors}});
  return json;
}

nlohmann::ordered_json json_model(const Options& options) {
  return {{"alpha_us", options.alpha_us},
          {"bandwidth_gbytes", options.bandwidth},
          {"gap_us", options.gap_us},
          {"ports", options.ports == sim::Ports::kNode ? "node" : "rank"},
          {"node_alpha_us", options.node_alpha_us},
          {"node_bandwidth_gbytes", options.node_bandwidth},
          {"node_gap_us", options.node_gap_us},
          {"copy_bandwidth_gbytes", options.copy_bandwidth},
          {"flag_us", options.flag_us},
          {"eager_bytes", options.eager_bytes},
          {"window_bytes", options.window_bytes}};
}

}  // namespace

void Report::begin() {
  if (options_.format == Options::Format::kCsv) output_.write(fmt::format("{}\n", kColumns));
  if (options_.format != Options::Format::kTable) return;
  output_.write(fmt::format("# {}, {} ranks on {} nodes; virtual time in us; * is what auto takes\n",
                            options_.collective->name, options_.ranks, options_.nodes));
  output_.write(fmt::format("{:>10}  {:<28} {:>12} {:>12} {:>7} {:>10} {:>14} {:>10} {:>14}{}\n", "bytes", "algorithm",
                            "time", "mean", "rounds", "between", "bytes", "within", "bytes",
                            options_.check ? "   errors" : ""));
}

void Report::add(const Row& row) {
  if (options_.format == Options::Format::kJson) return rows_.push_back(row);
  output_.write(options_.format == Options::Format::kCsv ? csv_line(row) : table_line(row, options_.check));
  output_.flush();  // so that a long run can be watched
}

void Report::end() {
  if (options_.format != Options::Format::kJson) return;
  auto rows = nlohmann::ordered_json::array();
  for (const Row& row : rows_) rows.push_back(json_row(row));
  const nlohmann::ordered_json all = {{"collective", options_.collective->name},
                                      {"ranks", options_.ranks},
                                      {"nodes", options_.nodes},
                                      {"root", options_.root},
                                      {"distribution", oracle::kDistributions[static_cast<int>(options_.distribution)]},
                                      {"model", json_model(options_)},
                                      {"rows", rows}};
  output_.write(all.dump(2) + "\n");
}

}  // namespace ibcoll::simulator
