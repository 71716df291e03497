// SPDX-License-Identifier: BSD-3-Clause
// The kernel moves some memory only for the process that has it mapped, not for another one (process_vm_readv): pages
// of a device, rings of perf_event, memfd_secret. That call fails as it does for memory that is not there at all.
#pragma once

#include "runtime/base/buffer.h"

namespace ibcoll {

enum class Access { kRead, kWrite };

// The first byte of the memory that this process itself cannot read, or write; nullptr: there is none. Changes
// nothing. A system call for each page: not for calls that go well.
const std::byte* first_inaccessible(ConstBytes memory, Access access) noexcept;

}  // namespace ibcoll
