// SPDX-License-Identifier: BSD-3-Clause
// One copy between the private memories of two processes (process_vm_readv, process_vm_writev), where the kernel lets
// them: ptrace scope, seccomp and user namespaces may refuse, so each pair tries at start.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>

#include "runtime/base/status.h"

namespace ibcoll::shm {

// `address` of process `pid` -> into. The error names pid, range and errno; a part may have been moved before.
// PEER_FAILED: the process has ended, or is about to and has returned its memory already. UNSUPPORTED: the kernel
// refuses the call, as after one of the two has changed its user, or has forbidden reads of its memory
// (PR_SET_DUMPABLE). SYSTEM: it does not move this memory (runtime/machine/memory_access.h), but may move other memory.
Status read_process(pid_t pid, uint64_t address, std::span<std::byte> into) noexcept;
// from -> `address` of process `pid`.
Status write_process(pid_t pid, uint64_t address, std::span<const std::byte> from) noexcept;

// Every rank publishes the address of this word. The others try both calls on it, and leave it unchanged.
const uint64_t* probe_word() noexcept;
bool may_copy_process(pid_t pid, uint64_t probe_address) noexcept;

}  // namespace ibcoll::shm
