// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/builder.h"

#include <algorithm>

#include "runtime/under_mpi/core/route.h"

namespace ibcoll::under_mpi {

Reason Builder::build() {
  switch (call_.collective) {
    case Collective::kBarrier:
      return Reason::kNone;
    case Collective::kBcast:
      return bcast();
    case Collective::kAllgather:
      return from_all(1);
    case Collective::kAllgatherv:
      return allgatherv();
    case Collective::kAlltoall:
      return from_all(size_);
    case Collective::kAlltoallv:
    case Collective::kAlltoallw:
      return alltoallv();
    case Collective::kGather:
      return gather();
    case Collective::kGatherv:
      return gatherv();
    case Collective::kScatter:
      return scatter();
    case Collective::kScatterv:
      return scatterv();
    case Collective::kReduceScatter:
    case Collective::kReduceScatterBlock:
      return reduce_scatter();
    default:
      return reduction();
  }
}

bool Builder::refused_alias() const noexcept { return route().refuses_aliases && aliased() && out_.bytes > 0; }

void Builder::send_run(const void* buffer, int64_t count, const Type& type) {
  if (type.dense(count) && !aliased()) {
    args_.send = at(buffer, type.true_lb);
    return;
  }
  char* stage = out_.send_stage.reserve(static_cast<uint64_t>(count * type.size));
  pack(buffer, count, type, stage);
  args_.send = stage;
}

void Builder::receive_run(void* buffer, int64_t count, const Type& type, Input input) {
  if (type.dense(count)) {
    args_.recv = at(buffer, type.true_lb);
    return;
  }
  char* stage = out_.recv_stage.reserve(static_cast<uint64_t>(count * type.size));
  if (input.count > 0) pack(input.buffer, input.count, type, stage + input.offset);
  out_.unpacked.push_back({stage, buffer, count, &type});
  args_.recv = stage;
}

Reason Builder::bcast() {
  const Type* type = checked(call_.recv);
  if (type == nullptr || !root_is_valid()) return Reason::kBadArguments;
  args_.bytes = static_cast<uint64_t>(call_.recv.count * type->size);
  args_.root = call_.root;
  out_.bytes = args_.bytes;
  void* buffer = const_cast<void*>(call_.recv.buffer);
  receive_run(buffer, call_.recv.count, *type, is_root() ? Input{buffer, call_.recv.count, 0} : Input{});
  if (is_root()) out_.unpacked.clear();
  return Reason::kNone;
}

// allgather and alltoall: from each rank a block comes in; what goes out is one block for all, or one for each.
Reason Builder::from_all(int sent_blocks) {
  const Type* type = checked(call_.recv);
  if (type == nullptr) return Reason::kBadArguments;
  const int64_t count = call_.recv.count, block = count * type->size;
  args_.bytes = static_cast<uint64_t>(block);
  out_.bytes = args_.bytes * static_cast<uint64_t>(size_);
  if (refused_alias()) return Reason::kBadArguments;
  Input input;
  if (in_place()) {
    args_.send = IBCOLL_IN_PLACE;
    input = sent_blocks == 1 ? own_block(count, *type) : Input{call_.recv.buffer, count * size_, 0};
  } else {
    const Type* sent = checked(call_.send);
    if (sent == nullptr) return Reason::kBadArguments;
    if (call_.send.count * sent->size != block)
      return sent_blocks == 1 ? build_around_own_block() : blocks_of_two_sizes(*sent, *type);
    send_run(call_.send.buffer, call_.send.count * sent_blocks, *sent);
  }
  receive_run(const_cast<void*>(call_.recv.buffer), count * size_, *type, input);
  return Reason::kNone;
}

Reason Builder::gather() {
  if (!root_is_valid()) return Reason::kBadArguments;
  args_.root = call_.root;
  const Type* sent = in_place() ? nullptr : checked(call_.send);
  if (sent == nullptr && !(is_root() && in_place())) return Reason::kBadArguments;
  args_.bytes = sent != nullptr ? static_cast<uint64_t>(call_.send.count * sent->size) : 0;
  out_.bytes = args_.bytes;
  if (!is_root()) {
    send_run(call_.send.buffer, call_.send.count, *sent);
    return Reason::kNone;
  }
  const Type* type = checked(call_.recv);
  if (type == nullptr) return Reason::kBadArguments;
  const int64_t count = call_.recv.count, block = count * type->size;
  if (sent != nullptr && static_cast<uint64_t>(block) != args_.bytes) return build_around_own_block();
  args_.bytes = static_cast<uint64_t>(block);
  out_.bytes = args_.bytes * static_cast<uint64_t>(size_);
  if (refused_alias()) return Reason::kBadArguments;
  Input own;
  if (in_place()) {
    args_.send = IBCOLL_IN_PLACE;
    own = own_block(count, *type);
  } else {
    send_run(call_.send.buffer, call_.send.count, *sent);
  }
  receive_run(const_cast<void*>(call_.recv.buffer), count * size_, *type, own);
  return Reason::kNone;
}

Reason Builder::scatter() {
  if (!root_is_valid()) return Reason::kBadArguments;
  args_.root = call_.root;
  const bool stays = is_root() && (call_.recv.buffer == MPI_IN_PLACE || out_.own_moved);
  const Type* type = stays ? nullptr : checked(call_.recv);
  if (type == nullptr && !stays) return Reason::kBadArguments;
  if (!stays) args_.bytes = static_cast<uint64_t>(call_.recv.count * type->size);
  out_.bytes = args_.bytes;
  if (is_root()) {
    const Type* sent = checked(call_.send);
    if (sent == nullptr) return Reason::kBadArguments;
    const auto block = static_cast<uint64_t>(call_.send.count * sent->size);
    if (!stays && block != args_.bytes) return build_around_own_block();
    args_.bytes = block;
    out_.bytes = block * static_cast<uint64_t>(size_);
    if (refused_alias()) return Reason::kBadArguments;
    send_run(call_.send.buffer, call_.send.count * size_, *sent);
  }
  if (stays) {
    args_.recv = IBCOLL_IN_PLACE;
  } else {
    receive_run(const_cast<void*>(call_.recv.buffer), call_.recv.count, *type, {});
  }
  return Reason::kNone;
}

}  // namespace ibcoll::under_mpi
