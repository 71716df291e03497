// SPDX-License-Identifier: BSD-3-Clause
// An operation of the program on elements of kInts ints in any layout: it is associative and does not commute.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "tests/under_mpi/layouts.h"

// The offsets of the ints of an element, in the order of the type, and how far apart elements are: MPI does not pass
// this to the operation.
struct IntOffsets {
  std::vector<int> of_ints;
  int step = kInts;
};
inline IntOffsets int_offsets;

inline IntOffsets int_offsets_of(MPI_Datatype type) {
  std::vector<int> numbers(256), packed(kInts);
  for (int i = 0; i < 256; ++i) numbers[static_cast<size_t>(i)] = i - 64;
  int position = 0;
  MPI_Pack(numbers.data() + 64, 1, type, packed.data(), static_cast<int>(sizeof(int) * kInts), &position,
           MPI_COMM_SELF);
  MPI_Aint lb = 0, extent = 0;
  MPI_Type_get_extent(type, &lb, &extent);
  return {packed, static_cast<int>(extent / static_cast<MPI_Aint>(sizeof(int)))};
}

// Three affine functions x -> ax + b: the left one first, then the right one.
inline void compose(void* left_elements, void* right_elements, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) {
    const int* left = static_cast<int*>(left_elements) + i * int_offsets.step;
    int* right = static_cast<int*>(right_elements) + i * int_offsets.step;
    for (size_t k = 0; k < kInts; k += 2) {
      const int a = int_offsets.of_ints[k], b = int_offsets.of_ints[k + 1];
      const auto left_a = static_cast<uint32_t>(left[a]), left_b = static_cast<uint32_t>(left[b]);
      const auto right_a = static_cast<uint32_t>(right[a]), right_b = static_cast<uint32_t>(right[b]);
      right[b] = static_cast<int>(left_b * right_a + right_b);
      right[a] = static_cast<int>(left_a * right_a);
    }
  }
}

// A sum by a function of the program, for commutative ones.
inline void add_all(void* left_elements, void* right_elements, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) {
    for (const int offset : int_offsets.of_ints) {
      static_cast<int*>(right_elements)[i * int_offsets.step + offset] +=
          static_cast<int*>(left_elements)[i * int_offsets.step + offset];
    }
  }
}

struct Reduction {
  MPI_Datatype type;
  MPI_Op op;
  int bytes;  // of an element
};

// Results are exact whatever the order.
inline std::vector<Reduction> predefined_reductions() {
  return {{MPI_INT, MPI_SUM, 4},          {MPI_DOUBLE, MPI_SUM, 8},
          {MPI_DOUBLE, MPI_MAX, 8},       {MPI_FLOAT, MPI_MIN, 4},
          {MPI_LONG, MPI_PROD, 8},        {MPI_UNSIGNED, MPI_BXOR, 4},
          {MPI_BYTE, MPI_BOR, 1},         {MPI_SHORT, MPI_LAND, 2},
          {MPI_C_BOOL, MPI_LXOR, 1},      {MPI_UNSIGNED_CHAR, MPI_BAND, 1},
          {MPI_2INT, MPI_MAXLOC, 8},      {MPI_DOUBLE_INT, MPI_MINLOC, 16},
          {MPI_SHORT_INT, MPI_MAXLOC, 8}, {MPI_INT64_T, MPI_MIN, 8},
          {MPI_INTEGER, MPI_SUM, 4},      {MPI_DOUBLE_PRECISION, MPI_SUM, 8},
          {MPI_AINT, MPI_MAX, 8},         {MPI_C_DOUBLE_COMPLEX, MPI_SUM, 16}};
}

// `elements` operands that are small numbers of the type, gaps of pairs zeroed.
inline void fill(const Reduction& reduction, int elements, uint32_t seed, char* to) {
  for (int i = 0; i < elements; ++i) {
    const int small = static_cast<int>((seed * 7 + static_cast<uint32_t>(i) * 13) % 5);
    const auto put = [&](auto value, int at = 0) {
      __builtin_memcpy(to + i * reduction.bytes + at, &value, sizeof value);
    };
    __builtin_memset(to + i * reduction.bytes, 0, static_cast<size_t>(reduction.bytes));
    const auto is = [&](MPI_Datatype type) { return reduction.type == type; };
    if (is(MPI_DOUBLE) || is(MPI_DOUBLE_PRECISION)) {
      put(static_cast<double>(small));
    } else if (is(MPI_FLOAT)) {
      put(static_cast<float>(small));
    } else if (is(MPI_C_DOUBLE_COMPLEX)) {
      put(static_cast<double>(small));
      put(static_cast<double>(-small), 8);
    } else if (is(MPI_DOUBLE_INT)) {
      put(static_cast<double>(small));
      put(static_cast<int>(seed % 100), 8);
    } else if (is(MPI_2INT)) {
      put(small);
      put(static_cast<int>(seed % 100), 4);
    } else if (is(MPI_SHORT_INT)) {
      put(static_cast<short>(small));
      put(static_cast<int>(seed % 100), 4);
    } else if (is(MPI_C_BOOL)) {
      put(small % 2 == 1);
    } else if (reduction.bytes == 1) {
      put(static_cast<unsigned char>(small));
    } else if (is(MPI_SHORT)) {  // logical: MPIs copy the value of a lone operand as it is
      put(static_cast<short>(small % 2));
    } else if (reduction.bytes == 4) {
      put(small);
    } else {
      put(static_cast<int64_t>(small));
    }
  }
}
