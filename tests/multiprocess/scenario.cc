// SPDX-License-Identifier: BSD-3-Clause
#include "tests/multiprocess/scenario.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace ibcoll::multiprocess {
namespace {

std::atomic<int> counted{0};
std::atomic<bool> tolerates_deaths{false};
std::atomic<int> noticed{0};
int rank_of_lines = -1;
constexpr int kMostLines = 20;  // the first ones tell the story

}  // namespace

void set_rank_of_lines(int rank) { rank_of_lines = rank; }

void complain(const std::string& what) {
  if (counted.fetch_add(1) < kMostLines) fmt::print(stderr, "rank {}: WRONG: {}\n", rank_of_lines, what);
}

int complaints() { return counted.load(); }

void tolerate_deaths() { tolerates_deaths = true; }

int deaths_noticed() { return noticed.load(); }

bool expect_status(ibcoll_status_t got, ibcoll_status_t wanted, std::string_view call) {
  if (got == IBCOLL_ERR_PEER_FAILED && got != wanted && tolerates_deaths) {
    noticed.fetch_add(1);
    return false;
  }
  return expect(got == wanted, "{}: {}, not {}; the last error: {}", call, ibcoll_status_string(got),
                ibcoll_status_string(wanted), ibcoll_last_error());
}

bool expect_error(ibcoll_status_t got, ibcoll_status_t wanted, std::string_view part_of_text, std::string_view call) {
  if (!expect_status(got, wanted, call)) return false;
  return expect(std::string_view(ibcoll_last_error()).find(part_of_text) != std::string_view::npos,
                "{}: the error does not say '{}': {}", call, part_of_text, ibcoll_last_error());
}

uint64_t counter(ibcoll_context_t context, const std::string& name) {
  std::string text(ibcoll_info_json(context, nullptr, 0) + 4096, '\0');
  ibcoll_info_json(context, text.data(), text.size());
  const std::string key = '"' + name + "\":";
  const size_t at = text.find(key);
  return at == std::string::npos ? 0 : std::strtoull(&text[at + key.size()], nullptr, 10);
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void sleep_seconds(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TeamOwner split(ibcoll_team_t parent, int color, int key) {
  ibcoll_team_t team = nullptr;
  if (!expect_ok(ibcoll_team_split(parent, color, key, &team), "ibcoll_team_split")) return {};
  expect((team == nullptr) == (color < 0), "ibcoll_team_split: color {} gave {} team", color, team ? "a" : "no");
  return TeamOwner(team);
}

}  // namespace ibcoll::multiprocess
