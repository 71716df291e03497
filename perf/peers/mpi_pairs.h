// SPDX-License-Identifier: BSD-3-Clause
// The part of an MPI library that --arrival needs: single messages, the barrier that agrees on an instant, and the
// number of nodes.
#pragma once

#include <algorithm>
#include <vector>

#include "perf/peers/mpi_case.h"

namespace ibcoll::peers {

// As perf/arrival/link.h wants it. On a communicator of its own: no message meets one of the collectives.
class MpiPairs {
 public:
  MpiPairs() {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  MpiPairs(const MpiPairs&) = delete;
  MpiPairs& operator=(const MpiPairs&) = delete;
  ~MpiPairs() { MPI_Comm_free(&comm_); }

  int rank() const { return rank_; }
  int size() const { return size_; }

  // The largest value of all ranks by dissemination (Hensgen, Finkel, Manber 1988): a barrier of the same rounds in
  // every MPI library, whatever its own one is.
  bool largest(double& value) {
    for (int distance = 1; distance < size_; distance *= 2) {
      double other = 0;
      MPI_Sendrecv(&value, 1, MPI_DOUBLE, (rank_ + distance) % size_, 1, &other, 1, MPI_DOUBLE,
                   (rank_ - distance + size_) % size_, 1, comm_, MPI_STATUS_IGNORE);
      value = std::max(value, other);
    }
    return true;
  }
  bool gather_everywhere(double mine, std::vector<double>& all) {
    all.resize(static_cast<size_t>(size_));
    MPI_Allgather(&mine, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, comm_);
    return true;
  }

  // Open MPI sends and receives inside its calls alone.
  bool progress() {
    int none = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &none, MPI_STATUS_IGNORE);
    return true;
  }

  bool open(int first, int second, void* buffer, uint64_t bytes) {
    first_ = first, second_ = second, buffer_ = buffer, bytes_ = static_cast<int>(bytes);
    return true;
  }
  bool message(bool forward) {
    const int from = forward ? first_ : second_, to = forward ? second_ : first_;
    if (rank_ == from)
      MPI_Send(buffer_, bytes_, MPI_BYTE, to, 2, comm_);
    else
      MPI_Recv(buffer_, bytes_, MPI_BYTE, from, 2, comm_, MPI_STATUS_IGNORE);
    return true;
  }
  bool close() { return true; }

  int nodes() {
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    int local = 0, leader = 0, count = 0;
    MPI_Comm_rank(node, &local);
    MPI_Comm_free(&node);
    leader = local == 0 ? 1 : 0;
    MPI_Allreduce(&leader, &count, 1, MPI_INT, MPI_SUM, comm_);
    return count;
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1, first_ = 0, second_ = 0, bytes_ = 0;
  void* buffer_ = nullptr;
};

}  // namespace ibcoll::peers
