// SPDX-License-Identifier: BSD-3-Clause
// In the place of otf2.cc, where the library is not there.
#include "tools/traces/trace.h"

namespace ibcoll::tracing {

Result<std::vector<RankTrace>> read_otf2(const std::string& path) {
  return error(IBCOLL_ERR_UNSUPPORTED,
               "{}: this ibcoll was built without OTF2; install libopen-trace-format2-dev and build it again", path);
}

}  // namespace ibcoll::tracing
