// SPDX-License-Identifier: BSD-3-Clause
// Structs of the C interface grow at their end. A program that was compiled against another version passes a
// shorter or a longer one, and `struct_size` says how long it is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/base/status.h"
#include "runtime/include/ibcoll.h"

namespace ibcoll::api {

// The struct with zeros for what an older program does not know. INVALID_ARGUMENT: it is shorter than `least` bytes,
// which the first version had, or a newer program has set a field that this library does not know.
template <typename T>
Result<T> taken(const T& given, size_t least, const char* name) {
  constexpr size_t kMost = 4096;  // a larger value comes from a field that was never set
  size_t bytes = 0;
  std::memcpy(&bytes, &given, sizeof bytes);  // the first member of each
  if (bytes < least || bytes > kMost)
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}.struct_size is {}: set it to sizeof({}), {} bytes in this version",
                 name, bytes, name, sizeof(T));
  T all{};
  const auto* const memory = reinterpret_cast<const std::byte*>(&given);
  std::memcpy(&all, memory, std::min(bytes, sizeof(T)));
  if (bytes > sizeof(T) &&
      std::any_of(memory + sizeof(T), memory + bytes, [](std::byte b) { return b != std::byte{0}; }))
    return error(
        IBCOLL_ERR_INVALID_ARGUMENT,
        "{} has {} bytes, and this version of ibcoll knows {} of them: what is beyond is set, and would be ignored; "
        "use the library that the program was compiled for, or a newer one",
        name, bytes, sizeof(T));
  all.struct_size = sizeof(T);
  return all;
}

// `algorithm` was the last field of the first version.
inline Result<ibcoll_collective_args_t> taken_args(const ibcoll_collective_args_t& given) {
  constexpr size_t kFirst = offsetof(ibcoll_collective_args_t, algorithm) + sizeof given.algorithm;
  return taken(given, kFirst, "ibcoll_collective_args_t");
}

}  // namespace ibcoll::api
