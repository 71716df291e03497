// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/ucx/workarounds/versions.h"

#include <dlfcn.h>

namespace ibcoll::ucx {

Version running_version() {
  static const Version running = [] {
    Version version;
    void* const library = ::dlopen("libucp.so.0", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    void* const function = library == nullptr ? nullptr : ::dlsym(library, "ucp_get_version");
    unsigned release = 0;
    if (function != nullptr)
      reinterpret_cast<void (*)(unsigned*, unsigned*, unsigned*)>(function)(&version.major, &version.minor, &release);
    return version;
  }();
  return running;
}

}  // namespace ibcoll::ucx
