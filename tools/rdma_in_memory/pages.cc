// SPDX-License-Identifier: BSD-3-Clause
// Registration: the pages of a buffer become pages of the file, in place.
#include <sys/ioctl.h>
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

// PROCMAP_QUERY of Linux 6.11: one mapping, at once. Reading the whole list takes as long as copying 100 KB.
struct Query {
  uint64_t bytes, flags, address;
  uint64_t begin, end, rights, page_bytes, offset, number;
  uint32_t major, minor, name_bytes, build_id_bytes;
  uint64_t name, build_id;
};
static_assert(sizeof(Query) == 104);
constexpr unsigned long kQuery = _IOWR('f', 17, Query);
constexpr uint64_t kReads = 1, kWrites = 2, kShared = 8, kThatOrTheNext = 16;

Mapping mapping_of(const Query& found, const char* name, uint64_t begin, uint64_t end) {
  Mapping one{std::max(found.begin, begin), std::min(found.end, end), 0, false, false};
  one.offset = found.offset + (one.begin - found.begin);
  one.of_this_file = File::get().is_this(found.number, makedev(found.major, found.minor));
  const bool writable = (found.rights & kReads) != 0 && (found.rights & kWrites) != 0;
  one.may_move = writable && ((found.rights & kShared) == 0 || one.of_this_file) && std::strcmp(name, "[stack]") != 0;
  return one;
}

// False: this kernel does not answer.
bool ask_for_mappings(uint64_t begin, uint64_t end, std::vector<Mapping>& list) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/maps", "re"), std::fclose);
  for (uint64_t at = begin; file && at < end;) {
    char name[256] = "";
    Query query{};
    query.bytes = sizeof query;
    query.flags = kThatOrTheNext;
    query.address = at;
    query.name_bytes = sizeof name;
    query.name = reinterpret_cast<uint64_t>(name);
    if (::ioctl(::fileno(file.get()), kQuery, &query) != 0) {
      if (errno == ENOENT) return true;  // there are no more
      list.clear();
      return false;
    }
    if (query.begin < end) list.push_back(mapping_of(query, name, begin, end));
    at = query.end;
  }
  return file != nullptr;
}

Mapping mapping_of(const char* line, uint64_t begin, uint64_t end) {
  unsigned long from = 0, to = 0, offset = 0, number = 0;
  unsigned major = 0, minor = 0;
  char rights[5] = "", name[16] = "";
  std::sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %15s", &from, &to, rights, &offset, &major, &minor, &number, name);
  const uint64_t granted =
      (rights[0] == 'r' ? kReads : 0) | (rights[1] == 'w' ? kWrites : 0) | (rights[3] == 's' ? kShared : 0);
  return mapping_of({0, 0, 0, from, to, granted, 0, offset, number, major, minor, 0, 0, 0, 0}, name, begin, end);
}

// Those between begin and end. Complete before anything is replaced: the list may lie in the pages to replace.
bool read_mappings(uint64_t begin, uint64_t end, std::vector<Mapping>& list) {
  if (ask_for_mappings(begin, end, list)) return true;
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
