// SPDX-License-Identifier: BSD-3-Clause
// The reductions.
#include "runtime/under_mpi/core/builder.h"

#include <cstring>

namespace ibcoll::under_mpi {

Reason Builder::operation(int64_t count, Operation* operation, const Type** type) {
  *type = find_type(call_.recv.type);
  if (*type == nullptr || count < 0) return Reason::kBadArguments;
  if (const Reason reason = find_operation(call_.op, **type, operation); reason != Reason::kNone) return reason;
  args_.type = operation->type;
  args_.op = operation->op;
  if (operation->of_program) {
    args_.element_bytes = static_cast<uint64_t>(operation->element_bytes);
    out_.operation = {call_.op, *type};
    args_.op_call = &out_.operation;
  }
  out_.bytes = static_cast<uint64_t>(count * operation->element_bytes);
  return refused_alias() ? Reason::kBadArguments : Reason::kNone;
}

// Elements of predefined operations lie as ibcoll knows them, gaps of pairs included; those of the program's are
// packed.
void Builder::operands(const Operation& operation, const Type& type, int64_t in, int64_t out, bool receives) {
  void* result = const_cast<void*>(call_.recv.buffer);
  if (in_place()) {
    args_.send = IBCOLL_IN_PLACE;
  } else if (operation.of_program) {
    send_run(call_.send.buffer, in, type);
  } else if (aliased() && receives) {
    const auto bytes = static_cast<size_t>(in * operation.element_bytes);
    args_.send = std::memcpy(out_.send_stage.reserve(bytes), call_.send.buffer, bytes);
  } else {
    args_.send = call_.send.buffer;
  }
  if (!receives) return;
  if (!operation.of_program) {
    args_.recv = result;
    return;
  }
  receive_run(result, in_place() ? in : out, type, in_place() ? Input{result, in, 0} : Input{});
  if (!out_.unpacked.empty()) out_.unpacked.back().count = out;
}

Reason Builder::reduction() {
  const bool to_root = call_.collective == Collective::kReduce;
  if (to_root && (!root_is_valid() || (in_place() && !is_root()))) return Reason::kBadArguments;
  const bool receives = !to_root || is_root();
  const int64_t count = call_.recv.count;
  Operation found;
  const Type* type = nullptr;
  if (const Reason reason = operation(count, &found, &type); reason != Reason::kNone) return reason;
  args_.count = static_cast<uint64_t>(count);
  args_.root = to_root ? call_.root : 0;
  operands(found, *type, count, count, receives);
  // Rank 0 gets nothing from an exscan.
  if (call_.collective == Collective::kExscan && rank_ == 0) out_.unpacked.clear();
  return Reason::kNone;
}

Reason Builder::reduce_scatter() {
  int64_t in = call_.recv.count * size_, out = call_.recv.count;
  const bool equal = call_.collective == Collective::kReduceScatterBlock;
  if (!equal) {
    if (!call_.recv.counts.given()) return Reason::kBadArguments;
    in = 0;
    for (int i = 0; i < size_; ++i) {
      if (call_.recv.counts[i] < 0) return Reason::kBadArguments;
      in += call_.recv.counts[i];
    }
    out = call_.recv.counts[rank_];
  }
  Operation found;
  const Type* type = nullptr;
  if (const Reason reason = operation(in, &found, &type); reason != Reason::kNone) return reason;
  if (equal) {
    args_.count = static_cast<uint64_t>(out);
  } else {
    out_.arrays->recv.begin(static_cast<size_t>(size_));
    auto& counts = out_.arrays->recv.counts;
    for (int i = 0; i < size_; ++i) counts[i] = static_cast<uint64_t>(call_.recv.counts[i] * found.element_bytes);
    args_.recv_counts = counts.data();
  }
  operands(found, *type, in, out, true);
  return Reason::kNone;
}

}  // namespace ibcoll::under_mpi
