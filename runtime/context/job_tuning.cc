// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/job_tuning.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/base/log.h"

namespace ibcoll {

void JobTuning::read(const Config& config, const JoinedJob& job, int ranks) {
  identity_ = {ibcoll_version_string(), hardware_identity(), job.net ? job.net->name() : "shm",
               fmt::format("{} ranks on {} nodes, {:.3g} a core", ranks, job.node_count, job.ranks_per_core)};
  path_ = tuning_path(config.text("IBCOLL_TUNING"), identity_);
  state_ = path_.empty() ? "off" : "there is no such file";
  if (path_.empty()) return;
  Result<std::string> text = read_tuning(path_);
  if (!text.ok()) {
    log(LogLevel::kWarning, "timed choices are not used: {} (IBCOLL_TUNING=off turns this warning off)",
        text.status().text());
    state_ = text.status().text();
    return;
  }
  if (text->empty()) return;
  const Result<Tuning> known = Tuning::parse(text.value(), &identity_);
  state_ = known.ok() ? fmt::format("{} choices", known->size()) : std::string(known.status().text());
  if (known.ok())
    text_ = std::move(text.value());
  else
    log(LogLevel::kWarning, "timed choices are not used: {} {}; delete the file, or set IBCOLL_TUNING to another one",
        path_, known.status().text());
}

Json JobTuning::json(const Config& config) const {
  return {{"file", path_},
          {"state", state_},
          {"in_cache", config.text("IBCOLL_TUNING").empty()},
          {"job", identity_.json()}};
}

}  // namespace ibcoll
