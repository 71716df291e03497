// SPDX-License-Identifier: BSD-3-Clause
#include "perf/ibcoll_perf/job.h"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "perf/arrival/prepare.h"
#include "tools/own_calls.h"

namespace ibcoll::perf {

PerfJob::~PerfJob() {
  if (context_ != nullptr) (void)ibcoll_context_destroy(context_);
}

bool PerfJob::open() {
  const ibcoll_status_t status = ibcoll_context_create(nullptr, &context_);
  if (status != IBCOLL_OK) {
    context_ = nullptr;
    return fail("start", status);
  }
  team_ = ibcoll_team_world(context_);
  rank_ = ibcoll_context_rank(context_);
  size_ = ibcoll_context_size(context_);
  return true;
}

bool PerfJob::close() {
  if (context_ == nullptr) return true;
  const ibcoll_status_t status = ibcoll_context_destroy(context_);
  context_ = nullptr;
  return status == IBCOLL_OK || fail("end", status);
}

void PerfJob::abandon() {
  static ibcoll_context_t abandoned = nullptr;  // reachable, so that no leak is reported
  abandoned = context_ != nullptr ? context_ : abandoned;
  context_ = nullptr;
}

bool PerfJob::fail(std::string_view what, ibcoll_status_t status) {
  const std::string_view why = ibcoll_last_error();
  failure_ = fmt::format("{}: {}", what, why.empty() ? ibcoll_status_string(status) : why);
  return false;
}

bool PerfJob::run_own(const ibcoll_collective_args_t& args, const char* what) {
  const ibcoll_status_t status = run_blocking(team_, args);
  return status == IBCOLL_OK || fail(what, status);
}

bool PerfJob::reduce(const void* mine, void* result, ibcoll_type_t type, ibcoll_op_t op) {
  ibcoll_collective_args_t args = own_call(IBCOLL_ALLREDUCE, mine, result);
  args.count = 1;
  args.type = type;
  args.op = op;
  return run_own(args, "agreement between ranks");
}

uint64_t PerfJob::topology(const char* name) const {
  std::string text(ibcoll_info_json(context_, nullptr, 0) + 64, '\0');  // a counter may grow by some digits
  (void)ibcoll_info_json(context_, text.data(), text.size());
  return nlohmann::json::parse(text.c_str()).at("topology").at(name).get<uint64_t>();
}

bool PerfJob::barrier() { return run_own(own_call(IBCOLL_BARRIER, nullptr, nullptr), "barrier between measurements"); }

bool PerfJob::largest(double& value) {
  const double mine = value;
  return reduce(&mine, &value, IBCOLL_DOUBLE, IBCOLL_MAX);
}

bool PerfJob::sum(uint64_t& value) {
  const uint64_t mine = value;
  return reduce(&mine, &value, IBCOLL_UINT64, IBCOLL_SUM);
}

bool PerfJob::agree(const std::string& problem) {
  const double none = -static_cast<double>(size_);
  double speaker = problem.empty() ? none : -static_cast<double>(rank_);
  if (!largest(speaker)) return false;
  if (speaker == none) return true;
  failure_ = speaker == -static_cast<double>(rank_) ? problem : "";
  return false;
}

bool PerfJob::worst(int32_t& status) {
  const int32_t mine = status;
  return reduce(&mine, &status, IBCOLL_INT32, IBCOLL_MIN);
}

bool PerfJob::gather(const std::vector<double>& mine, std::vector<double>& all) {
  const auto ranks = static_cast<size_t>(size_);
  const uint64_t bytes = mine.size() * sizeof(double);
  std::vector<uint64_t> send_counts(ranks, 0), recv_counts(ranks, 0), send_displacements(ranks, 0),
      recv_displacements(ranks, 0);
  send_counts[0] = bytes;
  all.clear();
  if (rank_ == 0) {
    all.resize(mine.size() * ranks);
    for (size_t i = 0; i < ranks; ++i) {
      recv_counts[i] = bytes;
      recv_displacements[i] = i * bytes;
    }
  }
  ibcoll_collective_args_t args = own_call(IBCOLL_ALLTOALLV, mine.data(), all.data());
  args.send_counts = send_counts.data();
  args.send_displacements = send_displacements.data();
  args.recv_counts = recv_counts.data();
  args.recv_displacements = recv_displacements.data();
  return run_own(args, "gathering times");
}

bool PerfJob::gather_everywhere(double mine, std::vector<double>& all) {
  all.resize(static_cast<size_t>(size_));
  ibcoll_collective_args_t args = own_call(IBCOLL_ALLGATHER, &mine, all.data());
  args.bytes = sizeof mine;
  return run_own(args, "gathering values");
}

bool ranks_on_this_kernel(PerfJob& job, int& count) {
  const double mine = kernel_identity();
  std::vector<double> all;
  if (!job.gather_everywhere(mine, all)) return false;
  count = static_cast<int>(std::count(all.begin(), all.end(), mine));
  return true;
}

}  // namespace ibcoll::perf
