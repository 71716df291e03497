// SPDX-License-Identifier: BSD-3-Clause
// The cost of combining operands on a rank, timed when the job starts. Where processors compute slowly, as emulated
// ones do, it pays earlier that ranks share the work and send each other results, instead of each combining everything.
#pragma once

namespace ibcoll {

// Microseconds per byte of a sum of doubles in the caches, rounded down to a power of two, so that the same machine gives
// the same value in most runs, and processors that combine about as fast as they copy all count as such. Takes as long
// as 40 KB are combined.
double time_combining_us_per_byte();

}  // namespace ibcoll
