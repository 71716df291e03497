// SPDX-License-Identifier: BSD-3-Clause
// ibcoll_mpi: runs an unmodified program of Open MPI or MPICH with its collectives in ibcoll.
//
//   ibcoll_mpi mpirun -n 4 ./program            runs it
//   ibcoll_mpi -n mpirun -n 4 ./program         prints the line that does
//   ibcoll_mpi --trace FILE srun -n 4 python3 program.py
//
// Exit status: that of the command; 1: it cannot run with ibcoll; 2: wrong options; 126, 127: as of a shell.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>

#include "runtime/base/low_descriptors.h"
#include "tools/ibcoll_mpi/command.h"
#include "tools/ibcoll_run/program_path.h"
#include "tools/options/early_end.h"
#include "tools/options/help.h"
#include "tools/options/output_file.h"

namespace ibcoll::mpi_command {
namespace {

struct Options {
  bool print = false;
  std::string trace;
  Mpi mpi = Mpi::kUnknown;
  std::vector<std::string> words;
};

int fail(const std::string& text, int status) {
  fmt::print(stderr, "ibcoll_mpi: {}\n", text);
  return status;
}

// The folder of the libraries that belong to this program.
Libraries own_libraries() {
  std::error_code ignored;
  const std::filesystem::path bin = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  const std::filesystem::path installed = (bin / IBCOLL_LIB_FROM_BIN).lexically_normal();
  if (exists(installed / "libibcoll.so.0")) return {installed.string()};
  return {(bin / "../lib").lexically_normal().string()};
}

int execute(const Command& command) {
  for (const auto& [name, value] : command.environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : command.words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  return fail(fmt::format("{}: {}", command.words[0], std::strerror(errno)), errno == ENOENT ? 127 : 126);
}

int run(const CLI::App& app, const Options& options) {
  if (options.words.empty()) return fail("no command is given; see ibcoll_mpi --help", 2);
  if (options.words[0].starts_with("-"))
    return fail(fmt::format("there is no option {}{}; see ibcoll_mpi --help", options.words[0],
                            did_you_mean(app, options.words[0])),
                2);
  const char* const search = std::getenv("PATH");
  const ibcoll::run::ProgramPath first = ibcoll::run::find_program(options.words[0], search == nullptr ? "" : search);
  if (first.exit_code != 0) return fail(first.text, first.exit_code);
  const Command command = command_for(options.words, options.mpi, options.trace, own_libraries());
  if (!command.why_not.empty()) return fail(command.why_not, 1);
  if (!options.print) return execute(command);
  const std::string problem = print_all(shell_line(command) + "\n");
  return problem.empty() ? 0 : fail(problem, 1);
}

}  // namespace
}  // namespace ibcoll::mpi_command

int main(int argc, char** argv) {
  ibcoll::occupy_low_descriptors();
  using namespace ibcoll::mpi_command;
  CLI::App app(
      "Runs an unmodified program of Open MPI or MPICH with its collectives in ibcoll. After the options comes the "
      "command as it is, launcher first.");
  ibcoll::give_help(app,
                    "  ibcoll_mpi mpirun -n 4 ./program\n"
                    "  ibcoll_mpi -n mpirun -n 4 ./program              prints the line instead\n"
                    "  ibcoll_mpi --trace t srun -n 4 python3 program.py && ibcoll_trace t\n");
  Options options;
  app.add_flag("-n,--dry-run", options.print, "Print the command line, for a shell, instead of running it");
  app.add_option("--trace", options.trace, "Record the collectives, for ibcoll_trace (sets IBCOLL_TRACE)")
      ->type_name("FILE");
  std::string mpi;
  app.add_option("--mpi", mpi, "Which MPI it is: openmpi or mpich (default: found from the command)")
      ->check(CLI::IsMember({"openmpi", "mpich"}))
      ->type_name("MPI");
  app.prefix_command();
  if (const auto end = ibcoll::parse_command_line(app, "ibcoll_mpi", argc, argv)) return print(*end, "ibcoll_mpi");
  if (!mpi.empty()) options.mpi = mpi == "mpich" ? Mpi::kMpich : Mpi::kOpenMpi;
  options.words = app.remaining();
  try {
    return run(app, options);
  } catch (const std::exception& problem) {
    return fail(problem.what(), 1);
  }
}
