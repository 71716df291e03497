// SPDX-License-Identifier: BSD-3-Clause
// The MPI's own functions, whatever stands before them.
#pragma once

#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

#ifdef OPEN_MPI
inline constexpr const char* kMpiLibrary = "libmpi.so.40";
#else
inline constexpr const char* kMpiLibrary = "libmpich.so.12";
#endif

template <typename Function>
Function* own(const char* name, Function*) {
  static void* const library = dlopen(kMpiLibrary, RTLD_LAZY | RTLD_NOLOAD);
  void* address = library != nullptr ? dlsym(library, name) : nullptr;
  if (address == nullptr) {
    std::fprintf(stderr, "no %s in %s\n", name, kMpiLibrary);
    std::abort();
  }
  return reinterpret_cast<Function*>(address);
}

// MPI_NAME as the program calls it, or the MPI's own.
#define WHICH(IS_OWN, NAME) ((IS_OWN) ? own("PMPI_" #NAME, &MPI_##NAME) : &MPI_##NAME)
