// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/base/build_info.h"

#include <fmt/format.h>

#include "runtime/include/ibcoll.h"

namespace ibcoll {
namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "clang " __clang_version__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

#if defined(__x86_64__)
constexpr const char* kArchitecture = "x86_64";
#elif defined(__aarch64__)
constexpr const char* kArchitecture = "aarch64";
#else
constexpr const char* kArchitecture = "other";
#endif

}  // namespace

// The texts IBCOLL_BUILD_* come from runtime/CMakeLists.txt.
Json build_json() {
  return {{"version", fmt::format("{}.{}.{}", IBCOLL_VERSION_MAJOR, IBCOLL_VERSION_MINOR, IBCOLL_VERSION_PATCH)},
          {"compiler", kCompiler},
          {"build_type", IBCOLL_BUILD_TYPE},
          {"sanitizers", IBCOLL_BUILD_SANITIZERS},
          {"architecture", kArchitecture}};
}

}  // namespace ibcoll
