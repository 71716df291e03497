/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of the program: fractions, and the greatest of byte strings of any length.
 * ibcoll_run -n 4 ./operations */
#include <string.h>

#include "check.h"

typedef struct {
  int64_t numerator, denominator;
} Fraction;

static void multiply(const void* in, void* inout, uint64_t count, ibcoll_type_t type, void* user) {
  const Fraction* const a = in;
  Fraction* const b = inout;
  (void)type, (void)user;
  for (uint64_t i = 0; i < count; ++i)
    b[i] = (Fraction){a[i].numerator * b[i].numerator, a[i].denominator * b[i].denominator};
}

/* `call` is op_call of the arguments: here, how many times the operation ran for this call. */
static void greatest(const void* in, void* inout, uint64_t count, uint64_t element_bytes, ibcoll_type_t type,
                     void* user, void* call) {
  (void)type, (void)user;
  ++*(int*)call;
  for (uint64_t i = 0; i < count; ++i, in = (const char*)in + element_bytes, inout = (char*)inout + element_bytes)
    if (memcmp(in, inout, element_bytes) > 0) memcpy(inout, in, element_bytes);
}

int main(void) {
  ibcoll_context_t context;
  CHECK(ibcoll_context_create(NULL, &context));
  const ibcoll_team_t world = ibcoll_team_world(context);
  const int rank = ibcoll_context_rank(context), size = ibcoll_context_size(context);

  ibcoll_op_t op;
  CHECK(ibcoll_op_create(multiply, NULL, /*commutative=*/1, &op));
  const Fraction mine = {rank + 1, rank + 2};
  Fraction product;
  ibcoll_collective_args_t args = {.struct_size = sizeof args,
                                   .collective = IBCOLL_ALLREDUCE,
                                   .send = &mine,
                                   .recv = &product,
                                   .count = 1,
                                   .type = IBCOLL_OPAQUE,
                                   .element_bytes = sizeof mine,
                                   .op = op};
  CHECK(ibcoll_collective_run(world, &args));
  EXPECT(product.numerator * (size + 1) == product.denominator);
  CHECK(ibcoll_op_free(op));

  CHECK(ibcoll_op_create_for_elements(greatest, NULL, /*commutative=*/1, &op));
  char word[5] = "rank", last[5];
  word[4] = (char)('a' + rank % 26);
  int runs = 0;
  args.send = word, args.recv = last, args.element_bytes = sizeof word, args.op = op, args.op_call = &runs;
  CHECK(ibcoll_collective_run(world, &args));
  EXPECT(size > 26 || last[4] == 'a' + size - 1);
  CHECK(ibcoll_op_free(op));
  if (rank == 0) printf("%.5s\n", last);
  CHECK(ibcoll_context_destroy(context));
  return 0;
}
