// SPDX-License-Identifier: BSD-3-Clause
// A module with a small block of thread-local variables, as libucs.so has one.
static _Thread_local struct {
  void* kept;
  char rest[28];
} block;

__attribute__((visibility("default"))) void** thread_local_block(void) { return &block.kept; }
