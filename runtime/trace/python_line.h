// SPDX-License-Identifier: BSD-3-Clause
// Lines of a Python program as call sites.
#pragma once

#include <string>

namespace ibcoll {

struct PythonLine {
  std::string file;  // as the interpreter has it, absolute where it is a file
  int line = 0;
  std::string function;  // qualified where the interpreter knows that; "<module>" outside of functions
};

// The innermost line of Python that this thread runs, which Python has called into. It is the same object for the same
// line, and stays until the process ends. It may wait for the interpreter's lock. nullptr: not known.
const PythonLine* current_python_line() noexcept;
// The line whose address this is; nullptr: no line is there.
const PythonLine* find_python_line(const void* line) noexcept;

}  // namespace ibcoll
