// SPDX-License-Identifier: BSD-3-Clause
// How a call site is shown.
#include <fmt/format.h>

#include "tools/traces/printable.h"
#include "tools/traces/source_lines.h"
#include "tools/traces/trace.h"

namespace ibcoll::tracing {
namespace {

std::string name_of(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// The symbol that the trace names is an exported one, so that of the file is as good or better.
void look_up(Site& site, SourceLines& lines) {
  const SourceLine found = lines.find(site.module, site.build_id, site.offset);
  site.file = found.file, site.line = found.line, site.function = found.function;
  if (!found.file.empty()) return;
  if (!found.function.empty()) {
    site.symbol = fmt::format("{}+{:#x}", found.function, found.in_function);
  } else if (const size_t plus = site.symbol.rfind('+'); plus != std::string::npos) {
    site.function = plain_name(site.symbol.substr(0, plus));
    site.symbol = site.function + site.symbol.substr(plus);
  }
}

void show(Site& site) {
  const std::string module = name_of(site.module);
  site.address = module.empty() ? "" : fmt::format("{}+{:#x}", module, site.offset);
  if (!site.file.empty())
    site.text =
        fmt::format("{}{}{}:{}", site.function, site.function.empty() ? "" : " ", name_of(site.file), site.line);
  else if (!site.symbol.empty())
    site.text = fmt::format("{} in {}", site.symbol, module);
  else
    site.text = site.address.empty() ? "?" : site.address;
  for (std::string* const shown : {&site.address, &site.file, &site.function, &site.text}) *shown = printable(*shown);
}

}  // namespace

std::vector<std::string> find_sources(std::vector<RankTrace>& traces) {
  SourceLines lines;
  for (RankTrace& trace : traces)
    for (Site& site : trace.sites) {
      if (!site.module.empty()) look_up(site, lines);
      show(site);
    }
  return lines.problems();
}

}  // namespace ibcoll::tracing
