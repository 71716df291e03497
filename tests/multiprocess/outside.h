// SPDX-License-Identifier: BSD-3-Clause
// The messages that ranks of one machine send each other without ibcoll, which they wait outside of: in files.
#pragma once

#include <string>

#include "runtime/include/ibcoll.h"

namespace ibcoll::multiprocess {

class Outside {
 public:
  // Collective over the world: a folder of all ranks. It is rank 0's, which ends last.
  explicit Outside(ibcoll_team_t world);
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;
  ~Outside();

  // One word each.
  void tell(const std::string& what) const;
  // Until it has been notified; an error when it never is.
  void await(const std::string& what) const;
  // Tells it for this rank, and waits for all others.
  void meet(const std::string& where) const;

 private:
  bool heard(const std::string& what) const;

  char folder_[64] = "/tmp/ibcoll-test-XXXXXX";
  int rank_, size_;
};

}  // namespace ibcoll::multiprocess
