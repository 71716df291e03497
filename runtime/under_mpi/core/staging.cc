// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/staging.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include "runtime/under_mpi/core/per_thread.h"

namespace ibcoll::under_mpi {

namespace {

constexpr uint64_t kKeptBytes = 4 << 20;

// A type with absolute addresses, seen from an address of its own: MPICH packs nothing from MPI_BOTTOM.
class Rebased {
 public:
  explicit Rebased(const Type& type) : base_(type.true_lb) {
    MPI_Aint displacement = -base_;
    int one = 1;
    PMPI_Type_create_hindexed(1, &one, &displacement, type.handle, &handle_);
    PMPI_Type_create_resized(handle_, -base_, type.extent, &resized_);
    PMPI_Type_commit(&resized_);
  }
  ~Rebased() {
    PMPI_Type_free(&handle_);
    PMPI_Type_free(&resized_);
  }
  Rebased(const Rebased&) = delete;
  Rebased& operator=(const Rebased&) = delete;
  void* base() const noexcept { return reinterpret_cast<void*>(base_); }
  MPI_Datatype handle() const noexcept { return resized_; }

 private:
  MPI_Aint base_;
  MPI_Datatype handle_ = MPI_DATATYPE_NULL;
  MPI_Datatype resized_ = MPI_DATATYPE_NULL;
};

// Parts of as many elements as MPI_Pack can count the bytes of.
template <typename Part>
void in_parts(int64_t count, const Type& type, Part part) {
#if MPI_VERSION >= 4
  part(int64_t{0}, count);
#else
  const int64_t at_once = std::max<int64_t>(1, INT_MAX / type.size);
  for (int64_t done = 0; done < count; done += at_once) part(done, std::min(at_once, count - done));
#endif
  static_cast<void>(type);
}

void pack_part(const char* from, int64_t count, MPI_Datatype handle, char* to, int64_t bytes) {
#if MPI_VERSION >= 4
  MPI_Count position = 0;
  PMPI_Pack_c(from, count, handle, to, bytes, &position, MPI_COMM_SELF);
#else
  int position = 0;
  PMPI_Pack(from, static_cast<int>(count), handle, to, static_cast<int>(bytes), &position, MPI_COMM_SELF);
#endif
}

void unpack_part(const char* from, int64_t bytes, char* to, int64_t count, MPI_Datatype handle) {
#if MPI_VERSION >= 4
  MPI_Count position = 0;
  PMPI_Unpack_c(from, bytes, &position, to, count, handle, MPI_COMM_SELF);
#else
  int position = 0;
  PMPI_Unpack(from, static_cast<int>(bytes), &position, to, static_cast<int>(count), handle, MPI_COMM_SELF);
#endif
}

// Calls part(address, handle, elements before it, elements) for elements at `buffer`, which may be MPI_BOTTOM.
template <typename Part>
void each_part(const void* buffer, int64_t count, const Type& type, Part part) {
  const auto all = [&](const void* address, MPI_Datatype handle) {
    in_parts(count, type, [&](int64_t first, int64_t now) {
      part(static_cast<const char*>(address) + first * type.extent, handle, first, now);
    });
  };
  if (buffer != MPI_BOTTOM) return all(buffer, type.handle);
  const Rebased rebased(type);
  all(rebased.base(), rebased.handle());
}

}  // namespace

void pack(const void* buffer, int64_t count, const Type& type, void* to) {
  if (count == 0 || type.size == 0) return;
  if (type.dense(count)) {
    std::memcpy(to, static_cast<const char*>(buffer) + type.true_lb, static_cast<size_t>(count * type.size));
    return;
  }
  each_part(buffer, count, type, [&](const char* address, MPI_Datatype handle, int64_t first, int64_t now) {
    pack_part(address, now, handle, static_cast<char*>(to) + first * type.size, now * type.size);
  });
}

void unpack(const void* from, void* buffer, int64_t count, const Type& type) {
  if (count == 0 || type.size == 0) return;
  if (type.dense(count)) {
    std::memcpy(static_cast<char*>(buffer) + type.true_lb, from, static_cast<size_t>(count * type.size));
    return;
  }
  each_part(buffer, count, type, [&](const char* address, MPI_Datatype handle, int64_t first, int64_t now) {
    unpack_part(static_cast<const char*>(from) + first * type.size, now * type.size, const_cast<char*>(address), now,
                handle);
  });
}

namespace {

struct KeptMemory {
  std::unique_ptr<char[]> memory;
  uint64_t bytes = 0;
};
const PerThread<KeptMemory> kept_memory;

}  // namespace

char* Stage::reserve(uint64_t bytes) {
  KeptMemory* const kept = kept_memory.get();
  if (kept != nullptr && kept->memory && kept->bytes >= bytes) {
    memory_ = std::move(kept->memory);
    bytes_ = std::exchange(kept->bytes, 0);
  } else {
    bytes_ = std::max<uint64_t>(bytes, 256);
    memory_.reset(new char[bytes_]);
  }
  return memory_.get();
}

Stage::~Stage() {
  if (!memory_ || bytes_ > kKeptBytes) return;
  KeptMemory* const kept = kept_memory.get();
  if (kept != nullptr && bytes_ > kept->bytes) *kept = {std::move(memory_), bytes_};
}

}  // namespace ibcoll::under_mpi
