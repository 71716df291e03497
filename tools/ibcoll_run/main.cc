// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_run: starts the ranks of a job and stays with them until all have ended.
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/ibcoll_run/agent_main.h"
#include "tools/ibcoll_run/job.h"
#include "tools/ibcoll_run/options.h"
#include "tools/ibcoll_run/plan.h"
#include "tools/ibcoll_run/process_defaults.h"
#include "tools/ibcoll_run/rdma_in_memory.h"
#include "tools/ibcoll_run/timeouts.h"
#include "tools/ibcoll_run/watchdog.h"

namespace ibcoll::run {
namespace {

constexpr int kMistake = 2;

int complain(const Status& status) {
  std::fprintf(stderr, "ibcoll_run: %s\n", status.text().c_str());
  return status.code() == IBCOLL_ERR_INVALID_ARGUMENT ? kMistake : 1;
}

int launch(const Options& options, const ProcessDefaults& defaults) {
  Result<std::vector<HostJob>> jobs = plan_job(options);
  if (!jobs.ok()) return complain(jobs.status());
  RdmaInMemory device;  // as long as there are ranks
  if (options.rdma_in_memory)
    if (Status status = device.open(jobs.value()); !status.ok()) return complain(status);
  EventLoop loop;
  if (Status status = loop.open(); !status.ok()) return complain(status);
  Job job(loop, options, defaults);
  if (Status status = job.prepare(std::move(jobs.value())); !status.ok()) return complain(status);
  return job.run();
}

}  // namespace
}  // namespace ibcoll::run

int main(int argc, char** argv) {
  const ibcoll::run::ParsedOptions parsed = ibcoll::run::parse_options(argc, argv);
  if (parsed.stop) {
    std::FILE* const output = parsed.exit_code == 0 ? stdout : stderr;
    if (std::fputs(parsed.text.c_str(), output) >= 0 && std::fflush(output) == 0) return parsed.exit_code;
    std::fprintf(stderr, "ibcoll_run: cannot write to standard output: %s\n", std::strerror(errno));
    return 1;
  }
  const ibcoll::run::ProcessDefaults defaults = ibcoll::run::ProcessDefaults::take_over();
  const ibcoll::run::Watchdog watchdog(ibcoll::run::timeouts_or_default().pending_signal);
  return parsed.options.agent ? ibcoll::run::agent_main(defaults) : ibcoll::run::launch(parsed.options, defaults);
}
