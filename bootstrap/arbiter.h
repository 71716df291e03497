// SPDX-License-Identifier: BSD-3-Clause
// How the living ranks of a job agree: a launcher that has a connection to every rank decides, in the order in which it
// hears of votes and deaths. So all ranks get one answer, whatever state the connections between them are in.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace ibcoll {

class Arbiter {
 public:
  // A ballot: `round` counts those of the team with this epoch.
  struct Key {
    uint64_t epoch = 0;
    uint32_t round = 0;
    auto operator<=>(const Key&) const = default;
  };
  // The call that votes; the same on all ranks.
  enum class Call : uint32_t { kAgree = 1, kShrink, kForm, kLeave };
  struct Vote {
    Key key;
    Call call = Call::kAgree;
    uint64_t flags = 0;
    const std::vector<int>& members;  // ranks of the job, this one too
    std::string offer;                // for all others; of one length on all ranks
  };
  struct Verdict {
    Key key;
    Status status;           // TIMEOUT, MISMATCH: the same on all members, whenever they vote
    uint64_t number = 0;     // of a verdict that is ok: in this job no other has it
    uint64_t flags = 0;      // the AND of those of all members that are not in `dead`
    std::vector<bool> dead;  // by rank of the job
    std::string offers;      // of all members that are not dead, by rank of the job
  };

  virtual ~Arbiter() = default;
  // A death ends no other rank (ibcoll_run --keep-going).
  virtual bool keeps_going() const = 0;
  // These return at once, or within seconds where the launcher does not read. BOOTSTRAP: it has ended.
  virtual Status vote(const Vote& vote) = 0;
  // This rank cannot reach the other one any more. The launcher ends that, if it has not ended yet.
  virtual Status accuse(int rank) = 0;
  // This rank's deadline has passed: the next verdict comes soon.
  virtual Status withdraw(const Key& key) = 0;
  // The next verdict. None: not yet. BOOTSTRAP: the launcher has ended.
  virtual Result<std::optional<Verdict>> verdict() = 0;
  // Waits until something has come from the launcher, `seconds` at most. May run beside the other functions.
  virtual void wait(double seconds) = 0;
};

}  // namespace ibcoll
