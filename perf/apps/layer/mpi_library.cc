// SPDX-License-Identifier: BSD-3-Clause
#define OMPI_SKIP_MPICXX 1  // the C interface only
#define MPICH_SKIP_MPICXX 1
#include <fmt/format.h>
#include <mpi.h>

#include <climits>
#include <vector>

#include "perf/apps/layer/library.h"

namespace apps {
namespace {

Error check(int code, const char* what) {
  if (code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return fmt::format("{}: {}", what, text);
}

// MPI 3 counts in int.
Error too_long(uint64_t count, const char* what) {
  if (count <= INT_MAX) return {};
  return fmt::format("{}: {} bytes are more than MPI can count (2^31 - 1); take more ranks or a smaller problem", what,
                     count);
}

// Counts and displacements of a v-collective as MPI takes them; an error where one does not fit.
Error narrow(const uint64_t* values, int count, std::vector<int>& narrowed) {
  for (int i = 0; i < count; ++i) {
    Error error = too_long(values[i], "alltoallv");
    if (!error.empty()) return error;
    narrowed.push_back(static_cast<int>(values[i]));
  }
  return {};
}

MPI_Op op_of(Operation operation) {
  return operation == Operation::kSum ? MPI_SUM : operation == Operation::kMin ? MPI_MIN : MPI_MAX;
}

}  // namespace

struct Library::Handles {
  bool initialized = false;
};

Library::Library() : handles_(std::make_unique<Handles>()) {}

Library::~Library() {
  if (handles_->initialized) MPI_Finalize();
}

const char* Library::name() { return APPS_MPI_NAME; }

Error Library::open() {
  Error error = check(MPI_Init(nullptr, nullptr), "joining the job");
  if (!error.empty()) return error;
  handles_->initialized = true;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  return {};
}

Error Library::barrier() { return check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

Error Library::bcast(void* bytes, uint64_t count, int root) {
  Error error = too_long(count, "MPI_Bcast");
  if (!error.empty()) return error;
  return check(MPI_Bcast(bytes, static_cast<int>(count), MPI_BYTE, root, MPI_COMM_WORLD), "MPI_Bcast");
}

Error Library::allgather(const void* send, void* recv, uint64_t bytes) {
  Error error = too_long(bytes, "MPI_Allgather");
  if (!error.empty()) return error;
  const int count = static_cast<int>(bytes);
  return check(MPI_Allgather(send, count, MPI_BYTE, recv, count, MPI_BYTE, MPI_COMM_WORLD), "MPI_Allgather");
}

Error Library::alltoall(const void* send, void* recv, uint64_t bytes) {
  Error error = too_long(bytes, "MPI_Alltoall");
  if (!error.empty()) return error;
  const int count = static_cast<int>(bytes);
  return check(MPI_Alltoall(send, count, MPI_BYTE, recv, count, MPI_BYTE, MPI_COMM_WORLD), "MPI_Alltoall");
}

Error Library::alltoallv(const void* send, const uint64_t* send_counts, const uint64_t* send_displacements, void* recv,
                         const uint64_t* recv_counts, const uint64_t* recv_displacements) {
  std::vector<int> lists[4];
  const uint64_t* const given[] = {send_counts, send_displacements, recv_counts, recv_displacements};
  for (int i = 0; i < 4; ++i) {
    Error error = narrow(given[i], size_, lists[i]);
    if (!error.empty()) return error;
  }
  return check(MPI_Alltoallv(send, lists[0].data(), lists[1].data(), MPI_BYTE, recv, lists[2].data(), lists[3].data(),
                             MPI_BYTE, MPI_COMM_WORLD),
               "MPI_Alltoallv");
}

Error Library::allreduce(const double* in, double* out, uint64_t count, Operation operation) {
  Error error = too_long(count, "MPI_Allreduce");
  if (!error.empty()) return error;
  return check(MPI_Allreduce(in, out, static_cast<int>(count), MPI_DOUBLE, op_of(operation), MPI_COMM_WORLD),
               "MPI_Allreduce");
}

Error Library::sum_to_0(const double* in, double* out, uint64_t count) {
  Error error = too_long(count, "MPI_Reduce");
  if (!error.empty()) return error;
  return check(MPI_Reduce(in, out, static_cast<int>(count), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD), "MPI_Reduce");
}

Error Library::message(void* bytes, uint64_t count, bool back) {
  Error error = too_long(count, "MPI_Send");
  if (!error.empty() || size_ == 1 || (rank_ != 0 && rank_ != size_ - 1)) return error;
  const int length = static_cast<int>(count);
  if ((rank_ == 0) != back) {
    return check(MPI_Send(bytes, length, MPI_BYTE, size_ - 1 - rank_, 0, MPI_COMM_WORLD), "MPI_Send");
  }
  return check(MPI_Recv(bytes, length, MPI_BYTE, size_ - 1 - rank_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
}

}  // namespace apps
