// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/allgather_series.h"

#include <fmt/format.h>

#include <algorithm>

#include "bootstrap/rendezvous_protocol.h"

namespace ibcoll::run {

std::string AllgatherSeries::give(int rank, std::span<const std::byte> blob) {
  Rank& giver = ranks_[static_cast<size_t>(rank)];
  if (giver.given) return fmt::format("rank {} gave two blobs to one exchange", rank);
  if (given_ == 0) {
    length_ = blob.size();
    first_giver_ = rank;
    if (length_ * ranks_.size() > rendezvous::kMaxGathered) {
      return fmt::format("an exchange of {} ranks with {} bytes each is above {} bytes", ranks_.size(), length_,
                         rendezvous::kMaxGathered);
    }
  }
  giver.given = true;
  ++given_;
  if (blob.size() != length_) {
    return fmt::format("rank {} gave {} bytes to an exchange where rank {} gave {}; do all ranks run the same program?",
                       rank, blob.size(), first_giver_, length_);
  }
  giver.blob.assign(reinterpret_cast<const char*>(blob.data()), blob.size());
  return verdict();
}

std::string AllgatherSeries::leave(int rank, std::string why) {
  Rank& leaver = ranks_[static_cast<size_t>(rank)];
  if (leaver.left == 0) {
    leaver.left = ++left_;
    leaver.why = std::move(why);
  }
  return verdict();
}

std::string AllgatherSeries::verdict() const {
  if (given_ == 0 || left_ == 0) return {};
  const Rank* first = nullptr;
  for (const Rank& rank : ranks_) {
    if (rank.left > 0 && !rank.given && (first == nullptr || rank.left < first->left)) first = &rank;
  }
  if (first == nullptr) return {};
  return job_end_.empty() ? first->why + " and took no part in this exchange" : job_end_;
}

std::shared_ptr<const std::string> AllgatherSeries::take() {
  std::string blobs;
  blobs.reserve(length_ * ranks_.size());
  for (const Rank& rank : ranks_) blobs += rank.blob;
  take_waiting();
  return std::make_shared<const std::string>(std::move(blobs));
}

std::vector<int> AllgatherSeries::take_waiting() {
  std::vector<int> waiting;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].given) waiting.push_back(static_cast<int>(i));
    ranks_[i].given = false;
    std::string().swap(ranks_[i].blob);
  }
  given_ = 0;
  return waiting;
}

std::string AllgatherSeries::missing() const {
  std::vector<int> absent;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (!ranks_[i].given) absent.push_back(static_cast<int>(i));
  }
  const bool one_host = std::equal(hosts_.begin() + 1, hosts_.end(), hosts_.begin());
  return fmt::format("{} {} {} not come", absent.size() == 1 ? "rank" : "ranks",
                     one_host ? rank_list(absent) : list_by_host(absent), absent.size() == 1 ? "has" : "have");
}

// "3 on host a, 5-8 on host b"; at most some hosts, then "and 12 more".
std::string AllgatherSeries::list_by_host(std::span<const int> ascending) const {
  constexpr int kMostHosts = 8;
  std::string text;
  int listed = 0;
  while (!ascending.empty()) {
    if (++listed > kMostHosts) return fmt::format("{} and {} more", text, ascending.size());
    const std::string& host = hosts_[static_cast<size_t>(ascending.front())];
    const auto end = std::find_if(ascending.begin(), ascending.end(),
                                  [&](int rank) { return hosts_[static_cast<size_t>(rank)] != host; });
    const auto count = static_cast<size_t>(end - ascending.begin());
    text += fmt::format("{}{} on host {}", text.empty() ? "" : ", ", rank_list(ascending.first(count)), host);
    ascending = ascending.subspan(count);
  }
  return text;
}

std::string rank_list(std::span<const int> ascending) {
  constexpr int kMostRuns = 16;
  std::string text;
  int runs = 0;
  for (size_t i = 0; i < ascending.size();) {
    size_t last = i;
    while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
    if (++runs > kMostRuns) return fmt::format("{} and {} more", text, ascending.size() - i);
    text += text.empty() ? "" : ", ";
    text += last == i ? fmt::format("{}", ascending[i]) : fmt::format("{}-{}", ascending[i], ascending[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace ibcoll::run
