// SPDX-License-Identifier: BSD-3-Clause
// One collective of the catalog at one size, over MPI.
#pragma once

#define OMPI_SKIP_MPICXX 1  // the C interface only
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#define IBCOLL_PEER_INIT(name) MPIX_##name##_init
#else
#define IBCOLL_PEER_INIT(name) MPI_##name##_init
#endif

#include <climits>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "perf/call_times.h"
#include "perf/calls.h"
#include "runtime/base/catalog.h"
#include "tools/oracle/distributions.h"

// In the form that is wanted; a persistent request is made once. Errors end the program inside MPI.
#define IBCOLL_PEER_CALL(Name, name, ...)                                                   \
  switch (calls_) {                                                                         \
    case perf::Calls::kBlocking:                                                            \
      MPI_##Name(__VA_ARGS__ __VA_OPT__(, ) world);                                         \
      break;                                                                                \
    case perf::Calls::kOneshot:                                                             \
      MPI_I##name(__VA_ARGS__ __VA_OPT__(, ) world, &request_);                             \
      break;                                                                                \
    case perf::Calls::kPersistent:                                                          \
      if (request_ == MPI_REQUEST_NULL)                                                     \
        IBCOLL_PEER_INIT(Name)(__VA_ARGS__ __VA_OPT__(, ) world, MPI_INFO_NULL, &request_); \
      break;                                                                                \
  }

namespace ibcoll::peers {

using oracle::Distribution;

// The blocks of a rank in one buffer, packed in rank order. Counts are in units: bytes, or elements of a reduction.
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

// The values that all sizes share.
struct Wanted {
  const Collective* row = nullptr;
  Distribution distribution = Distribution::kMild;
  int root = 0;
  perf::Calls calls = perf::Calls::kBlocking;
};

// One collective at one size. Errors end the program inside MPI (MPI_ERRORS_ARE_FATAL), so every call is true.
class Case {
 public:
  Case(const Wanted& wanted, uint64_t bytes)
      : row_(*wanted.row), bytes_(bytes), root_(wanted.root), calls_(wanted.calls) {
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
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;
  ~Case() {
    if (request_ != MPI_REQUEST_NULL) MPI_Request_free(&request_);
  }
  // Before the first call: buffers of the caller, which outlive this, with ChangingBuffers::kRoom behind each.
  void use(char* send, char* recv) { send_buffer_ = s_ = send, recv_buffer_ = r_ = recv; }

  bool call() {
    const int *sc = send_.counts.data(), *rc = recv_.counts.data();
    const int *sd = send_.displacements.data(), *rd = recv_.displacements.data();
    const MPI_Comm world = MPI_COMM_WORLD;
    if (calls_ != perf::Calls::kPersistent) {
      const uint64_t offset = offsets_.next();
      s_ = send_buffer_ + offset, r_ = recv_buffer_ + offset;
    }
    switch (row_.id) {
      case IBCOLL_BARRIER:
        IBCOLL_PEER_CALL(Barrier, barrier);
        break;
      case IBCOLL_BCAST:
        IBCOLL_PEER_CALL(Bcast, bcast, r_, rc[0], type_, root_);
        break;
      case IBCOLL_ALLGATHER:
        IBCOLL_PEER_CALL(Allgather, allgather, s_, sc[0], type_, r_, rc[0], type_);
        break;
      case IBCOLL_ALLGATHERV:
        IBCOLL_PEER_CALL(Allgatherv, allgatherv, s_, sc[0], type_, r_, rc, rd, type_);
        break;
      case IBCOLL_ALLTOALL:
        IBCOLL_PEER_CALL(Alltoall, alltoall, s_, sc[0], type_, r_, rc[0], type_);
        break;
      case IBCOLL_ALLTOALLV:
        IBCOLL_PEER_CALL(Alltoallv, alltoallv, s_, sc, sd, type_, r_, rc, rd, type_);
        break;
      case IBCOLL_ALLREDUCE:
        IBCOLL_PEER_CALL(Allreduce, allreduce, s_, r_, rc[0], type_, MPI_SUM);
        break;
      case IBCOLL_GATHER:
        IBCOLL_PEER_CALL(Gather, gather, s_, sc[0], type_, r_, rc[0], type_, root_);
        break;
      case IBCOLL_GATHERV:
        IBCOLL_PEER_CALL(Gatherv, gatherv, s_, sc[0], type_, r_, rc, rd, type_, root_);
        break;
      case IBCOLL_SCATTER:
        IBCOLL_PEER_CALL(Scatter, scatter, s_, sc[0], type_, r_, rc[0], type_, root_);
        break;
      case IBCOLL_SCATTERV:
        IBCOLL_PEER_CALL(Scatterv, scatterv, s_, sc, sd, type_, r_, rc[0], type_, root_);
        break;
      case IBCOLL_REDUCE:
        IBCOLL_PEER_CALL(Reduce, reduce, s_, r_, rc[0], type_, MPI_SUM, root_);
        break;
      case IBCOLL_REDUCE_SCATTER:
        IBCOLL_PEER_CALL(Reduce_scatter, reduce_scatter, s_, r_, sc, type_, MPI_SUM);
        break;
      case IBCOLL_REDUCE_SCATTER_BLOCK:
        IBCOLL_PEER_CALL(Reduce_scatter_block, reduce_scatter_block, s_, r_, rc[0], type_, MPI_SUM);
        break;
      case IBCOLL_SCAN:
        IBCOLL_PEER_CALL(Scan, scan, s_, r_, rc[0], type_, MPI_SUM);
        break;
      case IBCOLL_EXSCAN:
        IBCOLL_PEER_CALL(Exscan, exscan, s_, r_, rc[0], type_, MPI_SUM);
        break;
    }
    if (calls_ == perf::Calls::kPersistent) MPI_Start(&request_);
    if (calls_ != perf::Calls::kBlocking) MPI_Wait(&request_, MPI_STATUS_IGNORE);
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
  perf::Calls calls_;
  perf::ChangingBuffers offsets_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  char *send_buffer_ = nullptr, *recv_buffer_ = nullptr;
  Blocks send_, recv_;
  char *s_ = nullptr, *r_ = nullptr;
};

}  // namespace ibcoll::peers
