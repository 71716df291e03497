// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/operation.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>

#include "runtime/under_mpi/core/staging.h"

namespace ibcoll::under_mpi {

namespace {

struct Operator {
  MPI_Op mpi;
  const ibcoll_op_t* ibcoll;
  OperationClass permitted;
};

const Operator* find_operator(MPI_Op op) noexcept {
  static const Operator kOperators[] = {
      {MPI_SUM, &IBCOLL_SUM, kArithmetic},      {MPI_MAX, &IBCOLL_MAX, kOrders},
      {MPI_MIN, &IBCOLL_MIN, kOrders},          {MPI_PROD, &IBCOLL_PROD, kArithmetic},
      {MPI_LAND, &IBCOLL_LAND, kLogical},       {MPI_BAND, &IBCOLL_BAND, kBitwise},
      {MPI_LOR, &IBCOLL_LOR, kLogical},         {MPI_BOR, &IBCOLL_BOR, kBitwise},
      {MPI_LXOR, &IBCOLL_LXOR, kLogical},       {MPI_BXOR, &IBCOLL_BXOR, kBitwise},
      {MPI_MAXLOC, &IBCOLL_MAXLOC, kLocations}, {MPI_MINLOC, &IBCOLL_MINLOC, kLocations},
  };
  for (const Operator& one : kOperators) {
    if (one.mpi == op) return &one;
  }
  return nullptr;
}

// As a C compiler would align an element of the program's.
bool aligned(const void* address, int64_t extent) noexcept {
  const uint64_t boundary = std::min<uint64_t>(16, static_cast<uint64_t>(extent) & -static_cast<uint64_t>(extent));
  return boundary == 0 || reinterpret_cast<uintptr_t>(address) % boundary == 0;
}

// Elements in the layout of the type. Its function sees nothing else.
class LaidOut {
 public:
  LaidOut(const Type& type, int64_t count)
      : type_(type),
        memory_(new char[static_cast<size_t>((count - 1) * type.extent + type.true_extent) + 2 * kAligned]) {
    // What is at the type's address 0 is aligned, wherever its data begin.
    const auto begin = reinterpret_cast<int64_t>(memory_.get());
    const int64_t up = (kAligned - begin % kAligned) % kAligned;
    first_ = memory_.get() + up + (type.true_lb % kAligned + kAligned) % kAligned;
  }
  void* address() const noexcept { return first_ - type_.true_lb; }

 private:
  static constexpr int64_t kAligned = 64;
  const Type& type_;
  std::unique_ptr<char[]> memory_;
  char* first_;
};

constexpr int64_t kPartBytes = 2048;

// Packed operands of a type with gaps, or in no order of MPI's.
void reduce_packed(const char* in, char* inout, int64_t count, const OperationCall& call) {
  const Type& type = *call.type;
  // Where elements interlace each is laid out alone.
  const int64_t at_once =
      type.extent >= type.true_extent && type.extent > 0 ? std::clamp<int64_t>(kPartBytes / type.extent, 1, count) : 1;
  const LaidOut left(type, at_once), right(type, at_once);
  for (int64_t done = 0; done < count; done += at_once) {
    const int64_t now = std::min(at_once, count - done);
    unpack(in + done * type.size, left.address(), now, type);
    unpack(inout + done * type.size, right.address(), now, type);
    PMPI_Reduce_local(left.address(), right.address(), static_cast<int>(now), type.handle, call.op);
    pack(right.address(), now, type, inout + done * type.size);
  }
}

void reduce(const void* in, void* inout, uint64_t count, uint64_t, ibcoll_type_t, void*, void* of_call) {
  const auto& call = *static_cast<const OperationCall*>(of_call);
  const Type& type = *call.type;
  const char* left = static_cast<const char*>(in);
  char* right = static_cast<char*>(inout);
  const auto elements = static_cast<int64_t>(count);
  if (!type.dense(2) || !aligned(left, type.extent) || !aligned(right, type.extent)) {
    return reduce_packed(left, right, elements, call);
  }
  for (int64_t done = 0; done < elements;) {
    const auto now = static_cast<int>(std::min<int64_t>(INT_MAX, elements - done));
    PMPI_Reduce_local(left + done * type.size - type.true_lb, right + done * type.size - type.true_lb, now, type.handle,
                      call.op);
    done += now;
  }
}

ibcoll_op_t op_of_program(bool commutative) noexcept {
  const auto make = [](int commutes) {
    ibcoll_op_t op = nullptr;
    ibcoll_op_create_for_elements(reduce, nullptr, commutes, &op);
    return op;
  };
  static const ibcoll_op_t kOps[2] = {make(0), make(1)};
  return kOps[commutative ? 1 : 0];
}

}  // namespace

bool is_predefined(MPI_Op op) noexcept { return find_operator(op) != nullptr || op == MPI_REPLACE || op == MPI_NO_OP; }

Reason find_operation(MPI_Op op, const Type& type, Operation* found) noexcept {
  if (op == MPI_OP_NULL) return Reason::kBadArguments;
  if (const Operator* known = find_operator(op)) {
    if ((type.classes & known->permitted) == 0) return Reason::kOperation;
    *found = {*known->ibcoll, type.element, type.extent, false};
    return Reason::kNone;
  }
  if (is_predefined(op)) return Reason::kOperation;
  if (type.size == 0) return Reason::kEmptyType;
  int commutative = 0;
  if (PMPI_Op_commutative(op, &commutative) != MPI_SUCCESS) return Reason::kBadArguments;
  *found = {op_of_program(commutative != 0), IBCOLL_OPAQUE, type.size, true};
  return found->op != nullptr ? Reason::kNone : Reason::kOperation;
}

}  // namespace ibcoll::under_mpi
