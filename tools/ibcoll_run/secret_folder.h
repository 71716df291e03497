// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "bootstrap/rendezvous_protocol.h"
#include "runtime/base/unique_fd.h"

namespace ibcoll::run {

// The job secret as a file that only this user can read, in a folder that only this user can enter: for programs that
// are started by a wrapper which closes the descriptor of the secret.
class SecretFolder {
 public:
  SecretFolder() = default;
  SecretFolder(const SecretFolder&) = delete;
  SecretFolder& operator=(const SecretFolder&) = delete;
  ~SecretFolder() { remove(folder_); }

  // In XDG_RUNTIME_DIR, TMPDIR or /tmp, the first that takes it. Where none does there is no file: the descriptor is
  // the only way. First removes the folders of jobs there that ended without doing so, as when all was killed at once.
  void make(const rendezvous::Secret& secret);
  const std::string& folder() const { return folder_; }
  // "" where there is none.
  std::string file() const { return folder_.empty() ? "" : file_in(folder_); }

  // Removes a folder, also of another process. "": nothing to do.
  static void remove(const std::string& folder) noexcept;

 private:
  static void sweep(const std::string& parent);
  static std::string file_in(const std::string& folder) { return folder + "/secret"; }

  std::string folder_;
  UniqueFd lock_;  // of the file, while this process lives
};

}  // namespace ibcoll::run
