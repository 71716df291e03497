// SPDX-License-Identifier: BSD-3-Clause
// Reports what this process unmaps, from the events of UCX (libucm). This project hooks no function itself: of two
// libraries that hook a function, one is no longer notified. MPI libraries and many others use UCX for it, and one
// instance serves all in a process. UCX hooks the C library when the first object of this class asks for events
// (ucx/workarounds/memory_hooks.h).
//
// Seen: munmap, mmap over a mapping, mremap, shmdt, a shrinking heap, madvise that drops pages; called by the program,
// by libraries or by free(). NOT seen: system calls made without the C library, by dlclose() say; ftruncate and
// fallocate on a mapped file.
#pragma once

#include <memory>

#include "runtime/base/status.h"
#include "runtime/registration_cache/hooked_function.h"
#include "runtime/registration_cache/unmap_queue.h"

namespace ibcoll {

class MemoryEvents {
 public:
  // Pushes to `queue`, before the pages go, until the object is destroyed. Loads UCX unless it is loaded already, and
  // tries whether events do come. UNSUPPORTED: the text says why they do not. With UCX before 1.15 that is so unless
  // another user of UCX in the process has asked for events before, or the user has set UCX_MEM_EVENTS: else the
  // program's mremap() would suffer.
  // In host mode UCX must have patched munmap() for the host already.
  static Result<std::unique_ptr<MemoryEvents>> start(UnmapQueue& queue, bool in_host = false);
  ~MemoryEvents();
  MemoryEvents(const MemoryEvents&) = delete;
  MemoryEvents& operator=(const MemoryEvents&) = delete;

  // False: some library has patched munmap() since, so that events may not come any more. A comparison of 16 bytes.
  bool intact() const noexcept { return munmap_.unchanged(); }

 private:
  struct Functions;
  class Subscription;
  MemoryEvents(std::unique_ptr<Subscription> subscription, const HookedFunction& munmap);

  std::unique_ptr<Subscription> subscription_;
  HookedFunction munmap_;
};

}  // namespace ibcoll
