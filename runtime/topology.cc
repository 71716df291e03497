// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/topology.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <map>

#include "runtime/copy.h"

namespace ibcoll {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

uint64_t namespace_of(const char* name) {
  struct stat about {};
  return ::stat(fmt::format("/proc/self/ns/{}", name).c_str(), &about) == 0 ? about.st_ino : 0;
}

// cgroup v2: "max 100000" or "150000 100000" in the group's cpu.max.
double cgroup_cores() {
  std::ifstream groups("/proc/self/cgroup");
  std::string line, path;
  while (std::getline(groups, line))
    if (line.starts_with("0::")) path = line.substr(3);
  std::ifstream limit("/sys/fs/cgroup" + path + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(limit >> quota >> period) || quota == "max" || period <= 0) return 1e9;
  return std::strtod(quota.c_str(), nullptr) / period;
}

}  // namespace

// The network namespace counts, because the node's segment is handed over on an abstract socket; the pid namespace,
// because single-copy transfers and liveness need pids.
std::string node_identity() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return fmt::format("{}/{}/{:x}/{:x}/{:x}", first_line("/proc/sys/kernel/random/boot_id"), host, namespace_of("pid"),
                     namespace_of("net"), namespace_of("user"));
}

CpuShare cpu_share() {
  CpuShare share;
  share.quota = cgroup_cores();
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return share;
  for (size_t cpu = 0; cpu < 64 * share.cpus.size(); ++cpu)
    if (CPU_ISSET(cpu, &allowed)) share.cpus[cpu / 64] |= uint64_t{1} << cpu % 64;
  return share;
}

double ranks_per_core(const std::vector<CpuShare>& ranks) {
  CpuShare together;
  for (const CpuShare& rank : ranks) {
    together.quota = std::min(together.quota, rank.quota);
    for (size_t i = 0; i < together.cpus.size(); ++i) together.cpus[i] |= rank.cpus[i];
  }
  double cores = 0;
  for (const uint64_t bits : together.cpus) cores += std::popcount(bits);
  return std::max(1.0, static_cast<double>(ranks.size()) / std::max(0.01, std::min(cores, together.quota)));
}

uint64_t last_level_cache_bytes() noexcept {
  static const uint64_t bytes = [] {
    const std::string size = first_line("/sys/devices/system/cpu/cpu0/cache/index3/size");  // "32768K"
    const uint64_t kilobytes = std::strtoull(size.c_str(), nullptr, 10);
    return kilobytes > 0 && size.back() == 'K' ? kilobytes << 10 : uint64_t{32} << 20;
  }();
  return bytes;
}

std::vector<int> number_nodes(const std::vector<std::string>& identities) {
  std::map<std::string, int> numbers;
  std::vector<int> nodes;
  nodes.reserve(identities.size());
  for (const std::string& identity : identities)
    nodes.push_back(numbers.try_emplace(identity, static_cast<int>(numbers.size())).first->second);
  return nodes;
}

}  // namespace ibcoll
