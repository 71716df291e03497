// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/ucx/workarounds/mremap.h"

#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "runtime/ucx/workarounds/versions.h"

namespace ibcoll::ucx {
namespace {

using Mremap = void* (*)(void* old, size_t old_bytes, size_t new_bytes, int flags, ...);

std::atomic<Mremap> ucx_mremap{nullptr};
const size_t page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));

void* system_mremap(void* old, size_t old_bytes, size_t new_bytes, int flags, void* where) {
  return reinterpret_cast<void*>(::syscall(SYS_mremap, old, old_bytes, new_bytes, flags, where));
}

// Calls that UCX knows report what is unmapped at both addresses, before it is: the first changes nothing, the second
// leaves a mapping that only this call replaces. May run within malloc().
void* move_to(void* old, size_t old_bytes, size_t new_bytes, int flags, void* where) {
  const Mremap resize = ucx_mremap.load(std::memory_order_acquire);
  if (old_bytes != 0 && resize(old, old_bytes, old_bytes, 0) == MAP_FAILED) return MAP_FAILED;
  const size_t bytes = (new_bytes + page_bytes - 1) / page_bytes * page_bytes;
  const auto from = reinterpret_cast<uint64_t>(old);
  const auto to = reinterpret_cast<uint64_t>(where);
  const bool refused = bytes == 0 || to % page_bytes != 0 || (from < to + bytes && to < from + old_bytes);
  const bool cleared =
      (flags & MREMAP_FIXED) != 0 && (flags & MREMAP_MAYMOVE) != 0 && !refused &&
      ::mmap(where, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
  void* const got = system_mremap(old, old_bytes, new_bytes, flags, where);
  if (got == MAP_FAILED && cleared) {
    const int why = errno;
    ::munmap(where, bytes);
    errno = why;
  }
  return got;
}

[[maybe_unused]] void* complete_mremap(void* old, size_t old_bytes, size_t new_bytes, int flags, ...) {
  if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) == 0)
    return ucx_mremap.load(std::memory_order_acquire)(old, old_bytes, new_bytes, flags);
  va_list more;
  va_start(more, flags);
  void* const where = va_arg(more, void*);
  va_end(more);
  return move_to(old, old_bytes, new_bytes, flags, where);
}

Status unsupported(const char* why) {
  return error(IBCOLL_ERR_UNSUPPORTED,
               "mremap() cannot be corrected ({}), of which UCX before 1.15 loses an argument: calls with MREMAP_FIXED "
               "may fail in this process",
               why);
}

}  // namespace

#ifdef __x86_64__

namespace {

// Jumps as UCX writes them: near, with the distance from its end in four bytes; and far, to the address in eight.
constexpr std::byte kNear{0xe9};
constexpr size_t kNearBytes = 5;
constexpr std::array kFar{std::byte{0x48}, std::byte{0xb8}};     // movabs rax, the next eight bytes
constexpr std::array kFarEnd{std::byte{0xff}, std::byte{0xe0}};  // jmp rax
constexpr size_t kFarBytes = kFar.size() + sizeof(uint64_t) + kFarEnd.size();
constexpr std::array<char, 20> kMark{"ibcoll's jump board"};  // behind the far jump

// Where the jump at the start of a function leads; NULL when none is there.
const std::byte* jump_target(const std::byte* code) {
  std::array<std::byte, kFarBytes> bytes{};
  std::memcpy(bytes.data(), code, bytes.size());
  if (bytes[0] == kNear) {
    int32_t distance = 0;
    std::memcpy(&distance, &bytes[1], sizeof distance);
    return code + kNearBytes + distance;
  }
  if (!std::equal(kFar.begin(), kFar.end(), bytes.begin()) ||
      !std::equal(kFarEnd.begin(), kFarEnd.end(), bytes.end() - kFarEnd.size()))
    return nullptr;
  const std::byte* target = nullptr;
  std::memcpy(&target, &bytes[kFar.size()], sizeof target);
  return target;
}

// A page of code within reach of a near jump from `code`, which jumps on to complete_mremap(), wherever that is. NULL:
// no room.
const std::byte* make_springboard(const std::byte* code) {
  constexpr int64_t kStep = int64_t{16} << 20;
  constexpr int kSteps = 120;  // 2 GB less some
  const auto target = reinterpret_cast<uint64_t>(&complete_mremap);
  const auto start =
      reinterpret_cast<int64_t>(code) / static_cast<int64_t>(page_bytes) * static_cast<int64_t>(page_bytes);
  for (int i = 1; i <= 2 * kSteps; ++i) {
    void* const wish = reinterpret_cast<void*>(start + (i % 2 == 1 ? -1 : 1) * ((i + 1) / 2) * kStep);
    void* const got =
        ::mmap(wish, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED) continue;
    auto* const board = static_cast<std::byte*>(got);
    std::memcpy(board, kFar.data(), kFar.size());
    std::memcpy(board + kFar.size(), &target, sizeof target);
    std::memcpy(board + kFar.size() + sizeof target, kFarEnd.data(), kFarEnd.size());
    std::memcpy(board + kFarBytes, kMark.data(), kMark.size());
    if (got == wish && ::mprotect(got, page_bytes, PROT_READ | PROT_EXEC) == 0) return board;
    ::munmap(got, page_bytes);
  }
  return nullptr;
}

// One made here, or by another module of ibcoll that has this code.
bool is_springboard(const std::byte* target) {
  return jump_target(target) != nullptr && std::memcmp(target + kFarBytes, kMark.data(), kMark.size()) == 0;
}

// ThreadSanitizer has no shadow for code.
__attribute__((no_sanitize("thread"))) void store_at_once(uint64_t& where, uint64_t value) {
  __atomic_store_n(&where, value, __ATOMIC_SEQ_CST);
}

// In a library that is loaded, by its own handle: the name alone may lead to another one. NULL: none.
std::byte* function_of(const char* library, const char* name) {
  void* const loaded = ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) return nullptr;
  void* const function = ::dlsym(loaded, name);
  ::dlclose(loaded);
  return static_cast<std::byte*>(function);
}

}  // namespace

// A near jump replaces UCX's by one store of eight bytes: a thread that calls mremap() meanwhile takes either jump.
Status correct_mremap() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::byte* const replaced = function_of("libucs.so.0", "ucm_override_mremap");
  std::byte* const code = function_of(LIBC_SO, "mremap");
  if (replaced == nullptr) return {};
  if (code == nullptr || reinterpret_cast<uint64_t>(code) % sizeof(uint64_t) != 0)
    return unsupported("its code is not where it should be");
  const std::byte* const target = jump_target(code);
  if (target == nullptr || is_springboard(target) || !is_needed(Fault::kMremap)) return {};
  if (target != replaced) return unsupported("another library has patched it after UCX");
  const std::byte* const springboard = make_springboard(code);
  if (springboard == nullptr) return unsupported("no room for code within 2 GB of it");

  ucx_mremap.store(reinterpret_cast<Mremap>(replaced), std::memory_order_release);
  auto& word = *reinterpret_cast<uint64_t*>(code);
  auto bytes = std::bit_cast<std::array<std::byte, sizeof(uint64_t)>>(word);
  const auto distance = static_cast<int32_t>(springboard - (code + kNearBytes));
  bytes[0] = kNear;
  std::memcpy(&bytes[1], &distance, sizeof distance);
  void* const begin = reinterpret_cast<void*>(reinterpret_cast<uint64_t>(code) / page_bytes * page_bytes);
  if (::mprotect(begin, page_bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return unsupported(std::strerror(errno));
  store_at_once(word, std::bit_cast<uint64_t>(bytes));
  ::mprotect(begin, page_bytes, PROT_READ | PROT_EXEC);
  return {};
}

#else

Status correct_mremap() { return is_needed(Fault::kMremap) ? unsupported("only implemented for x86-64") : Status(); }

#endif

}  // namespace ibcoll::ucx
