// SPDX-License-Identifier: BSD-3-Clause
// The guidelines over ibcoll.
#include <ibcoll.h>

#include <cstdio>
#include <cstdlib>

#include "perf/guideline_loop/block_counts.h"
#include "perf/guideline_loop/guideline_loop.h"
#include "perf/guideline_loop/plan_options.h"
#include "runtime/base/low_descriptors.h"

namespace {

using ibcoll::perf::BlockCounts;

void check(ibcoll_status_t status, const char* call) {
  if (status == IBCOLL_OK) return;
  std::fprintf(stderr, "ibcoll_guidelines: %s: %s\n", call, ibcoll_last_error());
  std::exit(1);
}

class Library {
 public:
  explicit Library(ibcoll_context_t context)
      : team_(ibcoll_team_world(context)), blocks_(ibcoll_context_size(context)) {}
  int rank() const { return ibcoll_team_rank(team_); }
  int size() const { return ibcoll_team_size(team_); }

  void barrier() { check(ibcoll_barrier(team_), "barrier"); }
  void largest(double& value) {
    const double mine = value;
    check(ibcoll_allreduce(team_, &mine, &value, 1, IBCOLL_DOUBLE, IBCOLL_MAX), "allreduce");
  }
  void bcast(char* buffer, uint64_t bytes) { check(ibcoll_bcast(team_, buffer, bytes, 0), "bcast"); }
  void gather(const char* send, char* recv, uint64_t bytes) {
    check(ibcoll_gather(team_, send, recv, bytes, 0), "gather");
  }
  void gatherv_regular(const char* send, char* recv, uint64_t bytes) { gatherv(send, recv, bytes, Form::kRegular); }
  void gatherv_irregular(const char* send, char* recv, uint64_t bytes) { gatherv(send, recv, bytes, Form::kIrregular); }
  void scatter(const char* send, char* recv, uint64_t bytes) {
    check(ibcoll_scatter(team_, send, recv, bytes, 0), "scatter");
  }
  void scatterv_regular(const char* send, char* recv, uint64_t bytes) {
    blocks_.make(Form::kRegular, bytes);
    check(ibcoll_scatterv(team_, send, blocks_.counts.data(), blocks_.displacements.data(), recv, bytes, 0),
          "scatterv");
  }
  void allgather(const char* send, char* recv, uint64_t bytes) {
    check(ibcoll_allgather(team_, send, recv, bytes), "allgather");
  }
  void allgatherv_regular(const char* send, char* recv, uint64_t bytes) {
    blocks_.make(Form::kRegular, bytes);
    check(ibcoll_allgatherv(team_, send, recv, blocks_.counts.data(), blocks_.displacements.data()), "allgatherv");
  }
  void alltoall(const char* send, char* recv, uint64_t bytes) {
    check(ibcoll_alltoall(team_, send, recv, bytes), "alltoall");
  }
  void alltoallv_regular(const char* send, char* recv, uint64_t bytes) {
    blocks_.make(Form::kRegular, bytes);
    const uint64_t *counts = blocks_.counts.data(), *displacements = blocks_.displacements.data();
    check(ibcoll_alltoallv(team_, send, counts, displacements, recv, counts, displacements), "alltoallv");
  }
  void reduce(const char* send, char* recv, uint64_t bytes) {
    check(ibcoll_reduce(team_, send, recv, doubles(bytes), IBCOLL_DOUBLE, IBCOLL_SUM, 0), "reduce");
  }
  void allreduce(const char* send, char* recv, uint64_t bytes) {
    check(ibcoll_allreduce(team_, send, recv, doubles(bytes), IBCOLL_DOUBLE, IBCOLL_SUM), "allreduce");
  }
  void reduce_scatter_block(const char* send, char* recv, uint64_t bytes) {
    check(ibcoll_reduce_scatter_block(team_, send, recv, doubles(bytes), IBCOLL_DOUBLE, IBCOLL_SUM),
          "reduce_scatter_block");
  }
  void scan(const char* send, char* recv, uint64_t bytes) {
    check(ibcoll_scan(team_, send, recv, doubles(bytes), IBCOLL_DOUBLE, IBCOLL_SUM), "scan");
  }
  void exscan(const char* send, char* recv, uint64_t bytes) {
    check(ibcoll_exscan(team_, send, recv, doubles(bytes), IBCOLL_DOUBLE, IBCOLL_SUM), "exscan");
  }

 private:
  using Form = BlockCounts<uint64_t>::Form;
  static uint64_t doubles(uint64_t bytes) { return bytes / sizeof(double); }
  void gatherv(const char* send, char* recv, uint64_t bytes, Form form) {
    blocks_.make(form, bytes);
    const uint64_t own = blocks_.counts[static_cast<size_t>(rank())];
    check(ibcoll_gatherv(team_, send, own, recv, blocks_.counts.data(), blocks_.displacements.data(), 0), "gatherv");
  }

  ibcoll_team_t team_;
  BlockCounts<uint64_t> blocks_;
};

}  // namespace

int main(int argc, char** argv) {
  ibcoll::occupy_low_descriptors();
  CLI::App app("Times each performance guideline over ibcoll; prints CSV. perf/guidelines starts this.");
  ibcoll::perf::GuidelinePlan plan;
  add_plan_options(app, plan);
  CLI11_PARSE(app, argc, argv);
  ibcoll_context_t context = nullptr;
  check(ibcoll_context_create(nullptr, &context), "ibcoll_context_create");
  {
    Library library(context);
    ibcoll::perf::GuidelineLoop(library, plan).run();
  }
  check(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  return 0;
}
