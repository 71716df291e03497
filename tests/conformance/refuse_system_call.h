// SPDX-License-Identifier: BSD-3-Clause
// A kernel or a sandbox that refuses a system call.
#pragma once

namespace ibcoll::conformance {

// From now on the call of this number (SYS_...) fails in this process with ENOSYS; that cannot be undone. Ends the
// process when it cannot be done.
void refuse_system_call(unsigned number);

}  // namespace ibcoll::conformance
