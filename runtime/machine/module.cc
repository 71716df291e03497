// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/machine/module.h"

#include <dlfcn.h>

#include <cstring>
#include <string>

#include "runtime/base/start_folder.h"

namespace ibcoll {

Result<void*> module_function(const char* file, const char* symbol) {
  Dl_info self{};
  std::string folder;
  if (::dladdr(reinterpret_cast<void*>(&module_function), &self) != 0 && self.dli_fname) {
    folder = from_start_folder(self.dli_fname);  // relative where LD_LIBRARY_PATH is
    folder.resize(folder.find_last_of('/') == std::string::npos ? 0 : folder.find_last_of('/') + 1);
  }
  std::string why;
  for (const std::string& path : {folder + file, folder + "../lib/" + file, std::string(file)}) {
    void* const module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!module) {
      if (why.empty()) why = ::dlerror();
      continue;
    }
    const auto* const build = static_cast<const char*>(::dlsym(module, "ibcoll_module_build"));
    void* const function = ::dlsym(module, symbol);
    if (function && build && std::strcmp(build, ibcoll_module_build) == 0) return function;
    return error(IBCOLL_ERR_UNSUPPORTED,
                 "{} is of another build than libibcoll.so ({}, not {}); install both from one build", path,
                 build && function ? build : "an older one", ibcoll_module_build);
  }
  return error(IBCOLL_ERR_UNSUPPORTED, "the module {} cannot be loaded: {}", file, why);
}

}  // namespace ibcoll
