// SPDX-License-Identifier: BSD-3-Clause
// The page: the table of arrivals, then the time line.
#include <string>
#include <string_view>

#include "tools/ibcoll_trace/analysis.h"
#include "tools/ibcoll_trace/output.h"
#include "tools/traces/time_line.h"

namespace ibcoll::tracing {
namespace {

// The rows that the command prints.
std::string arrival_table(const TracedJob& job) {
  std::string text = "<table><tr>";
  for (const std::string& title : table_titles()) text += "<th>" + html_text(title) + "</th>";
  for (const Row& row : table_one(job)) {
    text += "</tr>\n<tr>";
    for (const std::string& cell : table_cells(row)) text += "<td>" + html_text(cell) + "</td>";
  }
  return text + "</tr></table>\n" + html_text(message_time(job)) + '\n';
}

}  // namespace

void write_page(const TracedJob& job, const std::vector<PageCall>& shown, OutputFile& page) {
  const auto write = [&page](std::string_view text) { page.write(text); };
  write(page_head() + "<h3 style=\"margin:4px 0\">ibcoll trace</h3>\n" + arrival_table(job) + "<p>" +
        html_text(left_out(job, shown)) + "</p>\n");
  write_time_line(job, shown, 1, write);
}

}  // namespace ibcoll::tracing
