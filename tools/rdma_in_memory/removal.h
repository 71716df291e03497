// SPDX-License-Identifier: BSD-3-Clause
// The removal of the device, which a process may be given to see: RDMA_IN_MEMORY_REMOVED_AFTER seconds after it was
// opened first, the queue pairs of the process end, calls fail, and an asynchronous event reports it.
#pragma once

namespace ibcoll::rdma_in_memory {

// Of a context: readable when there is an event.
int make_event_descriptor();
// It was removed.
bool is_removed();
// From now on, if it is time.
void remove_if_due();

}  // namespace ibcoll::rdma_in_memory
