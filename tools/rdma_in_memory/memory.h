// SPDX-License-Identifier: BSD-3-Clause
// Memory of this process that its peers reach, and theirs.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "tools/rdma_in_memory/layout.h"

namespace ibcoll::rdma_in_memory {

// Replaces the private pages of this process from `begin` to `end`, which are multiples of the page, by pages of the
// file with the same bytes. What another thread writes there meanwhile may be lost. Returns 0 where all pages are
// the file's now; -1 where some cannot be, as those of files and stacks are: peers reach these by process_vm_writev;
// else an error: ENOMEM, EFAULT.
int put_into_file(uint64_t begin, uint64_t end);
// Pages of this process lie in the file: a child would share them with it.
bool has_pages_in_file();

// Some bytes of one process.
struct Target {
  uint32_t process = 0;
  bool in_file = false;
  uint64_t address = 0;
};

// Finds the `bytes` from `address` on that `key` permits at this queue pair. False: it does not permit them.
bool find_target(uint32_t key, uint64_t address, uint64_t bytes, uint32_t access, const SharedQueuePair& at,
                 Target& target);

// Copies between this process and a target, `offset` bytes after its begin. False: the process is no more.
bool write_to(const Target& target, uint64_t offset, const void* from, size_t bytes);
bool read_from(const Target& target, uint64_t offset, void* to, size_t bytes);

}  // namespace ibcoll::rdma_in_memory
