// SPDX-License-Identifier: BSD-3-Clause
// The tuning file in a job. Rank 0 alone reads it, and the job sends its text to all ranks, so that all choose alike.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/config.h"
#include "runtime/context/join.h"
#include "runtime/context/tuning.h"

namespace ibcoll {

class JobTuning {
 public:
  // On rank 0, of a job of several ranks. A problem with the file is logged in one line, and the job continues without
  // it.
  void read(const Config& config, const JoinedJob& job, int ranks);
  // The text that the other ranks have to get; empty on them.
  const std::string& text() const noexcept { return text_; }
  // For ibcoll_info.
  Json json(const Config& config) const;

 private:
  Tuning::Identity identity_;  // of this job
  std::string path_;           // empty: nothing is read
  std::string state_;          // what was found there
  std::string text_;
};

}  // namespace ibcoll
