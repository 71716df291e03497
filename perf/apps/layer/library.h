// SPDX-License-Identifier: BSD-3-Clause
// The library below an application. Linking decides which one: ibcoll_library.cc or mpi_library.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace apps {

// The text of an error, for the user; empty: none.
using Error = std::string;

enum class Operation { kSum, kMin, kMax };

// Blocking collectives of all ranks of the job. Counts and displacements are in bytes.
class Library {
 public:
  Library();
  ~Library();  // leaves the job
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  static const char* name();
  Error open();
  int rank() const { return rank_; }
  int size() const { return size_; }

  Error barrier();
  Error bcast(void* bytes, uint64_t count, int root);
  Error allgather(const void* send, void* recv, uint64_t bytes);
  Error alltoall(const void* send, void* recv, uint64_t bytes);
  Error alltoallv(const void* send, const uint64_t* send_counts, const uint64_t* send_displacements, void* recv,
                  const uint64_t* recv_counts, const uint64_t* recv_displacements);
  // `in` and `out` do not overlap.
  Error allreduce(const double* in, double* out, uint64_t count, Operation operation);
  // The sum, at rank 0; elsewhere `out` is not written.
  Error sum_to_0(const double* in, double* out, uint64_t count);
  // One message between rank 0 and the last rank: to that one, or back. The other ranks do nothing.
  Error message(void* bytes, uint64_t count, bool back);

 private:
  struct Handles;
  std::unique_ptr<Handles> handles_;
  int rank_ = 0, size_ = 1;
};

}  // namespace apps
