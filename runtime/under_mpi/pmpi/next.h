// SPDX-License-Identifier: BSD-3-Clause
// The MPI's own functions, which this library stands before.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace ibcoll::under_mpi {

// A name as a template argument.
template <size_t kSize>
struct Name {
  char text[kSize];
  constexpr Name(const char (&name)[kSize]) { std::copy_n(name, kSize, text); }  // NOLINT: converts on purpose
};

// next<"PMPI_Barrier", decltype(PMPI_Barrier)>(): the definition after this library's.
template <Name kName, typename Function>
Function* next() {
  static Function* const found = [] {
    void* address = dlsym(RTLD_NEXT, kName.text);
    if (address == nullptr) {
      std::fprintf(stderr, "ibcoll under MPI: no %s after this library: it must come before the MPI's own library\n",
                   kName.text);
      std::abort();
    }
    return reinterpret_cast<Function*>(address);
  }();
  return found;
}

}  // namespace ibcoll::under_mpi

// The MPI's own function of that name, PMPI_NAME in the second.
#define IBCOLL_NEXT_OF(FUNCTION) (::ibcoll::under_mpi::next<#FUNCTION, decltype(FUNCTION)>())
#define IBCOLL_NEXT(NAME) IBCOLL_NEXT_OF(PMPI_##NAME)

// Both names of a function: PMPI_NAME, whose definition follows, and MPI_NAME. Fortran calls the first or the second,
// as the MPI likes it, and profiling tools call the first.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define IBCOLL_TWO_NAMES(MPI_NAME, PMPI_NAME)                                      \
  extern "C" __attribute__((visibility("default"))) decltype(PMPI_NAME) PMPI_NAME; \
  extern "C" __attribute__((visibility("default"), alias(#PMPI_NAME))) decltype(MPI_NAME) MPI_NAME;
// NOLINTEND(bugprone-macro-parentheses)
#define IBCOLL_BOTH_NAMES(NAME) IBCOLL_TWO_NAMES(MPI_##NAME, PMPI_##NAME)
