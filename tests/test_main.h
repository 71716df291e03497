// SPDX-License-Identifier: BSD-3-Clause
// main() of the test programs: a test during which the runtime writes an error line fails, unless it said so before. An
// abort() says where it was called.
#pragma once

namespace ibcoll {

// For the test that calls it: error lines are part of what it provokes.
void expect_error_lines();

}  // namespace ibcoll
