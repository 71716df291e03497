/* SPDX-License-Identifier: BSD-3-Clause
 * What a program can ask: names, algorithms, which one would run, and the whole state. ./introspection */
#include <string.h>

#include "check.h"

int main(void) {
  ibcoll_context_t context;
  CHECK(ibcoll_context_create(NULL, &context));
  if (ibcoll_context_rank(context) == 0) {
    printf("ibcoll %s\n", ibcoll_version_string());
    const char* name;
    for (int i = 0; (name = ibcoll_algorithm_name(IBCOLL_BCAST, i)) != NULL; ++i)
      printf("%s %s: %s\n", ibcoll_collective_name(IBCOLL_BCAST), name, ibcoll_algorithm_about(IBCOLL_BCAST, name));
  }
  const ibcoll_collective_args_t args = {.struct_size = sizeof args, .collective = IBCOLL_BCAST, .bytes = 4096};
  char text[8192];
  CHECK(ibcoll_explain(ibcoll_team_world(context), &args, text, sizeof text));
  EXPECT(strstr(text, "\"reason\"") != NULL);

  const size_t length = ibcoll_info_json(context, NULL, 0);
  char* const state = malloc(length + 1);
  EXPECT(state != NULL && ibcoll_info_json(context, state, length + 1) > 0 && state[0] == '{');
  free(state);
  CHECK(ibcoll_context_destroy(context));
  return 0;
}
