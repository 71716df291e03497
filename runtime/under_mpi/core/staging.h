// SPDX-License-Identifier: BSD-3-Clause
// Packed copies of data that does not lie in memory as ibcoll moves it.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/under_mpi/core/datatype.h"

namespace ibcoll::under_mpi {

// Between `count` elements at `buffer` (MPI_BOTTOM included) and count * type.size bytes.
void pack(const void* buffer, int64_t count, const Type& type, void* to);
void unpack(const void* from, void* buffer, int64_t count, const Type& type);

// Memory for packed data. A thread keeps one that it has finished with for its next call.
class Stage {
 public:
  Stage() = default;
  Stage(Stage&&) = default;
  Stage& operator=(Stage&&) = default;
  ~Stage();
  // Throws std::bad_alloc.
  char* reserve(uint64_t bytes);
  char* data() const noexcept { return memory_.get(); }
  bool used() const noexcept { return memory_ != nullptr; }
  // ibcoll may still write to it: it is never freed.
  void abandon() noexcept { static_cast<void>(memory_.release()); }

 private:
  std::unique_ptr<char[]> memory_;
  uint64_t bytes_ = 0;
};

}  // namespace ibcoll::under_mpi
