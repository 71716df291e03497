// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/registration_cache/memory_events.h"

#include <dlfcn.h>
#if __has_include(<ucm/api/ucm.h>)
#include <ucm/api/ucm.h>
#endif

#include <utility>

#include "runtime/registration_cache/unmap_trial.h"
#include "runtime/ucx/workarounds/kept_signals.h"
#include "runtime/ucx/workarounds/memory_hooks.h"
#include "runtime/ucx/workarounds/versions.h"

namespace ibcoll {

#if __has_include(<ucm/api/ucm.h>)

struct MemoryEvents::Functions {
  decltype(&::ucm_set_event_handler) set = nullptr;
  decltype(&::ucm_unset_event_handler) unset = nullptr;
};

// One handler of UCX, as long as the object lives. No handler runs any more when the destructor has returned.
class MemoryEvents::Subscription {
 public:
  // `flags`: of ucm_event_type_t.
  static Result<std::unique_ptr<Subscription>> make(const Functions& ucm, UnmapQueue& queue, int flags = 0) {
    constexpr int kAfterOthers = 1000;  // order among handlers; the event itself always comes before the unmapping
    std::unique_ptr<Subscription> made(new Subscription(ucm, queue));
    const ucs_status_t status = ucm.set(UCM_EVENT_VM_UNMAPPED | flags, kAfterOthers, &on_event, &queue);
    if (status != UCS_OK)
      return error(IBCOLL_ERR_UNSUPPORTED, "UCX gives no memory events (status {}; see UCX_MEM_EVENTS and {})",
                   static_cast<int>(status), "UCX_MEM_MMAP_HOOK_MODE");
    made->set_ = true;
    return made;
  }
  ~Subscription() {
    if (set_) ucm_.unset(UCM_EVENT_VM_UNMAPPED, &on_event, &queue_);
  }
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

 private:
  Subscription(const Functions& ucm, UnmapQueue& queue) : ucm_(ucm), queue_(queue) {}
  // Runs inside munmap() of any thread: must not allocate.
  static void on_event(ucm_event_type_t, ucm_event_t* event, void* queue) {
    const auto begin = reinterpret_cast<uint64_t>(event->vm_unmapped.address);
    static_cast<UnmapQueue*>(queue)->push_bytes(begin, event->vm_unmapped.size);
  }
  Functions ucm_;
  UnmapQueue& queue_;
  bool set_ = false;
};

namespace {

constexpr const char* kLibrary = "libucs.so.0";  // brings libucm, which does not work alone

// A sanitizer's allocator unmaps by system calls of its own, which no one sees.
bool has_sanitizer() {
  for (const char* name : {"__asan_init", "__tsan_init", "__msan_init", "__lsan_init", "__hwasan_init"})
    if (::dlsym(RTLD_DEFAULT, name) != nullptr) return true;
  return false;
}

Result<void*> load_ucx(const HookedFunction& munmap, bool in_host) {
  void* const there = ::dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  if (in_host && (there == nullptr || !munmap.patched()))
    return error(IBCOLL_ERR_UNSUPPORTED,
                 "the host does not use UCX's memory events, and in host mode ibcoll does not turn them on");
  if (there != nullptr) return there;
  // Where the user decides on hooks, UCX may set them as it is loaded: this is the last moment to refuse.
  if (munmap.patched())
    return error(IBCOLL_ERR_UNSUPPORTED,
                 "munmap() is not as in the C library's file: another library seems to hook it, and a "
                 "second hook would blind that one");
  ucx::start_ucm_without_hooks();
  const ucx::KeptSignals kept;
  if (void* const loaded = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return loaded;
  return error(IBCOLL_ERR_UNSUPPORTED, "UCX, which reports unmapped memory, is not installed: {}", ::dlerror());
}

// `hooked`: another user of UCX in the process has already had it hook the C library.
Status may_hook(bool hooked) {
  if (hooked || ucx::user_decides_on_hooks() || !ucx::is_needed(ucx::Fault::kMremap)) return {};
  return error(IBCOLL_ERR_UNSUPPORTED,
               "UCX before 1.15 reports unmapped memory only where mremap() loses an argument: calls with MREMAP_FIXED "
               "then move memory elsewhere; UCX_MEM_EVENTS=y takes that for programs that make none");
}

}  // namespace

Result<std::unique_ptr<MemoryEvents>> MemoryEvents::start(UnmapQueue& queue, bool in_host) {
  if (has_sanitizer())
    return error(IBCOLL_ERR_UNSUPPORTED, "the program runs under a sanitizer, whose allocator unmaps memory unseen");
  HookedFunction munmap("munmap");
  Result<void*> library = load_ucx(munmap, in_host);
  if (!library.ok()) return library.status();
  Functions ucm;
  ucm.set = reinterpret_cast<decltype(ucm.set)>(::dlsym(*library, "ucm_set_event_handler"));
  ucm.unset = reinterpret_cast<decltype(ucm.unset)>(::dlsym(*library, "ucm_unset_event_handler"));
  if (ucm.set == nullptr || ucm.unset == nullptr)
    return error(IBCOLL_ERR_UNSUPPORTED, "{} has no ucm_set_event_handler: not a version of UCX that is known",
                 kLibrary);

  const bool hooked = munmap.patched();
  if (Status status = may_hook(hooked); !status.ok()) return status;
  auto trial_queue = std::make_unique<UnmapQueue>();
  {
    // If the hook is another library's, the trial fails, and UCX has set none over it.
    Result<std::unique_ptr<Subscription>> trial =
        Subscription::make(ucm, *trial_queue, hooked ? UCM_EVENT_FLAG_NO_INSTALL : 0);
    if (!trial.ok()) return trial.status();
    if (Status status = try_unmappings(*trial_queue); !status.ok()) return status;
  }
  Result<std::unique_ptr<Subscription>> subscription = Subscription::make(ucm, queue);
  if (!subscription.ok()) return subscription.status();
  // As UCX_MEM_MMAP_HOOK_MODE=reloc has it: what the C library calls by itself, the end of a thread's stack say, goes
  // unseen.
  if (!munmap.patched())
    return error(IBCOLL_ERR_UNSUPPORTED, "UCX's memory events see only calls from outside of the C library (see {})",
                 "UCX_MEM_MMAP_HOOK_MODE");
  munmap.remember();
  return std::unique_ptr<MemoryEvents>(new MemoryEvents(std::move(*subscription), munmap));
}

#else

class MemoryEvents::Subscription {};

Result<std::unique_ptr<MemoryEvents>> MemoryEvents::start(UnmapQueue&, bool) {
  return error(IBCOLL_ERR_UNSUPPORTED, "UCX, which reports unmapped memory, was not there when ibcoll was built");
}

#endif

MemoryEvents::MemoryEvents(std::unique_ptr<Subscription> subscription, const HookedFunction& munmap)
    : subscription_(std::move(subscription)), munmap_(munmap) {}

MemoryEvents::~MemoryEvents() = default;

}  // namespace ibcoll
