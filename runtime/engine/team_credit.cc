// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/team_credit.h"

namespace ibcoll {

bool TeamCredit::wanted(int peer) noexcept {
  Peer* const p = at(peer);
  if (!p) return false;
  p->wanted = true;
  return due(*p);
}

}  // namespace ibcoll
