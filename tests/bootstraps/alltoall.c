/* SPDX-License-Identifier: BSD-3-Clause */
#include "alltoall.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned char pattern(int from, int to, size_t index) {
  return (unsigned char)((size_t)from * 37 + (size_t)to * 11 + index);
}

static long failed(const char* call) {
  fprintf(stderr, "%s: %s\n", call, ibcoll_last_error());
  return -1;
}

static long exchange(ibcoll_context_t context, size_t bytes, unsigned char* send, unsigned char* recv) {
  const int rank = ibcoll_context_rank(context);
  const size_t total = (size_t)ibcoll_context_size(context) * bytes;
  for (size_t i = 0; i < total; ++i) send[i] = pattern(rank, (int)(i / bytes), i % bytes);
  if (ibcoll_alltoall(ibcoll_team_world(context), send, recv, bytes) != IBCOLL_OK) return failed("ibcoll_alltoall");
  long wrong = 0;
  for (size_t i = 0; i < total; ++i) wrong += recv[i] != pattern((int)(i / bytes), rank, i % bytes);
  return wrong;
}

long checked_alltoall(const ibcoll_context_params_t* params, size_t bytes, int* ranks) {
  ibcoll_context_t context;
  *ranks = 0;
  if (ibcoll_context_create(params, &context) != IBCOLL_OK) return failed("ibcoll_context_create");
  *ranks = ibcoll_context_size(context);
  const size_t total = (size_t)*ranks * bytes;
  unsigned char* send = malloc(total);
  unsigned char* recv = calloc(total, 1);
  const long wrong = send != NULL && recv != NULL ? exchange(context, bytes, send, recv) : -1;
  free(send);
  free(recv);
  if (ibcoll_context_destroy(context) != IBCOLL_OK) return failed("ibcoll_context_destroy");
  return wrong;
}
