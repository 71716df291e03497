// SPDX-License-Identifier: BSD-3-Clause
// A kernel, or a sandbox, without pidfds: from now on pidfd_open() fails in this process with ENOSYS.
#pragma once

namespace ibcoll::conformance {

// Cannot be undone. Ends the process when it cannot be done.
void refuse_pidfds();

}  // namespace ibcoll::conformance
