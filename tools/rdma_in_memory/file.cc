// SPDX-License-Identifier: BSD-3-Clause
#include "tools/rdma_in_memory/file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ibcoll::rdma_in_memory {
namespace {

constexpr off_t kLocks = off_t{1} << 61;  // where the file has no bytes: locks of processes
constexpr off_t kLength = off_t{1} << 60;

bool complain(const char* path, const char* advice) {
  std::fprintf(stderr, "RDMA device in memory: RDMA_IN_MEMORY=%s: %s; %s\n", path, std::strerror(errno), advice);
  return false;
}

}  // namespace

File* File::only_ = nullptr;

void* map_memory(void* address, size_t bytes, int flags, int descriptor, uint64_t offset) {
  return reinterpret_cast<void*>(
      ::syscall(SYS_mmap, address, bytes, PROT_READ | PROT_WRITE, flags, descriptor, offset));
}

bool File::open() {
  static std::mutex mutex;
  const std::lock_guard guard(mutex);
  if (only_) return true;
  const char* const path = std::getenv("RDMA_IN_MEMORY");
  if (path == nullptr || *path == '\0') return false;
  static File file;
  if (!file.open_at(path)) return false;
  only_ = &file;
  static const int once = ::pthread_atfork(nullptr, nullptr, [] {
    if (only_) only_->forget_after_fork();
  });
  static_cast<void>(once);
  return true;
}

bool File::open_at(const char* path) {
  descriptor_ = ::open(path, O_RDWR | O_CLOEXEC);
  if (descriptor_ < 0) {
    return complain(path, errno == EACCES || errno == EPERM ? "the device belongs to the user who started ibcoll_run"
                                                            : "has the ibcoll_run that made the device ended?");
  }
  struct stat about {};
  ::fstat(descriptor_, &about);
  number_ = about.st_ino;
  device_ = about.st_dev;
  if (::ftruncate(descriptor_, kLength) != 0) return complain(path, "it is a file of tmpfs, or one of memfd_create");
  void* const memory = map_memory(nullptr, sizeof(Layout), MAP_SHARED | MAP_NORESERVE, descriptor_, 0);
  if (memory == MAP_FAILED) return complain(path, "the address space is used up (ulimit -v)");
  layout_ = static_cast<Layout*>(memory);
  if (join()) return true;
  complain(path, "1023 processes, or all that the kernel has locks for, have used this device");
  ::munmap(memory, sizeof(Layout));
  return false;
}

bool File::join() {
  uint64_t none = 0;
  layout_->end.compare_exchange_strong(none, (sizeof(Layout) + kPage - 1) / kPage * kPage);
  const uint32_t process = layout_->processes.fetch_add(1) + 1;
  if (process >= kProcesses) {
    errno = EUSERS;
    return false;
  }
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_start = kLocks + process;
  lock.l_len = 1;
  if (::fcntl(descriptor_, F_SETLK, &lock) != 0) return false;
  // Memory that cannot lie in the file is reached by process_vm_writev, which Yama permits to ancestors only.
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  process_ = process;
  layout_->process[process].pid.store(::getpid());
  return true;
}

// The child has the mappings, and another process's number.
void File::forget_after_fork() { only_ = nullptr; }

bool File::map(uint64_t chunk) {
  const std::lock_guard guard(mutex_);
  size_t i = chunk * kSpread >> 48;
  for (;; ++i) {
    const uint64_t found = mapped_[i % kMapped].chunk.load(std::memory_order_relaxed);
    if (found == chunk + 1) return true;
    if (found == 0) break;
  }
  if (used_ + 1 >= kMapped) return false;
  void* const memory = map_memory(nullptr, kChunk, MAP_SHARED | MAP_NORESERVE, descriptor_, chunk * kChunk);
  if (memory == MAP_FAILED) return false;
  ++used_;
  mapped_[i % kMapped].memory = static_cast<std::byte*>(memory);
  mapped_[i % kMapped].chunk.store(chunk + 1, std::memory_order_release);
  return true;
}

uint64_t File::allocate(uint64_t bytes) {
  bytes = (bytes + kPage - 1) / kPage * kPage;
  if (bytes > kChunk) return 0;
  uint64_t begin = layout_->end.load(), aligned = 0;
  do {
    aligned = begin / kChunk == (begin + bytes - 1) / kChunk ? begin : (begin / kChunk + 1) * kChunk;
  } while (!layout_->end.compare_exchange_weak(begin, aligned + bytes));
  // A page that cannot be had is an error now, and no signal later.
  const int code = ::posix_fallocate(descriptor_, static_cast<off_t>(aligned), static_cast<off_t>(bytes));
  return code == 0 && at(aligned) ? aligned : 0;
}

void File::release(uint64_t offset, uint64_t bytes) {
  bytes = (bytes + kPage - 1) / kPage * kPage;
  ::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(bytes));
}

bool File::has_ended(uint32_t process) {
  if (process == process_ || process == 0) return false;
  Process& one = layout_->process[process];
  if (one.ended.load(std::memory_order_relaxed) != 0) return true;
  if (one.pid.load(std::memory_order_relaxed) == 0) return false;  // it is only joining
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_start = kLocks + process;
  lock.l_len = 1;
  if (::fcntl(descriptor_, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK) return false;
  if (one.ended.exchange(1) == 0) {
    const uint32_t count = std::min(layout_->queue_pairs.load() + 1, kQueuePairs);
    for (uint32_t i = 0; i < count; ++i) {
      SharedQueuePair& pair = layout_->queue_pair[i];
      if (pair.process == process) pair.state.store(IBV_QPS_RESET);
    }
  }
  return true;
}

void File::look_for_ended() {
  const uint32_t count = std::min(layout_->processes.load(std::memory_order_relaxed), kProcesses - 1);
  if (count > 0) has_ended(1 + looked_at_.fetch_add(1, std::memory_order_relaxed) % count);
}

bool Lock::try_lock() {
  uint32_t free = 0;
  return holder_.load(std::memory_order_relaxed) == 0 &&
         holder_.compare_exchange_strong(free, File::get().process(), std::memory_order_acquire);
}

void Lock::wait() {
  for (uint32_t round = 0; !try_lock(); ++round) {
    if (!pause_in_loop(round)) continue;
    uint32_t holder = holder_.load();
    if (holder != 0 && File::get().has_ended(holder) && holder_.compare_exchange_strong(holder, File::get().process()))
      return;
  }
}

bool pause_in_loop(uint32_t round) {
  constexpr uint32_t kSpins = 256, kLooks = 4096;
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
  if (round % kSpins == kSpins - 1) ::sched_yield();
  return round % kLooks == kLooks - 1;
}

}  // namespace ibcoll::rdma_in_memory
