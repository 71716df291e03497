// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/secret_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "runtime/base/unique_fd.h"

namespace ibcoll::run {
namespace {

bool write_secret(const std::string& path, const rendezvous::Secret& secret) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  return file && ::write(file.get(), secret.data(), secret.size()) == static_cast<ssize_t>(secret.size());
}

}  // namespace

void SecretFolder::make(const rendezvous::Secret& secret) {
  for (const char* parent : std::array<const char*, 3>{::getenv("XDG_RUNTIME_DIR"), ::getenv("TMPDIR"), "/tmp"}) {
    if (parent == nullptr || *parent != '/') continue;
    std::string name = std::string(parent) + "/ibcoll_run.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) continue;  // its mode is 0700
    if (write_secret(file_in(name), secret)) {
      folder_ = name;
      return;
    }
    remove(name);
  }
}

void SecretFolder::remove(const std::string& folder) noexcept {
  if (folder.empty()) return;
  ::unlink(file_in(folder).c_str());
  ::rmdir(folder.c_str());
}

}  // namespace ibcoll::run
