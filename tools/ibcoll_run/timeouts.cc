// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/timeouts.h"

#include <algorithm>
#include <cstdlib>

#include "tools/ibcoll_run/options.h"

namespace ibcoll::run {

Result<Timeouts> chosen_timeouts(bool keeps_going) {
  Timeouts timeouts;
  if (keeps_going) {
    timeouts.agent_silence = Timeouts::kAgentSilenceOfSurvivors;
    timeouts.launcher_silence = Timeouts::kLauncherSilenceOfSurvivors;
  }
  const char* text = std::getenv("IBCOLL_RUN_TIMEOUTS");
  if (text == nullptr) return timeouts;
  const Result<double> seconds = parse_seconds(text);
  if (!seconds.ok()) return error(IBCOLL_ERR_INVALID_ARGUMENT, "IBCOLL_RUN_TIMEOUTS: {}", seconds.status().text());
  for (double* const one : {&timeouts.agent_silence, &timeouts.launcher_silence, &timeouts.authentication,
                            &timeouts.after_kill, &timeouts.name_server, &timeouts.file, &timeouts.pending_signal})
    *one = std::min(*one, seconds.value());
  if (keeps_going) timeouts.launcher_silence = std::min(timeouts.launcher_silence, timeouts.agent_silence * 2 / 3);
  return timeouts;
}

Timeouts timeouts_or_default() {
  const Result<Timeouts> chosen = chosen_timeouts(/*keeps_going=*/false);
  return chosen.ok() ? chosen.value() : Timeouts();
}

}  // namespace ibcoll::run
