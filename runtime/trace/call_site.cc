// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/trace/call_site.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <string_view>

#include "runtime/base/start_folder.h"
#include "runtime/trace/python_line.h"

namespace ibcoll {
namespace {

// Beginnings of file names: ibcoll's own, then Open MPI's, then those of MPICH and its relatives. "libmpi." and
// "libmpi_" are of both. The bindings for Fortran are among them.
constexpr std::array<std::string_view, 12> kOfMpi = {"libibcoll", "mca_",       "libmca_",   "libopen-",
                                                     "libompi",   "libmpi.",    "libmpi_",   "libmpich",
                                                     "libpmpi",   "libmpifort", "libmpicxx", "libmpigf"};

// "" also for the program itself, and for code that the program has generated.
const char* file_of(const void* address) noexcept {
  dl_find_object found{};
  const bool is_known = ::_dl_find_object(const_cast<void*>(address), &found) == 0 && found.dlfo_link_map != nullptr;
  return is_known ? found.dlfo_link_map->l_name : "";
}

struct Caller {
  const void* address;
  const char* file;
};

_Unwind_Reason_Code look_at_frame(_Unwind_Context* frame, void* result) noexcept {
  const auto* const address = reinterpret_cast<const void*>(::_Unwind_GetIP(frame));
  const char* const file = file_of(address);
  if (serves_mpi(file)) return _URC_NO_REASON;
  *static_cast<Caller*>(result) = {address, file};
  return _URC_END_OF_STACK;
}

// All calls of a program of Python come from the same few places in mpi4py.
bool is_python_binding(const char* file) noexcept { return std::strstr(file, "/mpi4py/") != nullptr; }

// A loaded file, found by an address in it.
struct Module {
  uintptr_t address = 0;
  CodeLocation location = {};
};

bool has_address(const dl_phdr_info& file, uintptr_t address) noexcept {
  return std::any_of(file.dlpi_phdr, file.dlpi_phdr + file.dlpi_phnum, [&](const ElfW(Phdr) & part) {
    return part.p_type == PT_LOAD && address - file.dlpi_addr - part.p_vaddr < part.p_memsz;
  });
}

std::string path_of_module(const char* name) {
  if (*name != '\0') return from_start_folder(name);  // relative where LD_LIBRARY_PATH is
  std::array<char, PATH_MAX> path;
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  return length < 0 ? "" : std::string(path.data(), static_cast<size_t>(length));
}

// "" where no note of the segment is a build id.
std::string build_id_in(const char* notes, size_t bytes, size_t align) {
  const auto padded = [align](size_t size) { return (size + align - 1) / align * align; };
  for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes;) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof note);
    const char* const name = notes + at + sizeof note;
    const size_t before = padded(sizeof note + note.n_namesz);
    if (before + note.n_descsz > bytes - at) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
        std::memcmp(name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0) {
      std::string text;
      for (size_t i = 0; i < note.n_descsz; ++i)
        text += fmt::format("{:02x}", static_cast<unsigned char>(notes[at + before + i]));
      return text;
    }
    at += before + padded(note.n_descsz);
  }
  return "";
}

int look_at_file(dl_phdr_info* file, size_t, void* wanted) {
  Module& module = *static_cast<Module*>(wanted);
  if (!has_address(*file, module.address)) return 0;
  CodeLocation& location = module.location;
  location.module = path_of_module(file->dlpi_name);
  location.offset = module.address - file->dlpi_addr;
  for (int i = 0; i < file->dlpi_phnum && location.build_id.empty(); ++i) {
    const ElfW(Phdr)& part = file->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const auto* const notes = reinterpret_cast<const char*>(file->dlpi_addr + part.p_vaddr);
    location.build_id = build_id_in(notes, part.p_memsz, part.p_align == 8 ? 8 : 4);
  }
  return 1;
}

}  // namespace

bool serves_mpi(const char* path) noexcept {
  const char* const slash = std::strrchr(path, '/');
  const std::string_view name = slash ? slash + 1 : path;
  return std::any_of(kOfMpi.begin(), kOfMpi.end(), [name](std::string_view start) { return name.starts_with(start); });
}

const void* program_call_site(const void* returns_to) noexcept {
  if (!serves_mpi(file_of(returns_to))) return returns_to;
  Caller caller{returns_to, ""};
  ::_Unwind_Backtrace(look_at_frame, &caller);
  if (is_python_binding(caller.file))
    if (const PythonLine* const line = current_python_line()) return line;
  return caller.address;
}

CodeLocation location_of(const void* address) {
  Module module{reinterpret_cast<uintptr_t>(address)};
  if (::dl_iterate_phdr(look_at_file, &module) == 0) return {};
  Dl_info info{};
  if (::dladdr(address, &info) != 0 && info.dli_sname)
    module.location.symbol =
        fmt::format("{}+{:#x}", info.dli_sname, module.address - reinterpret_cast<uintptr_t>(info.dli_saddr));
  return module.location;
}

}  // namespace ibcoll
