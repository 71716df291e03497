// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/pmi/running_mpi.h"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <string_view>
#include <vector>

namespace ibcoll {
namespace {

using Question = int (*)(int*);

bool says_yes(void* function) {
  int yes = 0;
  return function != nullptr && reinterpret_cast<Question>(function)(&yes) == 0 && yes != 0;
}

// libmpi.so.40, libmpich.so.12 and the like.
std::vector<std::string> libraries_of_mpi() {
  std::vector<std::string> paths;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        const std::string_view path = info->dlpi_name;
        if (path.substr(path.rfind('/') + 1).starts_with("libmpi"))
          static_cast<std::vector<std::string>*>(found)->emplace_back(path);
        return 0;
      },
      &paths);
  return paths;
}

}  // namespace

bool mpi_is_running() {
  constexpr const char* kQuestion = "MPI_Initialized";
  if (says_yes(::dlsym(RTLD_DEFAULT, kQuestion))) return true;
  // Python loads mpi4py, and the MPI with it, where the symbols of neither are seen from here.
  for (const std::string& path : libraries_of_mpi()) {
    void* const library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    const bool running = says_yes(::dlsym(library, kQuestion));
    ::dlclose(library);
    if (running) return true;
  }
  return false;
}

}  // namespace ibcoll
