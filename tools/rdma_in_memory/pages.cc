// SPDX-License-Identifier: BSD-3-Clause
// Registration: the pages of a buffer become pages of the file, in place.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/rdma_in_memory/file.h"
#include "tools/rdma_in_memory/memory.h"

namespace ibcoll::rdma_in_memory {
namespace {

std::atomic<bool> pages_in_file{false};

// A part of the address space, as the kernel lists it.
struct Mapping {
  uint64_t begin, end, offset;
  bool of_this_file, may_move;  // may_move: nobody else has these pages
};

Mapping mapping_of(const char* line, uint64_t begin, uint64_t end) {
  unsigned long from = 0, to = 0, offset = 0, number = 0;
  unsigned major = 0, minor = 0;
  char rights[5] = "", name[16] = "";
  std::sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %15s", &from, &to, rights, &offset, &major, &minor, &number, name);
  Mapping found{std::max<uint64_t>(from, begin), std::min<uint64_t>(to, end), 0, false, false};
  found.offset = offset + (found.begin - from);
  found.of_this_file = File::get().is_this(number, makedev(major, minor));
  const bool writable = rights[0] == 'r' && rights[1] == 'w';
  found.may_move = writable && (rights[3] == 'p' || found.of_this_file) && std::strcmp(name, "[stack]") != 0;
  return found;
}

// Those between begin and end. Complete before anything is replaced: the list may lie in the pages to replace.
bool read_mappings(uint64_t begin, uint64_t end, std::vector<Mapping>& list) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/maps", "re"), std::fclose);
  if (!file) return false;
  char line[1024];
  while (std::fgets(line, sizeof line, file.get())) {
    unsigned long from = 0, to = 0;
    if (std::sscanf(line, "%lx-%lx ", &from, &to) == 2 && to > begin && from < end)
      list.push_back(mapping_of(line, begin, end));
  }
  return true;
}

int replace(const Mapping& old, uint64_t offset) {
  const uint64_t bytes = old.end - old.begin;
  for (uint64_t done = 0; done < bytes;) {
    const long written =
        ::syscall(SYS_pwrite64, File::get().descriptor(), old.begin + done, bytes - done, offset + done);
    if (written <= 0) return written < 0 && errno == EFAULT ? EFAULT : ENOMEM;
    done += static_cast<uint64_t>(written);
  }
  void* const at =
      map_memory(reinterpret_cast<void*>(old.begin), bytes, MAP_SHARED | MAP_FIXED, File::get().descriptor(), offset);
  return at == MAP_FAILED ? ENOMEM : 0;
}

}  // namespace

int put_into_file(uint64_t begin, uint64_t end) {
  static std::mutex mutex;
  const std::lock_guard guard(mutex);
  std::vector<Mapping> list;
  list.reserve(64);
  if (!read_mappings(begin, end, list)) return errno == EMFILE || errno == ENFILE ? ENOMEM : -1;
  uint64_t next = begin;
  bool all = true;
  for (const Mapping& one : list) {
    if (one.begin != next) return EFAULT;
    next = one.end;
    const uint64_t offset = window_of(File::get().process(), one.begin);
    if (one.of_this_file && one.offset == offset) continue;
    all = all && one.may_move;
    if (!one.may_move) continue;
    if (const int code = replace(one, offset); code != 0) return code;
    pages_in_file.store(true);
  }
  if (next != end) return EFAULT;
  return all ? 0 : -1;
}

bool has_pages_in_file() { return pages_in_file.load(); }

}  // namespace ibcoll::rdma_in_memory
