/* SPDX-License-Identifier: BSD-3-Clause
 * What the examples share: a call that fails ends the rank, with the reason. */
#include <ibcoll.h>
#include <stdio.h>
#include <stdlib.h>

static inline void check(ibcoll_status_t status, const char* call) {
  if (status == IBCOLL_OK) return;
  fprintf(stderr, "%s: %s: %s\n", call, ibcoll_status_string(status), ibcoll_last_error());
  exit(1);
}
#define CHECK(call) check(call, #call)

static inline void expect(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "not true: %s\n", what);
  exit(1);
}
#define EXPECT(condition) expect(condition, #condition)
