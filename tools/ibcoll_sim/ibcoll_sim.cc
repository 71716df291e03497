// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_sim: the algorithms of a collective in one process over a modelled network. See docs/ibcoll_sim.md.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "tools/ibcoll_sim/experiment.h"
#include "tools/ibcoll_sim/options.h"
#include "tools/ibcoll_sim/report.h"

namespace ibcoll::simulator {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

int fail(const std::string& text, int status) {
  fmt::print(stderr, "ibcoll_sim: {}\n", text);
  return status;
}

int write_failed(const std::string& what) {
  return fail(fmt::format("cannot write {}: {}", what, std::strerror(errno)), 1);
}

int simulate(const Options& options) {
  File trace;
  if (!options.trace.empty()) {
    trace.reset(std::fopen(options.trace.c_str(), "w"));
    if (!trace) return fail(fmt::format("--trace: {}: {}", options.trace, std::strerror(errno)), 2);
  }
  Report report(options, stdout);
  bool begun = false;
  uint64_t errors = 0;
  for (const uint64_t bytes : options.sizes) {
    const Result<std::vector<Row>> rows = run_size(options, bytes, trace.get());
    if (!rows.ok()) {
      const ibcoll_status_t code = rows.status().code();
      const bool usage = code == IBCOLL_ERR_INVALID_ARGUMENT || code == IBCOLL_ERR_NOT_APPLICABLE;
      return fail(rows.status().text(), usage ? 2 : 1);
    }
    if (!begun) report.begin();
    begun = true;
    for (const Row& row : rows.value()) {
      report.add(row);
      errors += row.errors;
      if (!row.damage.empty()) fail(row.damage, 1);
    }
  }
  report.end();
  if (trace && (std::ferror(trace.get()) != 0 || std::fclose(trace.release()) != 0)) return write_failed(options.trace);
  if (std::fflush(stdout) != 0) return write_failed("to standard output");
  return errors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ibcoll::simulator

int main(int argc, char** argv) {
  using namespace ibcoll::simulator;
  Options options;
  if (const auto end = parse_options(argc, argv, options)) {
    fmt::print(stdout, "{}", end->output);
    fmt::print(stderr, "{}", end->error);
    return end->status;
  }
  try {
    return simulate(options);
  } catch (const std::bad_alloc&) {
    return fail("out of memory; use fewer ranks or smaller blocks", 1);
  }
}
