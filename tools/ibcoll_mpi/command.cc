// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_mpi/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace ibcoll::mpi_command {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string why_unknown(const std::vector<std::string>& words, const Found& found) {
  if (found.launcher == Launcher::kSlurm)
    return fmt::format(
        "'{}' starts programs of any MPI, and none of the words after it is a program that loads one, or "
        "a Python with mpi4py; say which it is: --mpi openmpi or --mpi mpich",
        words[0]);
  return fmt::format(
      "cannot tell the MPI of '{}': it is no launcher of Open MPI or MPICH, and no word of the command is "
      "a program that loads a shared library of one, or a Python with mpi4py (a program that is linked "
      "statically cannot use ibcoll); say which it is: --mpi openmpi or --mpi mpich",
      words[0]);
}

// Which MPI it is, or why that is not known.
Mpi choose(const std::vector<std::string>& words, const Found& found, Mpi said, std::string& why_not) {
  if (said != Mpi::kUnknown) return said;
  const Mpi mpi = found.of_program != Mpi::kUnknown ? found.of_program : found.of_launcher;
  if (found.of_launcher != Mpi::kUnknown && found.of_launcher != mpi)
    why_not = fmt::format(
        "'{}' belongs to {}, but {}'{}' loads {}: each rank would run alone; start it with the launcher "
        "of {}",
        words[0], name_of(found.of_launcher), found.is_python ? "the mpi4py of " : "", words[found.program],
        name_of(mpi), name_of(mpi));
  else if (mpi == Mpi::kUnknown)
    why_not = why_unknown(words, found);
  return mpi;
}

std::string preload_with(const std::string& library) {
  const std::string before = variable("LD_PRELOAD");
  return before.empty() ? library : library + ":" + before;
}

// mpirun of Open MPI takes only its own variables to other hosts. -x counts for the program that it precedes, and does
// not go with the parameter mca_base_env_list.
void add_exports(Command& command, const std::vector<std::string>& exports) {
  const auto lists = [](const std::string& word) { return word.find("mca_base_env_list") != std::string::npos; };
  if (std::any_of(command.words.begin(), command.words.end(), lists) || ::getenv("OMPI_MCA_mca_base_env_list")) return;
  std::vector<std::string> words;
  for (size_t i = 0; i < command.words.size(); ++i) {
    words.push_back(command.words[i]);
    if (i > 0 && command.words[i] != ":") continue;
    for (const std::string& one : exports) words.insert(words.end(), {"-x", one});
  }
  command.words = std::move(words);
}

std::vector<std::string> own_variables() {
  std::vector<std::string> names;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text(*one);
    if (text.starts_with("IBCOLL_")) names.emplace_back(text.substr(0, text.find('=')));
  }
  std::sort(names.begin(), names.end());
  return names;
}

void for_open_mpi(Command& command, const Libraries& libraries, Launcher launcher) {
  std::vector<std::string> exports = own_variables();
  for (const auto& [name, value] : command.environment)
    if (std::find(exports.begin(), exports.end(), name) == exports.end()) exports.push_back(name);
  if (exists(libraries.component_folder() + "/mca_coll_ibcoll.so")) {
    const char* const name = "OMPI_MCA_mca_base_component_path";
    // Without SYSTEM_DEFAULT mpirun does not find its own parts.
    const std::string before = variable(name), own = libraries.component_folder();
    const bool there = (before + ":").starts_with(own + ":");
    command.environment.emplace_back(name, there ? before : own + ":" + (before.empty() ? "SYSTEM_DEFAULT" : before));
  } else if (const std::string library = libraries.interposition(Mpi::kOpenMpi); !library.empty()) {
    if (launcher == Launcher::kOpenMpi)
      exports.push_back("LD_PRELOAD=" + preload_with(library));
    else
      command.environment.emplace_back("LD_PRELOAD", preload_with(library));
  } else {
    command.why_not = fmt::format(
        "there is neither ibcoll/openmpi/mca_coll_ibcoll.so nor libibcoll_pmpi_openmpi.so in {}: "
        "build and install ibcoll on a machine that has Open MPI's headers",
        libraries.folder);
  }
  if (launcher == Launcher::kOpenMpi) add_exports(command, exports);
}

void for_mpich(Command& command, const Libraries& libraries, Launcher launcher) {
  const std::string library = libraries.interposition(Mpi::kMpich);
  if (library.empty())
    command.why_not = fmt::format(
        "there is no libibcoll_pmpi_mpich.so in {}: build and install ibcoll on a machine that "
        "has MPICH's headers",
        libraries.folder);
  else if (launcher == Launcher::kHydra)  // the launcher itself need not load it
    command.words.insert(command.words.begin() + 1, {"-genv", "LD_PRELOAD", preload_with(library)});
  else
    command.environment.emplace_back("LD_PRELOAD", preload_with(library));
}

std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

}  // namespace

bool exists(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }

std::string Libraries::interposition(Mpi mpi) const {
  const std::string path = folder + (mpi == Mpi::kMpich ? "/libibcoll_pmpi_mpich.so" : "/libibcoll_pmpi_openmpi.so");
  return exists(path) ? path : "";
}

Command command_for(const std::vector<std::string>& words, Mpi said, const std::string& trace,
                    const Libraries& libraries) {
  Command command{.environment = {}, .words = words, .why_not = ""};
  const Found found = detect(words);
  const Mpi mpi = choose(words, found, said, command.why_not);
  if (!command.why_not.empty()) return command;
  if (!trace.empty()) command.environment.emplace_back("IBCOLL_TRACE", trace);
  if (mpi == Mpi::kOpenMpi)
    for_open_mpi(command, libraries, found.launcher);
  else
    for_mpich(command, libraries, found.launcher);
  return command;
}

std::string shell_line(const Command& command) {
  std::string line;
  for (const auto& [name, value] : command.environment) line += fmt::format("{}={} ", name, quoted(value));
  for (const std::string& word : command.words) line += quoted(word) + " ";
  line.pop_back();
  return line;
}

}  // namespace ibcoll::mpi_command
