// SPDX-License-Identifier: BSD-3-Clause
#include "tests/multiprocess/outside.h"

#include <filesystem>
#include <fstream>

#include "tests/multiprocess/shared_state.h"

namespace ibcoll::multiprocess {

Outside::Outside(ibcoll_team_t world) : rank_(ibcoll_team_rank(world)), size_(ibcoll_team_size(world)) {
  if (rank_ == 0) expect(::mkdtemp(folder_) != nullptr, "mkdtemp of {}", folder_);
  expect_ok(ibcoll_bcast(world, folder_, sizeof folder_, 0), "bcast of the folder");
}

Outside::~Outside() {
  if (rank_ != 0) tell(fmt::format("rank_{}_ends", rank_));
  if (rank_ != 0) return;
  for (int rank = 1; rank < size_; ++rank) await(fmt::format("rank_{}_ends", rank));
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void Outside::tell(const std::string& what) const { std::ofstream(fmt::format("{}/{}", folder_, what)); }

bool Outside::heard(const std::string& what) const {
  std::error_code ignored;
  return std::filesystem::exists(fmt::format("{}/{}", folder_, what), ignored);
}

void Outside::await(const std::string& what) const {
  expect(multiprocess::await([&] { return heard(what); }), "this rank was never notified: {}", what);
}

void Outside::meet(const std::string& where) const {
  tell(fmt::format("{}_{}", where, rank_));
  for (int rank = 0; rank < size_; ++rank) await(fmt::format("{}_{}", where, rank));
}

}  // namespace ibcoll::multiprocess
