// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/call_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/catalog.h"
#include "runtime/base/status.h"
#include "runtime/collectives/framework/registry.h"
#include "runtime/comm/reduce/operation.h"
#include "runtime/comm/reduce/types.h"

namespace ibcoll {
namespace {

uint64_t amount_of(const Args& args, int size) {
  const Collective& row = kCatalog[args.collective];
  if (row.sizes == SizesKnown::kToAll) {
    uint64_t total = 0;
    for (int i = 0; i < size; ++i) total += row.reduces() ? args.send.size(i) : args.recv.size(i);
    return row.reduces() ? total / args.reduction.element_bytes() : total;
  }
  if (row.irregular()) return 0;
  return row.reduces() ? args.count : args.bytes;
}

std::string amount_text(const Collective& row, uint64_t amount) {
  if (!row.moves_data() || (row.irregular() && row.sizes != SizesKnown::kToAll)) return "";
  const bool blocks = row.send.extent == Extent::kBlocks || row.recv.extent == Extent::kBlocks;
  return fmt::format(" of {} {}{}", amount, row.reduces() ? "elements" : "bytes",
                     row.irregular() ? " in all"
                     : blocks        ? " per block"
                                     : "");
}

std::string describe(const CallRecord& call) {
  const auto all = algorithms();
  if (call.algorithm >= all.size()) return "a collective";
  const Algorithm& algorithm = *all[call.algorithm];
  const Collective& row = kCatalog[algorithm.collective];
  std::string text = fmt::format("{} ({})", row.name, Choice{&algorithm, call.parameter}.name());
  if (call.op != 0) text += fmt::format(" #{}", call.op);
  text += amount_text(row, call.amount);
  if (row.reduces())
    text += fmt::format(
        " of type {}, operation {}", call.type < kTypeCount ? type_name(static_cast<ibcoll_type_t>(call.type)) : "?",
        call.operation < kOpCount ? operation_name(static_cast<OpIndex>(call.operation)) : "user-defined");
  if (row.rooted) text += fmt::format(", root {}", call.root);
  if (call.scheme == IBCOLL_SCHEME_COPY && !call.internal) text += ", scheme copy";
  if (call.scheme == IBCOLL_SCHEME_ZERO_COPY) text += ", scheme zero_copy";
  if (call.internal) text += " (a call of ibcoll's own)";
  return text;
}

}  // namespace

CallRecord record_of(const Args& args, const Choice& choice, ibcoll_scheme_t scheme, uint32_t signature, int size) {
  CallRecord call;
  const auto all = algorithms();
  call.signature = signature;
  call.amount = amount_of(args, size);
  call.parameter = choice.parameter;
  call.root = args.root;
  call.algorithm = static_cast<uint16_t>(std::find(all.begin(), all.end(), choice.algorithm) - all.begin()) & 0x1fff;
  call.scheme = static_cast<uint16_t>(scheme) & 3;
  call.internal = args.internal;
  call.type = static_cast<uint8_t>(args.reduction.type);
  if (const ibcoll_op* const op = args.reduction.op)
    call.operation = static_cast<uint8_t>(op->user_defined() ? kOpCount : op->index);
  return call;
}

std::string call_text(const CallRecord& call) noexcept {
  return text_or("a collective", [&] { return describe(call); });
}

}  // namespace ibcoll
