// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/base/start_folder.h"

#include <filesystem>
#include <system_error>

namespace ibcoll {
namespace {

const std::filesystem::path& start_folder() {
  static const auto& folder = *[] {
    std::error_code failure;  // of a directory that was removed: paths stay relative
    return new std::filesystem::path(std::filesystem::current_path(failure));
  }();
  return folder;
}
// Before main(): the program has not changed its directory yet.
[[gnu::constructor]] void remember_start_folder() { (void)start_folder(); }

}  // namespace

std::string from_start_folder(const std::string& path) { return (start_folder() / path).string(); }

}  // namespace ibcoll
