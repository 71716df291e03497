// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/ucx/workarounds/system_calls.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <ucs/type/status.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>

#include "runtime/machine/descriptors.h"
#include "runtime/ucx/workarounds/socket_watch.h"
#include "runtime/ucx/workarounds/versions.h"

namespace ibcoll::ucx {
namespace {

// An error that means the end of a connection is answered as "try again" this many times in a row for one socket.
// Between tries UCX reads, some 64 KB at most, until it has read the end; but where it sends the first bytes of a
// connection it tries in a loop, for some 50 ms then.
constexpr int kTries = 100'000;

ssize_t try_again(int socket, ssize_t result) {
  thread_local int last = -1, tries = 0;
  if (result >= 0 || (errno != EPIPE && errno != ECONNRESET && errno != ETIMEDOUT && errno != ECONNABORTED))
    return result;
  if (socket != last) tries = 0;
  last = socket;
  if (++tries < kTries)
    errno = EAGAIN;
  else
    tries = 0;
  return result;
}

bool means_try_again() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// A connection that was not made takes everything, so that UCX waits for an answer to it.
ssize_t unless_refused(int socket, ssize_t result, size_t bytes) {
  if (result >= 0 || means_try_again()) return result;
  const int error = errno;
  if (SocketWatch::is_refused(socket)) return static_cast<ssize_t>(bytes);
  errno = error;
  return try_again(socket, result);
}

ssize_t replacement_send(int socket, const void* data, size_t bytes, int flags) {
  return unless_refused(socket, ::send(socket, data, bytes, flags), bytes);
}

ssize_t replacement_sendmsg(int socket, const msghdr* message, int flags) {
  const ssize_t result = ::sendmsg(socket, message, flags);
  if (result >= 0 || means_try_again()) return result;
  size_t bytes = 0;
  for (size_t i = 0; i < message->msg_iovlen; ++i) bytes += message->msg_iov[i].iov_len;
  return unless_refused(socket, result, bytes);
}

ssize_t replacement_recv(int socket, void* data, size_t bytes, int flags) {
  const ssize_t result = ::recv(socket, data, bytes, flags);
  if (result > 0 || bytes == 0 || (result < 0 && means_try_again())) return result;
  const int error = errno;
  const bool refused = SocketWatch::is_refused(socket);
  errno = refused ? EAGAIN : error;
  return refused ? -1 : result;
}

// UCX asks for the peer of a socket to learn whether connect() has succeeded.
int replacement_getpeername(int socket, sockaddr* address, socklen_t* length) {
  const socklen_t room = *length;
  const int result = ::getpeername(socket, address, length);
  const int error = errno;
  if (result == 0) return result;
  const bool refused = error == ENOTCONN && SocketWatch::refuse(socket);
  errno = error;
  if (!refused) return result;
  const sockaddr nobody{};
  std::memcpy(address, &nobody, std::min<size_t>(room, sizeof nobody));
  *length = sizeof nobody;
  return 0;
}

int replacement_socket(int domain, int type, int protocol) {
  const HighDescriptors high;
  return ::socket(domain, type | SOCK_CLOEXEC, protocol);
}

int replacement_accept(int listener, sockaddr* address, socklen_t* length) {
  const HighDescriptors high;
  const socklen_t room = length == nullptr ? 0 : *length;
  for (;;) {
    const int accepted = ::accept4(listener, address, length, SOCK_CLOEXEC);
    if (accepted < 0 || !SocketWatch::is_of_refused(accepted)) return accepted;
    ::close(accepted);
    if (length != nullptr) *length = room;
  }
}

int replacement_connect(int socket, const sockaddr* to, socklen_t length) {
  try {
    if (is_tcp(socket)) try_twice([&] { SocketWatch::connects(socket, to); });
  } catch (const std::bad_alloc&) {  // UCX is C
    errno = ENOMEM;
    return -1;
  }
  return ::connect(socket, to, length);
}

std::atomic<bool> all_replaced{false};

struct Replacement {
  std::string_view name;
  void* function;
  Fault fault;  // with which UCX needs it
};
const Replacement kReplacements[] = {
    {"send", reinterpret_cast<void*>(&replacement_send), Fault::kFailedSend},
    {"sendmsg", reinterpret_cast<void*>(&replacement_sendmsg), Fault::kFailedSend},
    {"recv", reinterpret_cast<void*>(&replacement_recv), Fault::kFailedConnect},
    {"getpeername", reinterpret_cast<void*>(&replacement_getpeername), Fault::kFailedConnect},
    {"socket", reinterpret_cast<void*>(&replacement_socket), Fault::kInheritedSockets},
    {"accept", reinterpret_cast<void*>(&replacement_accept), Fault::kInheritedSockets},
    {"connect", reinterpret_cast<void*>(&replacement_connect), Fault::kStrangers}};

// The base address of a loaded library, and where its calls of others are listed.
struct Calls {
  ElfW(Addr) base = 0;
  std::span<const ElfW(Rela)> slots;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
};

int find_calls(dl_phdr_info* library, size_t, void* argument) {
  auto& calls = *static_cast<Calls*>(argument);
  if (library->dlpi_addr != calls.base) return 0;
  size_t bytes = 0;
  const ElfW(Rela)* first = nullptr;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    if (library->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(calls.base + library->dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_JMPREL) first = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_PLTRELSZ) bytes = entry->d_un.d_val;
      if (entry->d_tag == DT_SYMTAB) calls.symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_STRTAB) calls.names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    }
  }
  if (first != nullptr) calls.slots = {first, bytes / sizeof(ElfW(Rela))};
  return 1;
}

bool replace(void** slot, void* function) {
  const auto page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(slot) / page_bytes * page_bytes;
  // Read-only where the library was linked so; what else lies on the page is written at any time, so it stays writable.
  if (::mprotect(reinterpret_cast<void*>(begin), page_bytes, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(slot, function, __ATOMIC_RELEASE);
  return true;
}

}  // namespace

Status replace_system_calls() {
  Dl_info libucs{};
  Calls calls;
  if (::dladdr(reinterpret_cast<void*>(&ucs_status_string), &libucs) != 0)
    calls.base = reinterpret_cast<ElfW(Addr)>(libucs.dli_fbase);
  ::dl_iterate_phdr(&find_calls, &calls);
  size_t replaced = 0;
  const auto needed = std::count_if(std::begin(kReplacements), std::end(kReplacements),
                                    [](const Replacement& one) { return is_needed(one.fault); });
  for (const ElfW(Rela) & slot : calls.slots) {
    const std::string_view name = calls.names + calls.symbols[ELF64_R_SYM(slot.r_info)].st_name;
    for (const Replacement& replacement : kReplacements)
      if (name == replacement.name && is_needed(replacement.fault) &&
          replace(reinterpret_cast<void**>(calls.base + slot.r_offset), replacement.function))
        ++replaced;
  }
  all_replaced = replaced == static_cast<size_t>(needed);
  if (all_replaced) return {};
  return error(IBCOLL_ERR_UNSUPPORTED,
               "only {} of {} calls of libucs could be replaced: UCX may end a rank when a peer dies as they connect",
               replaced, needed);
}

bool connects_are_seen() { return all_replaced; }

}  // namespace ibcoll::ucx
