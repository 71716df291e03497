// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_info/rank_facts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/base/own_cpus.h"
#include "tools/ibcoll_info/text_tree.h"
#include "tools/own_calls.h"

namespace ibcoll::info {
namespace {

using nlohmann::json;

std::string host_name() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

uint64_t private_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  uint64_t sum = 0;
  for (std::string line; std::getline(file, line);) {
    for (const char* name : {"Private_Clean:", "Private_Dirty:"}) {
      if (line.starts_with(name)) sum += std::strtoull(line.c_str() + std::string(name).size(), nullptr, 10) * 1024;
    }
  }
  return sum;
}

bool run(ibcoll_team_t team, const ibcoll_collective_args_t& args, const char* what, std::string& failure) {
  const ibcoll_status_t status = run_blocking(team, args);
  if (status != IBCOLL_OK) failure = fmt::format("{}: {}", what, ibcoll_last_error());
  return status == IBCOLL_OK;
}

}  // namespace

json own_facts(int rank) {
  return {{"rank", rank},
          {"host", host_name()},
          {"pid", ::getpid()},
          {"cores", own_cpus()},
          {"private_bytes", private_bytes()}};
}

bool gather_facts(ibcoll_team_t team, json& ranks, std::string& failure) {
  const std::string mine = own_facts(ibcoll_team_rank(team)).dump(-1, ' ', false, json::error_handler_t::replace);
  const auto size = static_cast<size_t>(ibcoll_team_size(team));
  const uint64_t length = mine.size();
  std::vector<uint64_t> lengths(size), offsets(size, 0);
  ibcoll_collective_args_t args = own_call(IBCOLL_ALLGATHER, &length, lengths.data());
  args.bytes = sizeof length;
  if (!run(team, args, "lengths of rank facts", failure)) return false;
  for (size_t i = 1; i < size; ++i) offsets[i] = offsets[i - 1] + lengths[i - 1];
  std::string all(offsets.back() + lengths.back(), '\0');
  args = own_call(IBCOLL_ALLGATHERV, mine.data(), all.data());
  args.recv_counts = lengths.data();
  args.recv_displacements = offsets.data();
  if (!run(team, args, "rank facts", failure)) return false;
  ranks = json::array();
  for (size_t i = 0; i < size; ++i) ranks.push_back(json::parse(all.substr(offsets[i], lengths[i])));
  return true;
}

std::string facts_text(const json& ranks) {
  std::string text = fmt::format("  {:>5}  {:<20} {:>8}  {:>10}  {}\n", "rank", "host", "pid", "private", "cores");
  for (const json& rank : ranks) {
    std::string cores = text_tree({{"cores", rank["cores"]}}, 0);
    cores = cores.substr(cores.find(' ') + 1);
    text +=
        fmt::format("  {:>5}  {:<20} {:>8}  {:>7.1f} MB  {}", rank["rank"].get<int>(), rank["host"].get<std::string>(),
                    rank["pid"].get<int>(), rank["private_bytes"].get<double>() / 1048576, cores);
  }
  return text;
}

}  // namespace ibcoll::info
