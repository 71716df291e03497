// SPDX-License-Identifier: BSD-3-Clause
// What measures that call ibcoll have in common.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "ibcoll.h"

namespace ibcoll::perf {

// A failure ends the program: the others hear of it through the launcher.
inline void must(ibcoll_status_t status, const char* what) {
  if (status == IBCOLL_OK) return;
  std::fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, ibcoll_last_error());
  std::exit(1);
}

// The largest of all ranks' values, on all ranks.
inline double largest(ibcoll_team_t team, double value) {
  double result = 0;
  must(ibcoll_allreduce(team, &value, &result, 1, IBCOLL_DOUBLE, IBCOLL_MAX), "ibcoll_allreduce");
  return result;
}

}  // namespace ibcoll::perf
