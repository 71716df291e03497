// SPDX-License-Identifier: BSD-3-Clause
// Has a function of the C library been patched? Libraries that want to be notified of unmappings write a jump over the
// first bytes of munmap(). After a second library does the same, the first one is no longer notified.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

namespace ibcoll {

class HookedFunction {
 public:
  // `name`: a function of the C library.
  explicit HookedFunction(const char* name);

  // False: the code is as in the file of the library. True also where that is not known: no such function, no such
  // file.
  bool patched() const;

  // Remembers the code as it is now; unchanged() compares.
  void remember() {
    if (code_ != nullptr) std::memcpy(remembered_.data(), code_, kBytes);
  }
  const void* code() const { return code_; }
  bool unchanged() const { return code_ != nullptr && std::memcmp(remembered_.data(), code_, kBytes) == 0; }

 private:
  static constexpr size_t kBytes = 16;  // any jump is shorter
  const void* code_ = nullptr;
  std::array<std::byte, kBytes> remembered_{};
};

}  // namespace ibcoll
