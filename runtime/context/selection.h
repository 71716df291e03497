// SPDX-License-Identifier: BSD-3-Clause
// Which algorithm a call gets: the one that the call or a setting forces, else what the tuning file names, else the one
// of lowest predicted cost. docs/design/0005-selection.md.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/collectives/framework/algorithm.h"
#include "runtime/collectives/framework/arguments.h"
#include "runtime/collectives/framework/select.h"
#include "runtime/context/team_profile.h"
#include "runtime/context/tuning.h"

namespace ibcoll {

class Selection {
 public:
  // CONFIG: an algorithm that is forced does not exist. `in_host`: the program that makes the context is an MPI.
  Status read_settings(const Config& config, bool in_host);
  // The same on all ranks.
  void use(Tuning tuning) { tuning_ = std::move(tuning); }

  // Whether receive blocks may overlap.
  Overlap overlap() const noexcept { return overlap_; }
  ibcoll_scheme_t scheme_of(ibcoll_scheme_t scheme) const noexcept {
    return scheme == IBCOLL_SCHEME_AUTO ? default_scheme_ : scheme;
  }
  // Returns what the call, or else the environment, forces. NOT_APPLICABLE: there is no such algorithm.
  Result<Forced> forced(ibcoll_collective_t collective, const char* algorithm) const;
  // Notes in the arguments what depends on settings. NOT_APPLICABLE: what is forced does not apply, and why.
  Result<Choice> choose(const TeamProfile& team, Args& args, const Forced& forced, ibcoll_scheme_t scheme) const;
  // Returns what choose() would return, and why, as JSON.
  Result<std::string> explain(const TeamProfile& team, const Args& args, const Forced& forced,
                              ibcoll_scheme_t scheme) const;

 private:
  const Tuning::Entry* timed(const TeamProfile& team, const Args& args, ibcoll_scheme_t scheme, const Shape& shape,
                             const std::vector<Candidate>& all) const;
  bool needs_steady_model(const Args& args) const noexcept;
  Result<std::vector<Candidate>> candidates_of(const TeamProfile& team, const Args& args, const Forced& forced,
                                               ibcoll_scheme_t scheme, const Shape& shape) const;

  ibcoll_scheme_t default_scheme_ = IBCOLL_SCHEME_AUTO;
  Overlap overlap_ = Overlap::kRefused;
  Weighing weighing_ = Weighing::kMixed;
  bool deterministic_ = false;               // reductions give the same bits in every run
  std::array<Forced, kCollectives> forced_;  // by IBCOLL_<COLLECTIVE>
  Tuning tuning_;                            // what was read from the file
};

}  // namespace ibcoll
