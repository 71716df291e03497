// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/patience.h"

#include <algorithm>
#include <cstdlib>

#include "tools/ibcoll_run/options.h"

namespace ibcoll::run {

Result<Patience> chosen_patience() {
  Patience patience;
  const char* text = std::getenv("IBCOLL_RUN_PATIENCE");
  if (text == nullptr) return patience;
  const Result<double> seconds = parse_seconds(text);
  if (!seconds.ok()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "IBCOLL_RUN_PATIENCE: {}", seconds.status().text());
  for (double* const one :
       {&patience.with_agent, &patience.with_launcher, &patience.with_stranger, &patience.with_the_end,
        &patience.with_name_server, &patience.with_file, &patience.with_itself})
    *one = std::min(*one, seconds.value());
  return patience;
}

Patience patience_or_default() {
  const Result<Patience> chosen = chosen_patience();
  return chosen.ok() ? chosen.value() : Patience();
}

}  // namespace ibcoll::run
