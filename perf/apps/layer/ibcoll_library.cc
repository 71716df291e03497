// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "ibcoll.h"
#include "perf/apps/layer/library.h"

namespace apps {
namespace {

Error check(ibcoll_status_t status, const char* what) {
  if (status == IBCOLL_OK) return {};
  const std::string story = ibcoll_last_error();
  return fmt::format("{}: {}", what, story.empty() ? ibcoll_status_string(status) : story);
}

ibcoll_op_t op_of(Operation operation) {
  return operation == Operation::kSum ? IBCOLL_SUM : operation == Operation::kMin ? IBCOLL_MIN : IBCOLL_MAX;
}

}  // namespace

struct Library::Handles {
  ibcoll_context_t context = nullptr;
  ibcoll_team_t world = nullptr;
  ibcoll_team_t ends = nullptr;  // rank 0 and the last one
};

Library::Library() : handles_(std::make_unique<Handles>()) {}

Library::~Library() {
  if (handles_->context == nullptr) return;
  // The results are out by now; a failure here changes none.
  Error error = check(ibcoll_team_free(handles_->ends), "freeing a team");
  if (error.empty()) error = check(ibcoll_context_destroy(handles_->context), "leaving the job");
  if (!error.empty()) fmt::print(stderr, "rank {}: {}\n", rank_, error);
}

const char* Library::name() { return "ibcoll"; }

Error Library::open() {
  Error error = check(ibcoll_context_create(nullptr, &handles_->context), "joining the job");
  if (!error.empty()) return error;
  rank_ = ibcoll_context_rank(handles_->context);
  size_ = ibcoll_context_size(handles_->context);
  handles_->world = ibcoll_team_world(handles_->context);
  if (size_ == 1) return {};
  const int ends[] = {0, size_ - 1};
  return check(ibcoll_team_create(handles_->world, ends, 2, &handles_->ends), "making a team of two ranks");
}

Error Library::barrier() { return check(ibcoll_barrier(handles_->world), "barrier"); }

Error Library::bcast(void* bytes, uint64_t count, int root) {
  return check(ibcoll_bcast(handles_->world, bytes, count, root), "bcast");
}

Error Library::allgather(const void* send, void* recv, uint64_t bytes) {
  return check(ibcoll_allgather(handles_->world, send, recv, bytes), "allgather");
}

Error Library::alltoall(const void* send, void* recv, uint64_t bytes) {
  return check(ibcoll_alltoall(handles_->world, send, recv, bytes), "alltoall");
}

Error Library::alltoallv(const void* send, const uint64_t* send_counts, const uint64_t* send_displacements, void* recv,
                         const uint64_t* recv_counts, const uint64_t* recv_displacements) {
  return check(
      ibcoll_alltoallv(handles_->world, send, send_counts, send_displacements, recv, recv_counts, recv_displacements),
      "alltoallv");
}

Error Library::allreduce(const double* in, double* out, uint64_t count, Operation operation) {
  return check(ibcoll_allreduce(handles_->world, in, out, count, IBCOLL_DOUBLE, op_of(operation)), "allreduce");
}

Error Library::sum_to_0(const double* in, double* out, uint64_t count) {
  return check(ibcoll_reduce(handles_->world, in, out, count, IBCOLL_DOUBLE, IBCOLL_SUM, 0), "reduce");
}

Error Library::message(void* bytes, uint64_t count, bool back) {
  if (handles_->ends == nullptr) return {};
  return check(ibcoll_bcast(handles_->ends, bytes, count, back ? 1 : 0), "bcast of two ranks");
}

}  // namespace apps
