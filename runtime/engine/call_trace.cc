// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/call_trace.h"

#include "runtime/engine/request.h"
#include "runtime/engine/team.h"

namespace ibcoll {

void CallTrace::enable(TraceBuffer& buffer, const void* site, bool waits) noexcept {
  const TeamMembers& members = request_.team().members();
  if (!buffer_) buffer.lists().add_team(members.epoch(), members.placement().job_ranks());
  buffer_ = &buffer;
  site_ = site;
  if (!request_.in_flight()) waits_from_ = waits ? 0 : TracedCall::kNever;
  request_.exchange().trace().enable(buffer.keeps_peers());
}

void CallTrace::begin_wait() noexcept {
  if (!buffer_) return;  // it was never started
  if (!request_.in_flight()) return buffer_->note_wait(added_as_, now());
  if (waits_from_ == TracedCall::kNever) waits_from_ = now() - arrived_at_;
}

void CallTrace::add() noexcept {
  const Team& team = request_.team();
  const Args& args = request_.args();
  Exchange& exchange = request_.exchange();
  TracedCall call;
  call.arrival_ns = arrived_at_, call.exit_ns = now();
  call.team = team.members().epoch();
  call.algorithm = request_.choice().algorithm, call.parameter = args.parameter;
  call.bytes = traced_bytes(args, team.size());
  call.site = site_;
  call.op = exchange.op();
  call.ranks = static_cast<uint32_t>(team.size()) & 0x7fffffffU;
  call.failed = !request_.status().ok();
  call.root = args.root;
  call.wait_ns = waits_from_;
  call.scheme = request_.record().scheme;
  if (const uint64_t* const counts = traced_counts(args))
    call.counts = buffer_->lists().keep_counts({counts, static_cast<size_t>(team.size())});
  if (kCatalog[args.collective].reduces() && args.reduction.op) {
    const Reduction& reduction = args.reduction;
    call.type = static_cast<uint8_t>(reduction.type), call.operation = static_cast<int8_t>(reduction.op->index);
    call.element_bytes = static_cast<uint32_t>(reduction.element_bytes());
    call.commutative = reduction.op->commutative;
  }
  exchange.trace().add_to(*buffer_, call, exchange.state());
  added_as_ = buffer_->last();
}

// A rank that is alone has no transport to ask for the time.
int64_t CallTrace::now() const noexcept {
  Team& team = request_.team();
  return team.size() > 1 ? static_cast<int64_t>(team.engine().now()) : TraceBuffer::now_ns();
}

}  // namespace ibcoll
