// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/secret_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <string_view>

#include "runtime/base/unique_fd.h"

namespace ibcoll::run {
namespace {

constexpr std::string_view kName = "ibcoll_run.XXXXXX";

// The file, locked; none: it cannot be written.
UniqueFd write_secret(const std::string& path, const rendezvous::Secret& secret) {
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file || ::write(file.get(), secret.data(), secret.size()) != static_cast<ssize_t>(secret.size())) return {};
  ::flock(file.get(), LOCK_EX | LOCK_NB);
  return file;
}

// A folder of this user that is older than the time between its creation and the lock of its file.
bool may_be_left(const std::filesystem::path& folder) {
  constexpr time_t kYoung = 60;
  struct stat about {};
  const std::string name = folder.filename();
  return name.size() == kName.size() && name.starts_with(kName.substr(0, kName.find('X'))) &&
         ::lstat(folder.c_str(), &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == ::geteuid() &&
         about.st_mtime + kYoung < ::time(nullptr);
}

// False: its launcher lives, or that cannot be known.
bool is_left(const std::string& file) {
  const UniqueFd secret(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return secret ? ::flock(secret.get(), LOCK_EX | LOCK_NB) == 0 : errno == ENOENT;
}

}  // namespace

void SecretFolder::make(const rendezvous::Secret& secret) {
  for (const char* parent : std::array<const char*, 3>{::getenv("XDG_RUNTIME_DIR"), ::getenv("TMPDIR"), "/tmp"}) {
    if (parent == nullptr || *parent != '/') continue;
    sweep(parent);
    std::string name = std::string(parent) + "/" + std::string(kName);
    if (::mkdtemp(name.data()) == nullptr) continue;  // its mode is 0700
    lock_ = write_secret(file_in(name), secret);
    if (lock_) {
      folder_ = name;
      return;
    }
    remove(name);
  }
}

void SecretFolder::sweep(const std::string& parent) {
  std::error_code ignored;  // nothing depends on it
  for (auto entry = std::filesystem::directory_iterator(parent, ignored);
       entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    const std::string folder = entry->path();
    if (may_be_left(folder) && is_left(file_in(folder))) remove(folder);
  }
}

void SecretFolder::remove(const std::string& folder) noexcept {
  if (folder.empty()) return;
  ::unlink(file_in(folder).c_str());
  ::rmdir(folder.c_str());
}

}  // namespace ibcoll::run
