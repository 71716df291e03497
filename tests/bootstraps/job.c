/* SPDX-License-Identifier: BSD-3-Clause
 * A program that knows no launcher: it must start under each of them. Prints "W wrong among N" ranks on every rank;
 * with a number, the wrong bytes of this number of contexts one after the other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alltoall.h"

/* The state as JSON; the test reads the name of the bootstrap there. */
static void print_state(ibcoll_context_t context) {
  const size_t length = ibcoll_info_json(context, NULL, 0);
  char* text = malloc(length + 1);
  if (text == NULL) return;
  ibcoll_info_json(context, text, length + 1);
  puts(text);
  free(text);
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--state") == 0) {
    ibcoll_context_t context;
    if (ibcoll_context_create(NULL, &context) != IBCOLL_OK) return fprintf(stderr, "%s\n", ibcoll_last_error()), 1;
    if (ibcoll_context_rank(context) == 0) print_state(context);
    return ibcoll_context_destroy(context) != IBCOLL_OK;
  }
  long wrong = 0;
  int ranks = 0;
  for (int contexts = argc == 2 ? atoi(argv[1]) : 1; contexts > 0; --contexts)
    wrong += checked_alltoall(NULL, 5000, &ranks);
  printf("%ld wrong among %d\n", wrong, ranks);
  return wrong != 0;
}
