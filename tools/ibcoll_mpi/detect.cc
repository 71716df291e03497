// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_mpi/detect.h"

#include <cstdlib>
#include <filesystem>

#include "tools/ibcoll_mpi/output_of.h"
#include "tools/ibcoll_run/program_path.h"

namespace ibcoll::mpi_command {
namespace {

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// "" when there is no such program.
std::string path_of(const std::string& word) {
  const char* const search = std::getenv("PATH");
  const run::ProgramPath found = run::find_program(word, search == nullptr ? "/usr/bin:/bin" : search);
  return found.exit_code == 0 ? found.path : "";
}

// By the names of the libraries that the dynamic linker would load, those of other libraries included. Old MPICH and
// its relatives are libmpi.so.12, Open MPI has been libmpi.so.40 since its version 3.
Mpi mpi_of_file(const std::string& path) {
  const std::string libraries = output_of({"ldd", path});
  if (has(libraries, "libmpich.so") || has(libraries, "libmpi.so.12 ")) return Mpi::kMpich;
  if (has(libraries, "libmpi.so.")) return Mpi::kOpenMpi;
  return Mpi::kUnknown;
}

bool is_python(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return name.starts_with("python") || name.starts_with("pypy");
}

// A script's own first line may name a Python.
std::string interpreter_of(const std::string& path) {
  const run::FileBeginning begin = run::beginning_of(path);
  const std::string text(begin.bytes.begin(), begin.bytes.begin() + begin.size);
  if (!text.starts_with("#!")) return "";
  std::string line = text.substr(2, text.find('\n') - 2);
  while (!line.empty() && line.back() == ' ') line.pop_back();
  if (!has(line, "python")) return "";
  const std::string last = line.substr(line.find_last_of(' ') + 1);  // "/usr/bin/env python3"
  return path_of(last);
}

// mpi4py is found, and not imported: that would start MPI.
Mpi mpi_of_python(const std::string& python) {
  std::string file = output_of({python, "-c", "import importlib.util as u; print(u.find_spec('mpi4py.MPI').origin)"});
  while (!file.empty() && file.back() == '\n') file.pop_back();
  return file.starts_with("/") && file.find('\n') == std::string::npos ? mpi_of_file(file) : Mpi::kUnknown;
}

void look_at_launcher(const std::string& path, Found& found) {
  const std::string name = std::filesystem::path(path).filename().string();
  const std::string version = output_of({path, "--version"});
  if (has(version, "Open MPI") || has(version, "OpenRTE") || has(version, "PRRTE")) {
    found.launcher = Launcher::kOpenMpi;
    found.of_launcher = Mpi::kOpenMpi;
  } else if (has(version, "HYDRA")) {
    found.launcher = Launcher::kHydra;
    found.of_launcher = Mpi::kMpich;
  } else if (name == "srun" || version.starts_with("slurm")) {
    found.launcher = Launcher::kSlurm;
  }
}

void look_at_programs(std::span<const std::string> words, Found& found) {
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string path = words[i].starts_with("-") ? "" : path_of(words[i]);
    if (path.empty()) continue;
    const std::string python = is_python(path) ? path : interpreter_of(path);
    const Mpi mpi = !python.empty()                    ? mpi_of_python(python)
                    : run::beginning_of(path).is_elf() ? mpi_of_file(path)
                                                       : Mpi::kUnknown;
    if (mpi == Mpi::kUnknown) continue;
    found.of_program = mpi;
    found.program = i;
    found.is_python = !python.empty();
    return;
  }
}

bool may_be_launcher(const std::string& word) {
  const std::string name = std::filesystem::path(word).filename().string();
  for (const char* part : {"mpirun", "mpiexec", "orterun", "prterun", "prun", "srun"})
    if (has(name, part)) return true;
  return false;
}

}  // namespace

const char* name_of(Mpi mpi) { return mpi == Mpi::kOpenMpi ? "Open MPI" : mpi == Mpi::kMpich ? "MPICH" : "no MPI"; }

Found detect(std::span<const std::string> words) {
  Found found;
  const std::string first = path_of(words[0]);
  // Any other program would run, were it called with --version.
  const bool launcher = may_be_launcher(words[0]);
  if (launcher && !first.empty()) look_at_launcher(first, found);
  if (!launcher || found.launcher == Launcher::kOther) {
    look_at_programs(words, found);
    if (found.of_program != Mpi::kUnknown && found.program == 0) found.launcher = Launcher::kNone;
  } else {
    look_at_programs(words.subspan(1), found);
    if (found.of_program != Mpi::kUnknown) ++found.program;
  }
  return found;
}

}  // namespace ibcoll::mpi_command
