// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ibcoll::run {

// One series of allgathers among all ranks, without any I/O: which ranks have given their blob in the current round,
// and which never will. The n-th bootstrap that a rank creates takes part in the n-th series.
class AllgatherSeries {
 public:
  // `hosts[i]`: where rank i runs. Outlives the exchange.
  explicit AllgatherSeries(const std::vector<std::string>& hosts) : hosts_(hosts), ranks_(hosts.size()) {}

  // Takes the blob of a rank; all blobs of a round have one length. A text: why the round cannot complete, for all that
  // wait in it.
  std::string give(int rank, std::span<const std::byte> blob);
  // The rank will give nothing more; `why` names it, and the first one counts. A text: why the round that others
  // wait in cannot complete.
  std::string leave(int rank, std::string why);
  // The whole job ends, because of `why`: rounds fail with this reason from now on, not with the ends of ranks.
  void job_ends(std::string why) { job_end_ = std::move(why); }

  bool complete() const { return given_ == static_cast<int>(ranks_.size()); }
  // The blobs in rank order; the next round begins.
  std::shared_ptr<const std::string> take();
  // After a round failed: the ranks that wait in it. A new round begins.
  std::vector<int> take_waiting();

  // Ranks wait in the current round.
  bool waited_for() const { return given_ > 0; }
  // "ranks 3, 5-8 have not come"; in a job of several hosts "ranks 3 on host a, 5-8 on host b have not come".
  std::string missing() const;
  // All ranks have left: the series is over.
  bool deserted() const { return left_ == static_cast<int>(ranks_.size()); }

 private:
  struct Rank {
    bool given = false;
    int left = 0;  // 0: it has not; else its position in the order of leaving
    std::string why;
    std::string blob;  // kept as it came: a round that is not complete costs no more than what ranks sent
  };
  // Why the open round cannot complete: the end of the job, else the first rank that left and has not given.
  std::string verdict() const;
  std::string list_by_host(std::span<const int> ascending) const;

  const std::vector<std::string>& hosts_;
  std::vector<Rank> ranks_;
  int given_ = 0;
  int left_ = 0;
  std::string job_end_;
  int first_giver_ = -1;
  size_t length_ = 0;
};

// "3, 5-8"; at most some, then "and 12 more".
std::string rank_list(std::span<const int> ascending);

}  // namespace ibcoll::run
