// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <new>

namespace ibcoll {
namespace {

constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kUnlimited = uint64_t{1} << 60;  // version 1 says a number near 2^63 for "no limit"

// `otherwise`: the file is not there, or says "max".
uint64_t number_in(const std::string& file, uint64_t otherwise) {
  uint64_t number = 0;
  return std::ifstream(file) >> number ? number : otherwise;
}

// The number in the line "KEY NUMBER" of a file; 0 where there is no such line.
uint64_t number_of(const std::string& file, const std::string& key) {
  std::ifstream lines(file);
  std::string word;
  for (uint64_t number = 0; lines >> word >> number;)
    if (word == key) return number;
  return 0;
}

}  // namespace

uint64_t memory_left_in(const std::string& root, const std::string& path, bool version_2) {
  uint64_t least = kNone;
  for (size_t length = path == "/" ? 0 : path.size();; length = path.rfind('/', length - 1)) {
    std::string folder = root;
    folder.append(path, 0, length);
    const uint64_t limit = number_in(folder + (version_2 ? "/memory.max" : "/memory.limit_in_bytes"), kNone);
    if (limit < kUnlimited) {
      const uint64_t used = number_in(folder + (version_2 ? "/memory.current" : "/memory.usage_in_bytes"), 0);
      const uint64_t idle = number_of(folder + "/memory.stat", version_2 ? "inactive_file" : "total_inactive_file");
      const uint64_t taken = used - std::min(used, idle);
      least = std::min(least, limit - std::min(limit, taken));
    }
    if (length == 0) return least;
  }
}

uint64_t address_space_left() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNone;
  const uint64_t mapped =
      number_in("/proc/self/statm", 0) * static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PAGESIZE)));
  return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, mapped);
}

static uint64_t least_left() {
  std::ifstream groups("/proc/self/cgroup");
  uint64_t least = kNone;
  // "0::/job/step" of version 2, "7:memory:/job/step" of version 1.
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || second + 1 == line.size()) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (line.compare(0, 3, "0::") == 0)
      least = std::min(least, memory_left_in("/sys/fs/cgroup", path, true));
    else if (controllers.find("memory") != std::string::npos)
      least = std::min(least, memory_left_in("/sys/fs/cgroup/memory", path, false));
  }
  return least;
}

uint64_t memory_left() noexcept {
  try {
    return least_left();
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

}  // namespace ibcoll
