// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/ucx/workarounds/memory_hooks.h"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

namespace ibcoll::ucx {
namespace {

// How ucm_global_config_t (ucm/api/ucm.h) begins, in UCX 1.11 to 1.20.
struct Settings {
  int log_level;
  int enable_events;
};

}  // namespace

bool user_decides_on_hooks() { return std::getenv("UCX_MEM_EVENTS") != nullptr; }

// libucm installs its hooks when it is given settings for the first time, unless these say that there are no events.
// libucs, which is loaded later, gives it those of the environment for the second time.
void start_ucm_without_hooks() {
  if (user_decides_on_hooks() || ::dlopen("libucs.so.0", RTLD_LAZY | RTLD_NOLOAD) != nullptr) return;
  // Lazily, because libucm calls functions of libucs.
  void* const library = ::dlopen("libucm.so.0", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return;
  auto* const settings = static_cast<Settings*>(::dlsym(library, "ucm_global_opts"));
  void* start = ::dlsym(library, "ucm_set_global_opts");
  if (start == nullptr) start = ::dlsym(library, "ucm_library_init");  // its name before 1.13
  if (settings == nullptr || start == nullptr) return;
  const int enabled = std::exchange(settings->enable_events, 0);
  reinterpret_cast<void (*)(const Settings*)>(start)(settings);
  settings->enable_events = enabled;
}

}  // namespace ibcoll::ucx
