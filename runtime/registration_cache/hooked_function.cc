// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/registration_cache/hooked_function.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "runtime/machine/descriptors.h"

namespace ibcoll {
namespace {

// The file, and the offset in it, that the byte at an address comes from.
struct Origin {
  uint64_t address;
  std::string file;
  off_t offset = -1;
};

int find_origin(dl_phdr_info* library, size_t, void* argument) {
  auto& origin = *static_cast<Origin*>(argument);
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& segment = library->dlpi_phdr[i];
    const uint64_t begin = library->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || origin.address < begin || origin.address >= begin + segment.p_filesz) continue;
    origin.file = library->dlpi_name;
    origin.offset = static_cast<off_t>(segment.p_offset + (origin.address - begin));
    return 1;
  }
  return 0;
}

}  // namespace

HookedFunction::HookedFunction(const char* name) {
  // By the library's own handle: the address by which this file would call it may lead to another library already.
  void* const library = ::dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return;
  code_ = ::dlsym(library, name);
  ::dlclose(library);  // it stays loaded
}

bool HookedFunction::patched() const {
  if (code_ == nullptr) return true;
  Origin origin{reinterpret_cast<uint64_t>(code_), {}};
  if (::dl_iterate_phdr(find_origin, &origin) == 0) return true;
  const HighDescriptors high;
  const int file = ::open(origin.file.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  std::array<std::byte, kBytes> original{};
  const ssize_t got = ::pread(file, original.data(), kBytes, origin.offset);
  ::close(file);
  return got != static_cast<ssize_t>(kBytes) || std::memcmp(original.data(), code_, kBytes) != 0;
}

}  // namespace ibcoll
