// SPDX-License-Identifier: BSD-3-Clause
// The base that the programs of this folder share: one rank of a test job, and checks that count what is wrong.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/include/ibcoll.h"

namespace ibcoll::multiprocess {

struct Rank {
  ibcoll_context_t context = nullptr;
  ibcoll_team_t world = nullptr;
  int rank = -1;
  int size = 0;
};

struct Scenario {
  const char* name;
  void (*run)(Rank& self);
  bool joins = true;  // false: `self` has no context, the scenario makes its own
};

// Each file of scenarios gives its own.
std::span<const Scenario> request_scenarios();
std::span<const Scenario> waiting_scenarios();
std::span<const Scenario> team_scenarios();
std::span<const Scenario> member_scenarios();
std::span<const Scenario> mapped_memory_scenarios();
std::span<const Scenario> data_scenarios();
std::span<const Scenario> reduction_scenarios();
std::span<const Scenario> user_operation_scenarios();
std::span<const Scenario> floating_point_scenarios();
std::span<const Scenario> context_scenarios();
std::span<const Scenario> argument_scenarios();
std::span<const Scenario> mismatch_scenarios();
std::span<const Scenario> random_scenarios();

// How lines about this rank begin.
void set_rank_of_lines(int rank);
// Writes a line and counts a failure.
void complain(const std::string& what);
int complaints();

// False, counted and printed, when `right` is not.
template <typename... Values>
bool expect(bool right, fmt::format_string<Values...> what, Values&&... values) {
  if (!right) complain(fmt::format(what, std::forward<Values>(values)...));
  return right;
}

// From now on a call that returns PEER_FAILED is no complaint, but counted here. For jobs in which a rank dies.
void tolerate_deaths();
int deaths_noticed();

// The call returned `wanted`; else prints what it returned and why.
bool expect_status(ibcoll_status_t got, ibcoll_status_t wanted, std::string_view call);
inline bool expect_ok(ibcoll_status_t got, std::string_view call) { return expect_status(got, IBCOLL_OK, call); }
// ... and ibcoll_last_error() has this in it.
bool expect_error(ibcoll_status_t got, ibcoll_status_t wanted, std::string_view part_of_text, std::string_view call);

// A number of this rank that ibcoll_info_json shows, by its name there; 0: it shows none.
uint64_t counter(ibcoll_context_t context, const std::string& name);

double seconds_now();
void sleep_seconds(double seconds);

// Frees what a scenario makes, complaining when that fails.
class TeamOwner {
 public:
  TeamOwner() = default;
  explicit TeamOwner(ibcoll_team_t team) : team_(team) {}
  TeamOwner(TeamOwner&& other) noexcept : team_(std::exchange(other.team_, nullptr)) {}
  TeamOwner& operator=(TeamOwner&& other) noexcept {
    std::swap(team_, other.team_);
    return *this;
  }
  ~TeamOwner() {
    if (team_) expect_ok(ibcoll_team_free(team_), "ibcoll_team_free");
  }
  ibcoll_team_t get() const { return team_; }

 private:
  ibcoll_team_t team_ = nullptr;
};

// ibcoll_team_split that must work; empty for a negative color.
TeamOwner split(ibcoll_team_t parent, int color, int key);

}  // namespace ibcoll::multiprocess
