// SPDX-License-Identifier: BSD-3-Clause
// A file that is written beside another one and then takes its place.
#pragma once

#include <string>

namespace ibcoll {

// Unless replace() succeeded, the file is removed: by the destructor, and when SIGINT, SIGTERM or SIGHUP ends the
// process.
class TemporaryFile {
 public:
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { remove(); }

  // A new file beside `path`, open for writing. -1: errno says why.
  int create(const std::string& path);
  bool exists() const { return slot_ >= 0; }
  // Gives it the name `path`. False: errno says why.
  bool replace(const std::string& path);

 private:
  void remove();
  int slot_ = -1;
};

}  // namespace ibcoll
