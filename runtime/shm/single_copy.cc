// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/single_copy.h"

#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace ibcoll::shm {
namespace {

constexpr uint64_t kProbeValue = 0x1bc011'0badca5e;
uint64_t probe = kProbeValue;  // in memory that can be written

using Call = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

// The kernel may move less than asked; it stops at the first page that it cannot reach.
Status move(Call call, const char* name, pid_t pid, uint64_t address, std::byte* local, size_t bytes) noexcept {
  for (size_t moved = 0; moved < bytes;) {
    const iovec here{local + moved, bytes - moved};
    const iovec there{reinterpret_cast<void*>(address + moved), bytes - moved};
    const ssize_t count = call(pid, &here, 1, &there, 1, 0);
    if (count > 0) {
      moved += static_cast<size_t>(count);
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == ESRCH) return error(IBCOLL_ERR_PEER_FAILED, "shm: process {} is gone", pid);
    const int failure = count < 0 ? errno : 0;
    const bool refused = failure == EPERM || failure == EACCES || failure == ENOSYS;
    return error(refused ? IBCOLL_ERR_UNSUPPORTED : IBCOLL_ERR_SYSTEM,
                 "shm: {} of {} bytes at {:#x} of process {}: {}; IBCOLL_SINGLE_COPY=off avoids the call", name,
                 bytes - moved, address + moved, pid, count == 0 ? "nothing moved" : std::strerror(failure));
  }
  return {};
}

}  // namespace

Status read_process(pid_t pid, uint64_t address, std::span<std::byte> into) noexcept {
  return move(::process_vm_readv, "process_vm_readv", pid, address, into.data(), into.size());
}

Status write_process(pid_t pid, uint64_t address, std::span<const std::byte> from) noexcept {
  return move(::process_vm_writev, "process_vm_writev", pid, address, const_cast<std::byte*>(from.data()), from.size());
}

const uint64_t* probe_word() noexcept { return &probe; }

bool may_copy_process(pid_t pid, uint64_t probe_address) noexcept {
  uint64_t word = 0;
  const auto bytes = std::as_writable_bytes(std::span(&word, 1));
  return read_process(pid, probe_address, bytes).ok() && word == kProbeValue &&
         write_process(pid, probe_address, bytes).ok();
}

}  // namespace ibcoll::shm
