// SPDX-License-Identifier: BSD-3-Clause
// Derived types of one signature, kInts ints, that lie in memory in many ways.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <random>
#include <vector>

inline constexpr int kInts = 6;
inline constexpr int kLayouts = 9;

// Element `which` of: plain, contiguous, strided, permuted, negative lower bound, subarray, resized, structure, dense
// in parts. The caller frees it.
inline MPI_Datatype make_layout(int which) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  const MPI_Aint int_bytes = sizeof(int);
  switch (which) {
    case 0:
    case 1:
      MPI_Type_contiguous(kInts, MPI_INT, &type);
      break;
    case 2:
      MPI_Type_vector(3, 2, 4, MPI_INT, &type);
      break;
    case 3: {
      const int displacements[kInts] = {4, 0, 5, 1, 3, 2};
      MPI_Type_create_indexed_block(kInts, 1, displacements, MPI_INT, &type);
      break;
    }
    case 4: {
      const int lengths[2] = {4, 2};
      const MPI_Aint displacements[2] = {-2 * int_bytes, 5 * int_bytes};
      MPI_Type_create_hindexed(2, lengths, displacements, MPI_INT, &type);
      break;
    }
    case 5: {
      const int sizes[2] = {4, 5}, parts[2] = {2, 3}, starts[2] = {1, 1};
      MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
      break;
    }
    case 6: {
      MPI_Datatype inner = MPI_DATATYPE_NULL;
      MPI_Type_contiguous(kInts, MPI_INT, &inner);
      MPI_Type_create_resized(inner, -int_bytes, 9 * int_bytes, &type);
      MPI_Type_free(&inner);
      break;
    }
    case 7: {
      MPI_Datatype pair = MPI_DATATYPE_NULL;
      MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
      const int lengths[3] = {1, 1, 3};
      const MPI_Aint displacements[3] = {0, 3 * int_bytes, 4 * int_bytes};
      const MPI_Datatype types[3] = {pair, MPI_INT, MPI_INT};
      MPI_Type_create_struct(3, lengths, displacements, types, &type);
      MPI_Type_free(&pair);
      break;
    }
    default: {
      const int lengths[3] = {2, 0, 4}, displacements[3] = {0, 77, 2};
      MPI_Type_indexed(3, lengths, displacements, MPI_INT, &type);
      break;
    }
  }
  MPI_Type_commit(&type);
  return type;
}

// `elements` elements of kInts ints as this rank describes them: by some layout, or by plain ints.
struct Described {
  explicit Described(std::mt19937& chance) : which(static_cast<int>(chance() % kLayouts)) {
    if (which > 0) derived = make_layout(which);
  }
  ~Described() {
    if (derived != MPI_DATATYPE_NULL) MPI_Type_free(&derived);
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;
  MPI_Datatype type() const { return which > 0 ? derived : MPI_INT; }
  int count(int elements) const { return which > 0 ? elements : kInts * elements; }
  // In ints, of one element: for buffers that hold any layout.
  int step() const {
    MPI_Aint lb = 0, extent = 0;
    MPI_Type_get_extent(type(), &lb, &extent);
    return which > 0 ? static_cast<int>(extent / static_cast<MPI_Aint>(sizeof(int))) : kInts;
  }

  int which;
  MPI_Datatype derived = MPI_DATATYPE_NULL;
};
