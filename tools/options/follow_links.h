// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>

// The path at which a file of this name is written: symbolic links are followed, also to a file that does not exist
// yet.
inline std::filesystem::path follow_links(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as the kernel follows
  std::error_code none;
  for (int i = 0; i < kMostLinks && is_symlink(symlink_status(path, none)); ++i) {
    const std::filesystem::path target = read_symlink(path, none);
    if (none) break;
    path = path.parent_path() / target;  // or the target alone, when that is absolute
  }
  return path;
}
