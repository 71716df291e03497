// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/comm/reduce/operation.h"

namespace ibcoll {
namespace {

// In the order of OpIndex.
constexpr ibcoll_op kOperations[] = {
    {"sum", true, kSum, nullptr, nullptr},          {"prod", true, kProd, nullptr, nullptr},
    {"min", true, kMin, nullptr, nullptr},          {"max", true, kMax, nullptr, nullptr},
    {"band", true, kBand, nullptr, nullptr},        {"bor", true, kBor, nullptr, nullptr},
    {"bxor", true, kBxor, nullptr, nullptr},        {"land", true, kLand, nullptr, nullptr},
    {"lor", true, kLor, nullptr, nullptr},          {"lxor", true, kLxor, nullptr, nullptr},
    {"minloc", true, kMinloc, nullptr, nullptr},    {"maxloc", true, kMaxloc, nullptr, nullptr},
    {"replace", false, kReplace, nullptr, nullptr},
};
static_assert(sizeof kOperations / sizeof *kOperations == kOpCount);

}  // namespace

const char* operation_name(OpIndex index) noexcept { return kOperations[index].name; }

}  // namespace ibcoll

extern "C" {
// The handles are pointers to constants; no code writes through them.
#define IBCOLL_DEFINE_OP(NAME, index) \
  const ibcoll_op_t NAME = const_cast<ibcoll_op_t>(&ibcoll::kOperations[ibcoll::index]);
IBCOLL_DEFINE_OP(IBCOLL_SUM, kSum)
IBCOLL_DEFINE_OP(IBCOLL_PROD, kProd)
IBCOLL_DEFINE_OP(IBCOLL_MIN, kMin)
IBCOLL_DEFINE_OP(IBCOLL_MAX, kMax)
IBCOLL_DEFINE_OP(IBCOLL_BAND, kBand)
IBCOLL_DEFINE_OP(IBCOLL_BOR, kBor)
IBCOLL_DEFINE_OP(IBCOLL_BXOR, kBxor)
IBCOLL_DEFINE_OP(IBCOLL_LAND, kLand)
IBCOLL_DEFINE_OP(IBCOLL_LOR, kLor)
IBCOLL_DEFINE_OP(IBCOLL_LXOR, kLxor)
IBCOLL_DEFINE_OP(IBCOLL_MINLOC, kMinloc)
IBCOLL_DEFINE_OP(IBCOLL_MAXLOC, kMaxloc)
IBCOLL_DEFINE_OP(IBCOLL_REPLACE, kReplace)
#undef IBCOLL_DEFINE_OP
}
