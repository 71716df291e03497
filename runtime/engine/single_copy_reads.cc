// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/single_copy_reads.h"

#include <algorithm>

#include "runtime/engine/team.h"

namespace ibcoll {

ConstBytes SingleCopyReads::lent(uint64_t address, uint64_t bytes) const noexcept {
  for (size_t i = 0; i < std::min<size_t>(lent_count_, lent_.size()); ++i) {
    const uint64_t at = address - reinterpret_cast<uint64_t>(lent_[i].data());  // huge: before it
    if (at <= lent_[i].size() && bytes <= lent_[i].size() - at) return lent_[i].subspan(at, bytes);
  }
  return {};
}

// A rank whose team has failed reports that in the window before it uses its memory again. So nothing is read after
// that report, and what was read counts only if there is no report yet when the read has ended.
SingleCopyReads::Outcome SingleCopyReads::read(int local, uint64_t address, Bytes into) noexcept {
  NodeWindow& window = *team_.window();
  int failure = window.presence().failure_of(local);
  if (failure == 0 && !into.empty()) {
    Status status = window.memory().node().read(window.job_rank(local), address, into);
    if (status.code() == IBCOLL_ERR_UNSUPPORTED) return Outcome::kRefused;
    if (!status.ok()) {
      team_.health().suspect(std::move(status));
      return Outcome::kFailed;
    }
    window.set_unconfirmed_reads(true);
    failure = window.presence().failure_of(local);
  }
  if (failure == 0) return Outcome::kRead;
  team_.health().suspect(error(static_cast<ibcoll_status_t>(failure),
                               "rank {}: rank {} failed while its memory was read", team_.rank(),
                               team_.members().team_rank(window.job_rank(local))));
  return Outcome::kFailed;
}

// When a process has ended, another one may have got its number and be read in its place.
bool SingleCopyReads::confirm() noexcept {
  team_.window()->set_unconfirmed_reads(false);
  Status status = team_.window()->memory().node().confirm();
  if (status.ok()) return true;
  team_.health().suspect(std::move(status));
  return false;
}

}  // namespace ibcoll
