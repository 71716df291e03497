// SPDX-License-Identifier: BSD-3-Clause
// One collective of the catalog at one size, over MPI.
#pragma once

#define OMPI_SKIP_MPICXX 1  // the C interface only
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <climits>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "perf/call_times.h"
#include "runtime/base/catalog.h"
#include "tools/oracle/distributions.h"

namespace ibcoll::peers {

using oracle::Distribution;

// What a rank has in one buffer, packed in rank order. Counts are in units: bytes, or elements of a reduction.
struct Blocks {
  std::vector<int> counts, displacements;
  uint64_t total = 0;
  void add(uint64_t count) {
    if (total + count > INT_MAX) {
      std::fprintf(stderr, "mpi_perf: a buffer has more than 2^31 - 1 units, which MPI cannot count\n");
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    counts.push_back(static_cast<int>(count));
    displacements.push_back(static_cast<int>(total));
    total += count;
  }
};

// What all sizes share.
struct Wanted {
  const Collective* row = nullptr;
  Distribution distribution = Distribution::kMild;
  int root = 0;
};

// One collective at one size. Errors end the program inside MPI (MPI_ERRORS_ARE_FATAL), so every call is true.
class Case {
 public:
  Case(const Wanted& wanted, uint64_t bytes) : row_(*wanted.row), bytes_(bytes), root_(wanted.root) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    if (row_.reduces()) unit_ = perf::element_width(bytes);
    type_ = row_.reduces() ? element_type() : MPI_BYTE;
    for (int peer = 0; peer < size_; ++peer) {
      if (row_.send.extent == Extent::kBlocks || peer == rank_) send_.add(block(wanted.distribution, rank_, peer));
      if (row_.recv.extent == Extent::kBlocks || peer == rank_) recv_.add(block(wanted.distribution, peer, rank_));
    }
  }
  uint64_t send_bytes() const { return send_.total * unit_; }
  uint64_t recv_bytes() const { return recv_.total * unit_; }
  // Before the first call: buffers of the caller, which outlive this.
  void use(char* send, char* recv) { s_ = send, r_ = recv; }

  bool call() {
    const int *sc = send_.counts.data(), *rc = recv_.counts.data();
    const int *sd = send_.displacements.data(), *rd = recv_.displacements.data();
    const MPI_Comm world = MPI_COMM_WORLD;
    switch (row_.id) {
      case IBCOLL_BARRIER:
        MPI_Barrier(world);
        break;
      case IBCOLL_BCAST:
        MPI_Bcast(r_, rc[0], type_, root_, world);
        break;
      case IBCOLL_ALLGATHER:
        MPI_Allgather(s_, sc[0], type_, r_, rc[0], type_, world);
        break;
      case IBCOLL_ALLGATHERV:
        MPI_Allgatherv(s_, sc[0], type_, r_, rc, rd, type_, world);
        break;
      case IBCOLL_ALLTOALL:
        MPI_Alltoall(s_, sc[0], type_, r_, rc[0], type_, world);
        break;
      case IBCOLL_ALLTOALLV:
        MPI_Alltoallv(s_, sc, sd, type_, r_, rc, rd, type_, world);
        break;
      case IBCOLL_ALLREDUCE:
        MPI_Allreduce(s_, r_, rc[0], type_, MPI_SUM, world);
        break;
      case IBCOLL_GATHER:
        MPI_Gather(s_, sc[0], type_, r_, rc[0], type_, root_, world);
        break;
      case IBCOLL_GATHERV:
        MPI_Gatherv(s_, sc[0], type_, r_, rc, rd, type_, root_, world);
        break;
      case IBCOLL_SCATTER:
        MPI_Scatter(s_, sc[0], type_, r_, rc[0], type_, root_, world);
        break;
      case IBCOLL_SCATTERV:
        MPI_Scatterv(s_, sc, sd, type_, r_, rc[0], type_, root_, world);
        break;
      case IBCOLL_REDUCE:
        MPI_Reduce(s_, r_, rc[0], type_, MPI_SUM, root_, world);
        break;
      case IBCOLL_REDUCE_SCATTER:
        MPI_Reduce_scatter(s_, r_, sc, type_, MPI_SUM, world);
        break;
      case IBCOLL_REDUCE_SCATTER_BLOCK:
        MPI_Reduce_scatter_block(s_, r_, rc[0], type_, MPI_SUM, world);
        break;
      case IBCOLL_SCAN:
        MPI_Scan(s_, r_, rc[0], type_, MPI_SUM, world);
        break;
      case IBCOLL_EXSCAN:
        MPI_Exscan(s_, r_, rc[0], type_, MPI_SUM, world);
        break;
    }
    return true;
  }
  bool barrier() {
    MPI_Barrier(MPI_COMM_WORLD);
    return true;
  }
  bool largest(double& value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return true;
  }
  // All ranks' calls on rank 0; elsewhere unspecified.
  std::vector<double> gather(const std::vector<double>& calls) const {
    std::vector<double> all(calls.size() * static_cast<size_t>(size_));
    MPI_Gather(calls.data(), static_cast<int>(calls.size()), MPI_DOUBLE, all.data(), static_cast<int>(calls.size()),
               MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return all;
  }
  const char* name() const { return row_.name; }
  const Collective& row() const { return row_; }
  uint64_t bytes() const { return bytes_; }
  bool prints() const { return rank_ == 0; }
  size_t ranks() const { return static_cast<size_t>(size_); }

 private:
  // As ibcoll_perf has them, in units.
  uint64_t block(Distribution distribution, int source, int destination) const {
    const uint64_t base = bytes_ / unit_;
    if (!row_.irregular()) return base;
    if (row_.sizes == SizesKnown::kToPairs)
      return oracle::distributed_pair(distribution, base, source, destination, size_);
    const int rank = row_.recv.extent == Extent::kBlocks ? source : destination;
    return oracle::distributed(distribution, base, rank, size_);
  }

  MPI_Datatype element_type() const {
    switch (unit_) {
      case 1:
        return MPI_UINT8_T;
      case 2:
        return MPI_UINT16_T;
      case 4:
        return MPI_FLOAT;
      default:
        return MPI_DOUBLE;
    }
  }

  const Collective& row_;
  uint64_t bytes_, unit_ = 1;
  MPI_Datatype type_ = MPI_BYTE;
  int rank_ = 0, size_ = 1, root_;
  Blocks send_, recv_;
  char *s_ = nullptr, *r_ = nullptr;
};

}  // namespace ibcoll::peers
