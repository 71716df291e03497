// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/topology.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>

#include "runtime/base/own_cpus.h"
#include "runtime/machine/copy.h"

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

// Version 2: cpu.max holds "max 100000" or "150000 100000". Version 1: two files, with -1 for no limit.
double quota_of_group(const std::filesystem::path& folder) {
  std::string quota;
  double period = 0;
  if (!(std::ifstream(folder / "cpu.max") >> quota >> period)) {
    std::ifstream(folder / "cpu.cfs_quota_us") >> quota;
    std::ifstream(folder / "cpu.cfs_period_us") >> period;
  }
  const double time = std::strtod(quota.c_str(), nullptr);
  return time > 0 && period > 0 ? time / period : kNoQuota;
}

uint64_t cache_bytes(int index, uint64_t unknown) {
  const std::string size =
      first_line(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));  // "1024K"
  const uint64_t kilobytes = std::strtoull(size.c_str(), nullptr, 10);
  return kilobytes > 0 && size.back() == 'K' ? kilobytes << 10 : unknown;
}

// The number of CPUs that any of these ranks may run on.
int cpus_of(const std::vector<CpuShare>& ranks) {
  CpuShare together;
  for (const CpuShare& rank : ranks)
    for (size_t i = 0; i < together.cpus.size(); ++i) together.cpus[i] |= rank.cpus[i];
  int cpus = 0;
  for (const uint64_t bits : together.cpus) cpus += std::popcount(bits);
  return cpus;
}

}  // namespace

// A line of /proc/self/cgroup is "4:cpu,cpuacct:/some/group" in version 1 and "0::/some/group" in version 2. The quotas
// of all groups above hold as well; parts of the path that a container does not see are skipped.
double cgroup_cores(const std::string& root) {
  std::ifstream groups(root + "/proc/self/cgroup");
  double cores = kNoQuota;
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",cpu,") == std::string::npos) continue;
    const std::filesystem::path mount = root + (unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu");
    std::filesystem::path group = std::filesystem::path(line.substr(second + 1)).relative_path();
    for (; !group.empty(); group = group.parent_path()) cores = std::min(cores, quota_of_group(mount / group));
    cores = std::min(cores, quota_of_group(mount));
  }
  return cores;
}

std::string boot_id() { return first_line("/proc/sys/kernel/random/boot_id"); }

// Hosts have the same number for their first network namespace; without a boot id their names tell them apart.
std::string network_identity() {
  std::string machine = boot_id();
  if (machine.empty()) {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    machine = host;
  }
  return fmt::format("{}/{:x}", machine, namespace_of("net"));
}

// The network namespace counts, because the node's segment is handed over on an abstract socket; the pid namespace,
// because single-copy transfers and liveness need pids.
std::string node_identity() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return fmt::format("{}/{}/{:x}/{:x}/{:x}", boot_id(), host, namespace_of("pid"), namespace_of("net"),
                     namespace_of("user"));
}

CpuShare cpu_share() {
  CpuShare share;
  share.quota = cgroup_cores("");
  std::vector<int> cpus = own_cpus();
  if (cpus.empty()) {  // not known: all of the machine
    cpus.resize(static_cast<size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN))));
    std::iota(cpus.begin(), cpus.end(), 0);
  }
  for (const int cpu : cpus) {
    const size_t bit = static_cast<size_t>(cpu) % (64 * share.cpus.size());
    share.cpus[bit / 64] |= uint64_t{1} << bit % 64;
  }
  return share;
}

bool share_one_cpu(const std::vector<CpuShare>& ranks) { return cpus_of(ranks) == 1; }

double ranks_per_core(const std::vector<CpuShare>& ranks) {
  double quota = kNoQuota;
  for (const CpuShare& rank : ranks) quota = std::min(quota, rank.quota);
  const double cores = std::min(static_cast<double>(cpus_of(ranks)), quota);
  return std::max(1.0, static_cast<double>(ranks.size()) / std::max(0.01, cores));
}

uint64_t last_level_cache_bytes() noexcept {
  static const uint64_t bytes = cache_bytes(3, uint64_t{32} << 20);
  return bytes;
}

uint64_t own_cache_bytes() noexcept {
  static const uint64_t bytes = cache_bytes(2, uint64_t{1} << 20);
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
