// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/comm/reduce/reduction.h"

namespace ibcoll {
namespace {

bool is_logical(const ibcoll_op& op) { return op.index == kLand || op.index == kLor || op.index == kLxor; }

}  // namespace

Reduction::Reduction(ibcoll_op_t op, ibcoll_type_t type, uint64_t element_bytes, void* call) noexcept
    : op(op),
      type(type),
      element_bytes_(type == IBCOLL_OPAQUE ? element_bytes : type_bytes(type)),
      units_(type == IBCOLL_OPAQUE ? element_bytes : 1),
      kernel_(reduce_kernel(*op, type)),
      to_truth_(is_logical(*op) ? reduce_kernel(*IBCOLL_LOR, type) : nullptr),
      call_(call) {}

std::string operations_of(ibcoll_type_t type) {
  std::string names;
  for (int i = 0; i < kOpCount; ++i) {
    const ibcoll_op row{"", true, i, nullptr, nullptr};
    if (reduce_kernel(row, type)) names += (names.empty() ? "" : ", ") + std::string(operation_name(OpIndex{i}));
  }
  return names;
}

}  // namespace ibcoll
