// SPDX-License-Identifier: BSD-3-Clause
// The place in the program that a call came from, for traces.
#pragma once

#include <cstdint>
#include <string>

namespace ibcoll {

// The return address of the program's call that led to a public function of this library, which returns to
// `returns_to`. Where an MPI calls that function the stack is searched: for the innermost frame that is neither of the
// MPI nor of ibcoll. Allocates nothing and takes no lock. `returns_to` itself, where the stack cannot be read so far.
// Where that frame is Python's binding of MPI: see current_python_line(), whose result it then is.
const void* program_call_site(const void* returns_to) noexcept;

// The file is part of an MPI, or of ibcoll.
bool serves_mpi(const char* path) noexcept;

// An address of code, for another process to look up.
struct CodeLocation {
  std::string module;    // path of the program or shared library; "": it is not loaded (any more)
  std::string build_id;  // of the module, hexadecimal; "": it has none
  uint64_t offset = 0;   // the address as the module itself has it (addr2line)
  std::string symbol;    // "main+0x33" where the module exports one
};
CodeLocation location_of(const void* address);

}  // namespace ibcoll
