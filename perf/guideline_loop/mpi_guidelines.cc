// SPDX-License-Identifier: BSD-3-Clause
// The guidelines over an MPI library; perf/guidelines builds this with its compiler wrapper. Errors end the program
// inside MPI (MPI_ERRORS_ARE_FATAL).
#define OMPI_SKIP_MPICXX 1  // the C interface only
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "perf/guideline_loop/block_counts.h"
#include "perf/guideline_loop/guideline_loop.h"
#include "perf/guideline_loop/plan_options.h"

namespace {

using ibcoll::perf::BlockCounts;

class Library {
 public:
  Library() : blocks_(size()) {}
  int rank() const {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
  }
  int size() const {
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
  }

  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  void largest(double& value) { MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD); }
  void bcast(char* buffer, uint64_t bytes) { MPI_Bcast(buffer, count(bytes), MPI_BYTE, 0, MPI_COMM_WORLD); }
  void gather(const char* send, char* recv, uint64_t bytes) {
    MPI_Gather(send, count(bytes), MPI_BYTE, recv, count(bytes), MPI_BYTE, 0, MPI_COMM_WORLD);
  }
  void gatherv_regular(const char* send, char* recv, uint64_t bytes) { gatherv(send, recv, bytes, Form::kRegular); }
  void gatherv_irregular(const char* send, char* recv, uint64_t bytes) { gatherv(send, recv, bytes, Form::kIrregular); }
  void scatter(const char* send, char* recv, uint64_t bytes) {
    MPI_Scatter(send, count(bytes), MPI_BYTE, recv, count(bytes), MPI_BYTE, 0, MPI_COMM_WORLD);
  }
  void scatterv_regular(const char* send, char* recv, uint64_t bytes) {
    blocks_.make(Form::kRegular, bytes);
    MPI_Scatterv(send, blocks_.counts.data(), blocks_.displacements.data(), MPI_BYTE, recv, count(bytes), MPI_BYTE, 0,
                 MPI_COMM_WORLD);
  }
  void allgather(const char* send, char* recv, uint64_t bytes) {
    MPI_Allgather(send, count(bytes), MPI_BYTE, recv, count(bytes), MPI_BYTE, MPI_COMM_WORLD);
  }
  void allgatherv_regular(const char* send, char* recv, uint64_t bytes) {
    blocks_.make(Form::kRegular, bytes);
    MPI_Allgatherv(send, count(bytes), MPI_BYTE, recv, blocks_.counts.data(), blocks_.displacements.data(), MPI_BYTE,
                   MPI_COMM_WORLD);
  }
  void alltoall(const char* send, char* recv, uint64_t bytes) {
    MPI_Alltoall(send, count(bytes), MPI_BYTE, recv, count(bytes), MPI_BYTE, MPI_COMM_WORLD);
  }
  void alltoallv_regular(const char* send, char* recv, uint64_t bytes) {
    blocks_.make(Form::kRegular, bytes);
    const int *counts = blocks_.counts.data(), *displacements = blocks_.displacements.data();
    MPI_Alltoallv(send, counts, displacements, MPI_BYTE, recv, counts, displacements, MPI_BYTE, MPI_COMM_WORLD);
  }
  void reduce(const char* send, char* recv, uint64_t bytes) {
    MPI_Reduce(send, recv, doubles(bytes), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  }
  void allreduce(const char* send, char* recv, uint64_t bytes) {
    MPI_Allreduce(send, recv, doubles(bytes), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  void reduce_scatter_block(const char* send, char* recv, uint64_t bytes) {
    MPI_Reduce_scatter_block(send, recv, doubles(bytes), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  void scan(const char* send, char* recv, uint64_t bytes) {
    MPI_Scan(send, recv, doubles(bytes), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  void exscan(const char* send, char* recv, uint64_t bytes) {
    MPI_Exscan(send, recv, doubles(bytes), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }

 private:
  using Form = BlockCounts<int>::Form;
  static int count(uint64_t bytes) { return static_cast<int>(bytes); }
  static int doubles(uint64_t bytes) { return static_cast<int>(bytes / sizeof(double)); }
  void gatherv(const char* send, char* recv, uint64_t bytes, Form form) {
    blocks_.make(form, bytes);
    MPI_Gatherv(send, blocks_.counts[static_cast<size_t>(rank())], MPI_BYTE, recv, blocks_.counts.data(),
                blocks_.displacements.data(), MPI_BYTE, 0, MPI_COMM_WORLD);
  }

  BlockCounts<int> blocks_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times each performance guideline over MPI; prints CSV. perf/guidelines starts this.");
  ibcoll::perf::GuidelinePlan plan;
  add_plan_options(app, plan);
  CLI11_PARSE(app, argc, argv);
  MPI_Init(&argc, &argv);
  {
    Library library;
    ibcoll::perf::GuidelineLoop(library, plan).run();
  }
  MPI_Finalize();
  return 0;
}
