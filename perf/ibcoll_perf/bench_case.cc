// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/bench_case.h"

#include <fmt/format.h>

#include "perf/call_times.h"
#include "tools/own_calls.h"

namespace ibcoll::perf {
namespace {

// Where nothing is verified, floating point, as in most programs; else integers, whose sum is exact.
ibcoll_type_t element_type(uint64_t bytes, bool exact) {
  switch (element_width(bytes)) {
    case 1:
      return IBCOLL_UINT8;
    case 2:
      return IBCOLL_UINT16;
    case 4:
      return exact ? IBCOLL_UINT32 : IBCOLL_FLOAT;
    default:
      return exact ? IBCOLL_UINT64 : IBCOLL_DOUBLE;
  }
}

}  // namespace

std::string shown(const std::string& algorithm) { return algorithm.empty() ? "default" : algorithm; }

LayoutParams layout_params(const Options& options, const Job& job, uint64_t bytes) {
  return {options.collective, bytes, job.rank(), job.size(), options.root, options.in_place, options.check};
}

BenchCase::BenchCase(Job& job, const Options& options, const Buffers& buffers, uint64_t bytes)
    : job_(job),
      options_(options),
      buffers_(buffers),
      bytes_(bytes),
      layout_(make_layout(layout_params(options, job, bytes))) {
  fill_arguments();
}

BenchCase::~BenchCase() { (void)ibcoll_request_free(request_); }

void BenchCase::fill_arguments() {
  args_.struct_size = sizeof args_;
  args_.collective = options_.collective;
  args_.scheme = options_.scheme;
  if (options_.collective == IBCOLL_BARRIER) return;
  args_.recv = buffers_.recv();
  if (options_.collective == IBCOLL_BCAST) {
    args_.root = options_.root;
  } else {
    args_.send = options_.in_place ? IBCOLL_IN_PLACE : buffers_.send();
  }
  if (options_.collective == IBCOLL_ALLREDUCE) {
    args_.type = element_type(bytes_, options_.check);
    args_.count = bytes_ / element_width(bytes_);
    args_.op = IBCOLL_SUM;
  } else if (layout_.recv_counts.empty()) {
    args_.bytes = bytes_;
  } else {
    args_.recv_counts = layout_.recv_counts.data();
    args_.recv_displacements = layout_.recv_displacements.data();
    if (options_.collective == IBCOLL_ALLTOALLV) {
      args_.send_counts = layout_.send_counts.data();
      args_.send_displacements = layout_.send_displacements.data();
    }
  }
}

std::string BenchCase::title() const {
  return fmt::format("{} of {} bytes by {}", ibcoll_collective_name(options_.collective), bytes_, algorithm_);
}

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
  if (options_.blocking) {
    const ibcoll_status_t status = blocking_call();
    return status == IBCOLL_OK || fail("call", status);
  }
  ibcoll_status_t status = ibcoll_start(request_);
  if (status != IBCOLL_OK) return fail("start", status);
  status = ibcoll_wait(request_);
  return status == IBCOLL_OK || fail("wait", status);
}

ibcoll_status_t BenchCase::blocking_call() {
  const ibcoll_team_t team = job_.team();
  if (args_.algorithm != nullptr || args_.scheme != IBCOLL_SCHEME_AUTO) {
    return run_blocking(team, args_);
  }
  switch (args_.collective) {
    case IBCOLL_BARRIER:
      return ibcoll_barrier(team);
    case IBCOLL_BCAST:
      return ibcoll_bcast(team, args_.recv, args_.bytes, args_.root);
    case IBCOLL_ALLGATHER:
      return ibcoll_allgather(team, args_.send, args_.recv, args_.bytes);
    case IBCOLL_ALLGATHERV:
      return ibcoll_allgatherv(team, args_.send, args_.recv, args_.recv_counts, args_.recv_displacements);
    case IBCOLL_ALLTOALL:
      return ibcoll_alltoall(team, args_.send, args_.recv, args_.bytes);
    case IBCOLL_ALLTOALLV:
      return ibcoll_alltoallv(team, args_.send, args_.send_counts, args_.send_displacements, args_.recv,
                              args_.recv_counts, args_.recv_displacements);
    case IBCOLL_ALLREDUCE:
      return ibcoll_allreduce(team, args_.send, args_.recv, args_.count, args_.type, args_.op);
    default:
      return IBCOLL_ERR_INTERNAL;
  }
}

}  // namespace ibcoll::perf
