// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/comm/reduce/reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/unit/reduce_reference.h"

namespace ibcoll {
namespace {

const std::vector<ibcoll_op_t> kAll = {IBCOLL_SUM,    IBCOLL_PROD,   IBCOLL_MIN,    IBCOLL_MAX, IBCOLL_BAND,
                                       IBCOLL_BOR,    IBCOLL_BXOR,   IBCOLL_LAND,   IBCOLL_LOR, IBCOLL_LXOR,
                                       IBCOLL_MINLOC, IBCOLL_MAXLOC, IBCOLL_REPLACE};

// Through the handles that programs use.
template <typename T>
T reduce(ibcoll_op_t op, ibcoll_type_t type, T in, T inout) {
  const Reduction reduction(op, type);
  EXPECT_TRUE(reduction.defined());
  reduction(&in, &inout, 1);
  return inout;
}

TEST(ReduceOps, TypesHaveTheirSizesAndOperations) {
  std::vector<bool> seen(kTypeCount);
  for (const ReferenceType& type : reference_types()) {
    seen[type.type] = true;
    EXPECT_EQ(type_bytes(type.type), type.bytes) << type_name(type.type);
    for (const ibcoll_op_t op : kAll)
      EXPECT_EQ(Reduction(op, type.type).defined(), type.has(OpIndex{op->index}))
          << op->name << " " << type_name(type.type);
  }
  seen[IBCOLL_OPAQUE] = true;
  EXPECT_EQ(std::vector<bool>(kTypeCount, true), seen);
  EXPECT_EQ(type_bytes(IBCOLL_OPAQUE), 0u);
  EXPECT_EQ(operations_of(IBCOLL_OPAQUE), "replace");
  EXPECT_EQ(operations_of(IBCOLL_COMPLEX_FLOAT), "sum, prod, replace");
}

TEST(ReduceOps, OutsideOfTheEnumerationThereIsNothing) {
  EXPECT_EQ(type_bytes(static_cast<ibcoll_type_t>(-1)), 0u);
  EXPECT_EQ(type_bytes(static_cast<ibcoll_type_t>(kTypeCount)), 0u);
  EXPECT_STREQ(type_name(static_cast<ibcoll_type_t>(-1)), "?");
  EXPECT_EQ(reduce_kernel(*IBCOLL_SUM, static_cast<ibcoll_type_t>(kTypeCount)), nullptr);
}

TEST(ReduceOps, NamesOfCAreTheTypesOfTheirSize) {
  EXPECT_EQ(type_bytes(IBCOLL_CHAR), sizeof(char));
  EXPECT_EQ(type_bytes(IBCOLL_UNSIGNED_SHORT), sizeof(unsigned short));
  EXPECT_EQ(type_bytes(IBCOLL_INT), sizeof(int));
  EXPECT_EQ(type_bytes(IBCOLL_UNSIGNED_LONG), sizeof(unsigned long));
  EXPECT_EQ(type_bytes(IBCOLL_LONG_LONG), sizeof(long long));
  EXPECT_EQ(reduce<char>(IBCOLL_MIN, IBCOLL_CHAR, '\xff', 1), std::min('\xff', '\1'));
  EXPECT_EQ(reduce<long>(IBCOLL_MIN, IBCOLL_LONG, -1, 1), -1);
}

// Each handle is bound to its own row: one result that no other operation gives.
TEST(ReduceOps, HandlesAreTheirOperations) {
  EXPECT_EQ(reduce<int32_t>(IBCOLL_SUM, IBCOLL_INT32, 6, 11), 17);
  EXPECT_EQ(reduce<int32_t>(IBCOLL_PROD, IBCOLL_INT32, 6, 11), 66);
  EXPECT_EQ(reduce<int32_t>(IBCOLL_MIN, IBCOLL_INT32, 11, 6), 6);
  EXPECT_EQ(reduce<int32_t>(IBCOLL_MAX, IBCOLL_INT32, 11, 6), 11);
  EXPECT_EQ(reduce<int32_t>(IBCOLL_BAND, IBCOLL_INT32, 6, 11), 2);
  EXPECT_EQ(reduce<int32_t>(IBCOLL_BOR, IBCOLL_INT32, 6, 11), 15);
  EXPECT_EQ(reduce<int32_t>(IBCOLL_BXOR, IBCOLL_INT32, 6, 11), 13);
  EXPECT_EQ(reduce<int32_t>(IBCOLL_LAND, IBCOLL_INT32, 6, 0), 0);
  EXPECT_EQ(reduce<int32_t>(IBCOLL_LOR, IBCOLL_INT32, 6, 0), 1);
  EXPECT_EQ(reduce<int32_t>(IBCOLL_LXOR, IBCOLL_INT32, 6, 11), 0);
  EXPECT_EQ(reduce<int32_t>(IBCOLL_REPLACE, IBCOLL_INT32, 6, 11), 11);
  for (const ibcoll_op_t op : kAll) {
    EXPECT_STREQ(op->name, operation_name(OpIndex{op->index}));
    EXPECT_EQ(op->commutative, op != IBCOLL_REPLACE) << op->name;
  }
}

TEST(ReduceOps, NotANumberWins) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ibcoll_op_t op : {IBCOLL_MIN, IBCOLL_MAX}) {
    EXPECT_TRUE(std::isnan(reduce(op, IBCOLL_DOUBLE, nan, 1.0)));
    EXPECT_TRUE(std::isnan(reduce(op, IBCOLL_DOUBLE, 1.0, nan)));
  }
  EXPECT_TRUE(std::signbit(reduce(IBCOLL_MIN, IBCOLL_DOUBLE, 0.0, -0.0)));
  EXPECT_FALSE(std::signbit(reduce(IBCOLL_MAX, IBCOLL_DOUBLE, -0.0, 0.0)));
  for (const ibcoll_op_t op : {IBCOLL_MINLOC, IBCOLL_MAXLOC}) {
    EXPECT_EQ(reduce(op, IBCOLL_DOUBLE_INT, Pair<double>{nan, 5}, Pair<double>{1, 2}).index, 5);
    EXPECT_EQ(reduce(op, IBCOLL_DOUBLE_INT, Pair<double>{nan, 5}, Pair<double>{nan, 2}).index, 2);
    EXPECT_EQ(reduce(op, IBCOLL_INT_INT, Pair<int>{7, 1}, Pair<int>{7, 2}).index, 1);
  }
}

// ---------------------------------------------------------------- one operand

template <typename T>
T single(ibcoll_op_t op, ibcoll_type_t type, T operand) {
  T result{}, in_place = operand;
  const Reduction reduction(op, type);
  reduction.single(&result, &operand, 1);
  reduction.single(&in_place, &in_place, 1);
  EXPECT_EQ(std::memcmp(&result, &in_place, sizeof result), 0);
  return result;
}

TEST(OneOperand, IsTrueOrFalseForLogicalOperations) {
  for (const ibcoll_op_t op : {IBCOLL_LAND, IBCOLL_LOR, IBCOLL_LXOR}) {
    EXPECT_EQ(single<int32_t>(op, IBCOLL_INT32, 256), 1) << op->name;
    EXPECT_EQ(single<int32_t>(op, IBCOLL_INT32, 0), 0) << op->name;
    EXPECT_EQ(single<double>(op, IBCOLL_DOUBLE, 0.5), 1) << op->name;
    EXPECT_EQ(single<double>(op, IBCOLL_DOUBLE, -0.0), 0) << op->name;
    EXPECT_EQ(single<long double>(op, IBCOLL_LONG_DOUBLE, -3), 1) << op->name;
    EXPECT_EQ(single<uint16_t>(op, IBCOLL_FLOAT16, 0x8001), 0x3c00) << op->name;
    EXPECT_EQ(single<uint16_t>(op, IBCOLL_BFLOAT16, 0x8001), 0x3f80) << op->name;
    EXPECT_EQ(single<uint8_t>(op, IBCOLL_BOOL, 200), 1) << op->name;
  }
}

TEST(OneOperand, IsTheResultOfOthers) {
  for (const ReferenceType& type : reference_types()) {
    const uint64_t count = type.values.size() / type.bytes;
    for (const ibcoll_op_t op : kAll) {
      if (!type.has(OpIndex{op->index}) || (op->index >= kLand && op->index <= kLxor)) continue;
      Elements result(type.values.size());
      Reduction(op, type.type).single(result.data(), type.values.data(), count);
      EXPECT_EQ(result, type.values) << op->name << " " << type_name(type.type);
    }
  }
  char operand[] = "opaque.", result[8] = "";
  Reduction(IBCOLL_REPLACE, IBCOLL_OPAQUE, 4).single(result, operand, 2);
  EXPECT_STREQ(result, operand);
}

// ---------------------------------------------------------------- operations of the user

struct Seen {
  uint64_t count = 0;
  ibcoll_type_t type = IBCOLL_INT8;
};
void subtract(const void* in, void* inout, uint64_t count, ibcoll_type_t type, void* user) {
  *static_cast<Seen*>(user) = {count, type};
  *static_cast<double*>(inout) -= *static_cast<const double*>(in);
}

TEST(UserOperations, GetTheirTypeAndPointer) {
  Seen seen;
  ibcoll_op op{"mine", false, kUserDefined, subtract, &seen};
  double in = 1, inout = 5;
  const Reduction reduction(&op, IBCOLL_DOUBLE);
  EXPECT_TRUE(reduction.defined());
  EXPECT_FALSE(reduction.result_may_replace_lower());
  reduction(&in, &inout, 1);
  EXPECT_EQ(inout, 4);
  EXPECT_EQ(seen.count, 1u);
  EXPECT_EQ(seen.type, IBCOLL_DOUBLE);
  double result = 0;
  reduction.combine(&in, &inout, &result, 1);
  EXPECT_EQ(result, 3);
  EXPECT_EQ(inout, 4);
  reduction.combine(&in, &result, &result, 1);
  EXPECT_EQ(result, 2);
  reduction.single(&result, &inout, 1);
  EXPECT_EQ(result, 4);
}

TEST(UserOperations, CountOpaqueElements) {
  Seen seen;
  ibcoll_op op{"mine", false, kUserDefined, subtract, &seen};
  const double in[6] = {1, 1, 1, 1, 1, 1};
  double inout[6] = {5, 5, 5, 5, 5, 5}, result[6] = {};
  const Reduction reduction(&op, IBCOLL_OPAQUE, 24);
  EXPECT_EQ(reduction.element_bytes(), 24u);
  reduction.combine(in, inout, result, 2);
  EXPECT_EQ(seen.count, 2u);
  EXPECT_EQ(seen.type, IBCOLL_OPAQUE);
  EXPECT_EQ(result[0], 4);
  EXPECT_EQ(result[5], 5);
}

struct SeenElements {
  uint64_t count, element_bytes;
  ibcoll_type_t type;
  void* user;
};
void note_elements(const void*, void*, uint64_t count, uint64_t element_bytes, ibcoll_type_t type, void* user,
                   void* call) {
  *static_cast<SeenElements*>(call) = {count, element_bytes, type, user};
}

TEST(UserOperations, ForElementsOfManyKindsGetTheSizeAndThePointerOfTheCall) {
  int user = 0;
  ibcoll_op op{"mine", false, kUserDefined, nullptr, &user, note_elements};
  const double in[6] = {};
  double inout[6] = {}, result[6] = {};
  for (const auto& [type, bytes] : {std::pair{IBCOLL_DOUBLE, 8u}, std::pair{IBCOLL_OPAQUE, 24u}}) {
    SeenElements seen{};
    const Reduction reduction(&op, type, bytes, &seen);
    EXPECT_TRUE(reduction.defined());
    EXPECT_FALSE(reduction.result_may_replace_lower());
    for (const uint64_t count : {1u, 2u}) {
      if (count == 1)
        reduction(in, inout, count);
      else
        reduction.combine(in, inout, result, count);
      EXPECT_EQ(seen.count, count);
      EXPECT_EQ(seen.element_bytes, bytes);
      EXPECT_EQ(seen.type, type);
      EXPECT_EQ(seen.user, &user);
    }
  }
}

TEST(UserOperations, OpaqueElementsAreReplacedWhole) {
  const char lower[] = "abcdefghi", upper[] = "123456789";
  char result[] = ".........";
  Reduction(IBCOLL_REPLACE, IBCOLL_OPAQUE, 3).combine(lower, upper, result, 2);
  EXPECT_STREQ(result, "123456...");
}

}  // namespace
}  // namespace ibcoll
