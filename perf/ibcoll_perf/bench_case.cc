// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/bench_case.h"

#include <fmt/format.h>

#include <array>

#include "perf/ibcoll_perf/plan.h"
#include "tools/oracle/blocking_call.h"
#include "tools/own_calls.h"

namespace ibcoll::perf {
std::string shown(const std::string& algorithm) { return algorithm.empty() ? "default" : algorithm; }

BufferBytes buffer_bytes(const PerfJob& job, const Options& options, const Collective& row, uint64_t bytes) {
  const oracle::CallLayout layout(call_params(options, row, job.size(), bytes), job.rank());
  if (!options.check)
    return {layout.send().extent + ChangingBuffers::kRoom, layout.recv().extent + ChangingBuffers::kRoom};
  return {oracle::room_for(layout.send()), oracle::room_for(layout.recv())};
}

BenchCase::BenchCase(PerfJob& job, const Options& options, const Buffers& buffers, const Collective& row,
                     uint64_t bytes)
    : job_(job),
      options_(options),
      bytes_(bytes),
      layout_(call_params(options, row, job.size(), bytes), job.rank()),
      send_(buffers.send().data()),
      recv_(buffers.recv().data()) {
  if (options.check) {
    checked_.emplace(layout_.params(), job.rank(), oracle::Room{buffers.send(), buffers.recv()});
    args_ = checked_->args();
  } else {
    args_ = layout_.args(buffers.send().data(), buffers.recv().data());
  }
}

BenchCase::~BenchCase() { (void)ibcoll_request_free(request_); }

std::string BenchCase::title() const { return fmt::format("{} of {} bytes by {}", row().name, bytes_, algorithm_); }

bool BenchCase::fail(const char* step, ibcoll_status_t status) {
  return job_.fail(fmt::format("{}: {}", title(), step), status);
}

BenchCase::Ready BenchCase::select(const std::string& algorithm) {
  (void)ibcoll_request_free(request_);
  request_ = nullptr;
  wanted_ = algorithm;
  algorithm_ = shown(algorithm);
  args_.algorithm = wanted_.empty() ? nullptr : wanted_.c_str();
  const ibcoll_status_t mine = ibcoll_collective_init(job_.team(), &args_, &request_);
  why_ = "not on every rank";
  if (mine != IBCOLL_OK) {
    request_ = nullptr;
    why_ = ibcoll_last_error();
  }
  int32_t worst = mine;
  if (!job_.worst(worst)) return Ready::kFailed;
  if (worst == IBCOLL_ERR_NOT_APPLICABLE) return Ready::kNotApplicable;
  if (!job_.agree(mine == IBCOLL_OK ? "" : fmt::format("{}: {}", title(), why_))) return Ready::kFailed;
  algorithm_ = ibcoll_request_algorithm(request_);
  return Ready::kYes;
}

bool BenchCase::call() {
  if (options_.calls != Calls::kPersistent) change_buffers();
  if (options_.calls == Calls::kBlocking) {
    const ibcoll_status_t status = blocking_call();
    return status == IBCOLL_OK || fail("call", status);
  }
  ibcoll_request_t request = request_;
  const bool once = options_.calls == Calls::kOneshot;
  ibcoll_status_t status = once ? ibcoll_collective_start(job_.team(), &args_, &request) : ibcoll_start(request);
  if (status != IBCOLL_OK) return fail("start", status);
  status = ibcoll_wait(request);
  return status == IBCOLL_OK || fail("wait", status);
}

// What --check looks at stays where it is.
void BenchCase::change_buffers() {
  if (options_.check) return;
  const uint64_t offset = offsets_.next();
  if (args_.send != nullptr && args_.send != IBCOLL_IN_PLACE) args_.send = send_ + offset;
  if (args_.recv != nullptr && args_.recv != IBCOLL_IN_PLACE) args_.recv = recv_ + offset;
}

ibcoll_status_t BenchCase::blocking_call() {
  const ibcoll_team_t team = job_.team();
  if (args_.algorithm != nullptr || args_.scheme != IBCOLL_SCHEME_AUTO) {
    return run_blocking(team, args_);
  }
  return oracle::blocking_call(team, args_);
}

}  // namespace ibcoll::perf
