// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/datatype.h"

#include <memory>
#include <mutex>
#include <new>
#include <optional>

#include "runtime/under_mpi/core/handle.h"
#include "runtime/under_mpi/core/route.h"
#include "runtime/under_mpi/core/type_layout.h"

namespace ibcoll::under_mpi {

namespace {

using Predefined = HandleTable<Type, 512>;

Predefined& predefined() {
  static Predefined table;
  return table;
}

Type measured(MPI_Datatype handle) {
  Type type;
  type.handle = handle;
  MPI_Count size = 0, lb = 0, extent = 0;
  PMPI_Type_size_x(handle, &size);
  type.size = size;
  PMPI_Type_get_extent_x(handle, &lb, &extent);
  type.extent = extent;
  PMPI_Type_get_true_extent_x(handle, &lb, &extent);
  type.true_lb = lb;
  type.true_extent = extent;
  return type;
}

void add(MPI_Datatype handle, ibcoll_type_t element, int classes) {
  if (handle == MPI_DATATYPE_NULL) return;  // this MPI lacks it
  Type type = measured(handle);
  type.predefined = true;
  type.one_run = type.size == type.extent;
  type.element = element;
  type.classes = static_cast<uint8_t>(classes);
  predefined().insert(key_of(handle), type);
}

constexpr int kReal = kOrders | kArithmetic;
constexpr int kCInteger = kReal | kBitwise | kLogical;
constexpr int kFortranInteger = kReal | kBitwise;

template <typename T>
constexpr ibcoll_type_t integer() {
  constexpr bool negative = static_cast<T>(-1) < static_cast<T>(0);
  switch (sizeof(T)) {
    case 1:
      return negative ? IBCOLL_INT8 : IBCOLL_UINT8;
    case 2:
      return negative ? IBCOLL_INT16 : IBCOLL_UINT16;
    case 4:
      return negative ? IBCOLL_INT32 : IBCOLL_UINT32;
    default:
      return negative ? IBCOLL_INT64 : IBCOLL_UINT64;
  }
}

// The integer type of a type whose size only the MPI's Fortran compiler knows.
ibcoll_type_t integer_of(MPI_Datatype handle) {
  int size = 4;
  if (handle != MPI_DATATYPE_NULL) PMPI_Type_size(handle, &size);
  return size == 1 ? IBCOLL_INT8 : size == 2 ? IBCOLL_INT16 : size == 4 ? IBCOLL_INT32 : IBCOLL_INT64;
}

bool has_size(MPI_Datatype handle, int wanted) {
  int size = 0;
  if (handle != MPI_DATATYPE_NULL) PMPI_Type_size(handle, &size);
  return size == wanted;
}

void add_c_types() {
  add(MPI_SIGNED_CHAR, IBCOLL_INT8, kCInteger);
  add(MPI_UNSIGNED_CHAR, IBCOLL_UINT8, kCInteger);
  add(MPI_SHORT, IBCOLL_SHORT, kCInteger);
  add(MPI_UNSIGNED_SHORT, IBCOLL_UNSIGNED_SHORT, kCInteger);
  add(MPI_INT, IBCOLL_INT, kCInteger);
  add(MPI_UNSIGNED, IBCOLL_UNSIGNED, kCInteger);
  add(MPI_LONG, IBCOLL_LONG, kCInteger);
  add(MPI_UNSIGNED_LONG, IBCOLL_UNSIGNED_LONG, kCInteger);
  add(MPI_LONG_LONG_INT, IBCOLL_LONG_LONG, kCInteger);
  add(MPI_LONG_LONG, IBCOLL_LONG_LONG, kCInteger);
  add(MPI_UNSIGNED_LONG_LONG, IBCOLL_UNSIGNED_LONG_LONG, kCInteger);
  add(MPI_INT8_T, IBCOLL_INT8, kCInteger);
  add(MPI_UINT8_T, IBCOLL_UINT8, kCInteger);
  add(MPI_INT16_T, IBCOLL_INT16, kCInteger);
  add(MPI_UINT16_T, IBCOLL_UINT16, kCInteger);
  add(MPI_INT32_T, IBCOLL_INT32, kCInteger);
  add(MPI_UINT32_T, IBCOLL_UINT32, kCInteger);
  add(MPI_INT64_T, IBCOLL_INT64, kCInteger);
  add(MPI_UINT64_T, IBCOLL_UINT64, kCInteger);
  add(MPI_FLOAT, IBCOLL_FLOAT, kReal);
  add(MPI_DOUBLE, IBCOLL_DOUBLE, kReal);
  add(MPI_LONG_DOUBLE, IBCOLL_LONG_DOUBLE, kReal);
  add(MPI_C_BOOL, IBCOLL_BOOL, kLogical);
  add(MPI_CXX_BOOL, IBCOLL_BOOL, kLogical);
  add(MPI_BYTE, IBCOLL_UINT8, kBitwise);
  add(MPI_AINT, integer<MPI_Aint>(), kFortranInteger);
  add(MPI_OFFSET, integer<MPI_Offset>(), kFortranInteger);
  add(MPI_COUNT, integer<MPI_Count>(), kFortranInteger);
  add(MPI_C_FLOAT_COMPLEX, IBCOLL_COMPLEX_FLOAT, kArithmetic);
  add(MPI_C_COMPLEX, IBCOLL_COMPLEX_FLOAT, kArithmetic);
  add(MPI_C_DOUBLE_COMPLEX, IBCOLL_COMPLEX_DOUBLE, kArithmetic);
  add(MPI_C_LONG_DOUBLE_COMPLEX, IBCOLL_COMPLEX_LONG_DOUBLE, kArithmetic);
  add(MPI_CXX_FLOAT_COMPLEX, IBCOLL_COMPLEX_FLOAT, kArithmetic);
  add(MPI_CXX_DOUBLE_COMPLEX, IBCOLL_COMPLEX_DOUBLE, kArithmetic);
  add(MPI_CXX_LONG_DOUBLE_COMPLEX, IBCOLL_COMPLEX_LONG_DOUBLE, kArithmetic);
  add(MPI_FLOAT_INT, IBCOLL_FLOAT_INT, kLocations);
  add(MPI_DOUBLE_INT, IBCOLL_DOUBLE_INT, kLocations);
  add(MPI_LONG_DOUBLE_INT, IBCOLL_LONG_DOUBLE_INT, kLocations);
  add(MPI_SHORT_INT, IBCOLL_SHORT_INT, kLocations);
  add(MPI_2INT, IBCOLL_INT_INT, kLocations);
  add(MPI_LONG_INT, IBCOLL_LONG_INT, kLocations);
  // No operations: only moved.
  for (const MPI_Datatype handle : {MPI_CHAR, MPI_WCHAR, MPI_PACKED, MPI_CHARACTER}) add(handle, IBCOLL_OPAQUE, 0);
}

void add_fortran_types() {
  add(MPI_INTEGER, integer_of(MPI_INTEGER), kFortranInteger);
  add(MPI_INTEGER1, IBCOLL_INT8, kFortranInteger);
  add(MPI_INTEGER2, IBCOLL_INT16, kFortranInteger);
  add(MPI_INTEGER4, IBCOLL_INT32, kFortranInteger);
  add(MPI_INTEGER8, IBCOLL_INT64, kFortranInteger);
  // Compilers differ in what true is; MPIs built for one where it is 1 are all that Linux has.
  add(MPI_LOGICAL, integer_of(MPI_LOGICAL), kLogical);
  if (has_size(MPI_REAL, 4)) add(MPI_REAL, IBCOLL_FLOAT, kReal);
  if (has_size(MPI_DOUBLE_PRECISION, 8)) add(MPI_DOUBLE_PRECISION, IBCOLL_DOUBLE, kReal);
  add(MPI_REAL4, IBCOLL_FLOAT, kReal);
  add(MPI_REAL8, IBCOLL_DOUBLE, kReal);
  if (has_size(MPI_COMPLEX, 8)) add(MPI_COMPLEX, IBCOLL_COMPLEX_FLOAT, kArithmetic);
  if (has_size(MPI_DOUBLE_COMPLEX, 16)) add(MPI_DOUBLE_COMPLEX, IBCOLL_COMPLEX_DOUBLE, kArithmetic);
  add(MPI_COMPLEX8, IBCOLL_COMPLEX_FLOAT, kArithmetic);
  add(MPI_COMPLEX16, IBCOLL_COMPLEX_DOUBLE, kArithmetic);
  if (has_size(MPI_2INTEGER, 8)) add(MPI_2INTEGER, IBCOLL_INT_INT, kLocations);
}

// A derived type's answer hangs on the type, as an attribute.
std::mutex derived_lock;
int derived_key = MPI_KEYVAL_INVALID;

int forget(MPI_Datatype, int, void* value, void*) {
  delete static_cast<Type*>(value);
  return MPI_SUCCESS;
}

const Type* attribute_of(MPI_Datatype handle) {
  void* value = nullptr;
  int found = 0;
  PMPI_Type_get_attr(handle, derived_key, &value, &found);
  return found != 0 ? static_cast<Type*>(value) : nullptr;
}

bool is_named(MPI_Datatype handle) {
  int combiner = MPI_COMBINER_NAMED;
#if MPI_VERSION >= 4
  MPI_Count lengths[4];
  PMPI_Type_get_envelope_c(handle, &lengths[0], &lengths[1], &lengths[2], &lengths[3], &combiner);
#else
  int lengths[3];
  PMPI_Type_get_envelope(handle, &lengths[0], &lengths[1], &lengths[2], &combiner);
#endif
  return combiner == MPI_COMBINER_NAMED;
}

const Type* add_unknown(MPI_Datatype handle) {
  Type type = measured(handle);
  if (route().has_envelope != nullptr && !route().has_envelope(handle)) {
    type.one_run = false;  // whatever it is made of
  } else if (is_named(handle)) {
    type.predefined = true;
    type.one_run = type.size == type.extent;
    if (const Type* entry = predefined().insert(key_of(handle), type)) return entry;
  } else {
    const auto run = run_of(handle);
    type.one_run = run.has_value() && run->bytes == type.size;
  }
  auto* kept = new Type(type);
  PMPI_Type_set_attr(handle, derived_key, kept);
  return kept;
}

}  // namespace

const Type* find_type(MPI_Datatype handle) noexcept {
  if (const Type* type = predefined().find(key_of(handle))) return type;
  if (handle == MPI_DATATYPE_NULL) return nullptr;
  try {
    const std::lock_guard guard(derived_lock);
    if (derived_key == MPI_KEYVAL_INVALID) {
      PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget, &derived_key, nullptr);
      add_c_types();
      add_fortran_types();
      if (const Type* type = predefined().find(key_of(handle))) return type;
    }
    if (const Type* type = attribute_of(handle)) return type;
    return add_unknown(handle);
  } catch (...) {
    return nullptr;
  }
}

}  // namespace ibcoll::under_mpi
