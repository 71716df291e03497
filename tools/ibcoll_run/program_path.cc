// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/program_path.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/base/unique_fd.h"

namespace ibcoll::run {
namespace {

// 0, or the errno of why not.
int why_not_executable(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return errno;
  if (S_ISDIR(about.st_mode)) return EISDIR;
  return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

std::string in_folder(const std::string& folder, const std::string& path) {
  return folder.empty() || path.starts_with('/') ? path : folder + "/" + path;
}

std::string machine_name(unsigned machine) {
  switch (machine) {
    case EM_386:
      return "i386";
    case EM_X86_64:
      return "x86_64";
    case EM_ARM:
      return "arm";
    case EM_AARCH64:
      return "aarch64";
    case EM_PPC64:
      return "ppc64";
    case EM_S390:
      return "s390x";
    case EM_RISCV:
      return "riscv";
    default:
      return fmt::format("number {} of the ELF format", machine);
  }
}

// Describes a file that the kernel takes for no program: one of another machine, or of another system.
std::string what_it_is(const std::string& path) {
  const FileBeginning begin = beginning_of(path);
  if (!begin.is_elf()) return "it is neither a program for Linux nor a script";
  const bool big_endian = begin.bytes[EI_DATA] == ELFDATA2MSB;
  const unsigned low = begin.bytes[big_endian ? 19 : 18];
  const unsigned high = begin.bytes[big_endian ? 18 : 19];
  utsname own{};
  ::uname(&own);
  const std::string machine = machine_name(high << 8 | low);
  if (machine == own.machine) return "its ELF headers are damaged";
  return fmt::format("it is a program for the machine {}, and this one is {}", machine, own.machine);
}

std::string not_found(const std::string& name, const std::string& search_path, const std::string& folder) {
  const int reason = why_not_executable(in_folder(folder, name));
  if (reason == 0) return fmt::format("{}: not found in PATH; did you mean ./{}?", name, name);
  if (reason == EACCES)
    return fmt::format("{}: not found in PATH; did you mean ./{}, which is not executable (chmod +x)?", name, name);
  return fmt::format("{}: not found in PATH ({})", name, search_path);
}

}  // namespace

bool FileBeginning::is_elf() const noexcept { return size >= 20 && std::memcmp(bytes.data(), ELFMAG, SELFMAG) == 0; }

bool FileBeginning::is_text() const noexcept {
  return std::find(bytes.begin(), bytes.begin() + size, '\0') == bytes.begin() + size;
}

FileBeginning beginning_of(const std::string& path) noexcept {
  FileBeginning begin;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const ssize_t got = file ? ::read(file.get(), begin.bytes.data(), begin.bytes.size()) : 0;
  begin.size = std::max<ssize_t>(0, got);
  return begin;
}

ProgramPath cannot_execute(const std::string& path, int reason) {
  if (reason == ENOENT || reason == ENOTDIR) {
    // The file itself may be there: then its interpreter (#! line or ELF loader) is not.
    const bool there = ::access(path.c_str(), F_OK) == 0;
    return {path, 127, fmt::format("{}: {}", path, there ? "its interpreter is not there" : "no such file")};
  }
  const std::string why = reason == ENOEXEC ? what_it_is(path) : std::strerror(reason);
  return {path, 126, fmt::format("{}: cannot be executed: {}", path, why)};
}

ProgramPath find_program(const std::string& name, const std::string& search_path, const std::string& folder) {
  if (name.find('/') != std::string::npos) {
    const std::string path = in_folder(folder, name);
    const int reason = why_not_executable(path);
    return reason == 0 ? ProgramPath{path, 0, ""} : cannot_execute(path, reason);
  }
  ProgramPath refused{name, 127, ""};
  for (size_t begin = 0; begin <= search_path.size();) {
    const size_t end = std::min(search_path.find(':', begin), search_path.size());
    const std::string entry = search_path.substr(begin, end - begin);
    begin = end + 1;
    const std::string path = in_folder(folder, (entry.empty() ? "." : entry) + "/" + name);
    const int reason = why_not_executable(path);
    if (reason == 0) return {path, 0, ""};
    if (reason == EACCES) refused = cannot_execute(path, reason);
  }
  if (refused.text.empty()) refused.text = not_found(name, search_path, folder);
  return refused;
}

}  // namespace ibcoll::run
