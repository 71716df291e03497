// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/job_secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>

#include "runtime/base/unique_fd.h"

namespace ibcoll {
namespace {

using rendezvous::Secret;

// A process that a rank starts inherits the variable but not the descriptor: the number may be any file of its own by
// then, which must be neither read nor closed.
bool is_secret_file(int fd) {
  char target[PATH_MAX];
  const ssize_t length = ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), target, sizeof(target));
  const std::string expected = fmt::format("/memfd:{}", rendezvous::kSecretFileName);
  return length > 0 && std::string_view(target, static_cast<size_t>(length)).starts_with(expected) &&
         ::fcntl(fd, F_GET_SEALS) >= 0;
}

// The number in IBCOLL_RUN_SECRET_FD, where the secret is there; else none.
UniqueFd inherited_file() {
  const char* text = std::getenv(rendezvous::kSecretVariable);
  int number = -1;
  if (text != nullptr) {
    const char* end = text + std::strlen(text);
    const auto [rest, reason] = std::from_chars(text, end, number);
    if (reason != std::errc() || rest != end) number = -1;
  }
  return UniqueFd(number >= 0 && is_secret_file(number) ? number : -1);
}

// The file of IBCOLL_RUN_SECRET_FILE: only this user can have made it, and can read it.
Result<UniqueFd> private_file() {
  const char* path = std::getenv(rendezvous::kSecretPathVariable);
  const auto failed = [path](std::string_view why) {
    return error(IBCOLL_ERR_BOOTSTRAP, "no job secret: {} is closed, perhaps by a wrapper, and {}={}: {}",
                 rendezvous::kSecretVariable, rendezvous::kSecretPathVariable, path == nullptr ? "" : path, why);
  };
  if (path == nullptr || *path == '\0')
    return failed("no file, as neither XDG_RUNTIME_DIR nor TMPDIR nor /tmp takes one");
  UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0) return failed(std::strerror(errno));
  if (!S_ISREG(about.st_mode) || about.st_uid != ::geteuid() || (about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return failed("not a file that this user alone can read");
  return file;
}

Result<Secret> read_secret() {
  Result<UniqueFd> file = inherited_file();
  if (!*file) file = private_file();
  if (!file.ok()) return file.status();
  Secret secret;
  // Not read(): the ranks share one open file, hence one position.
  const ssize_t got = ::pread(file->get(), secret.data(), secret.size(), 0);
  if (got == static_cast<ssize_t>(secret.size())) return secret;
  return error(IBCOLL_ERR_BOOTSTRAP, "the job secret cannot be read: {}",
               got < 0 ? std::strerror(errno) : "it is too short");
}

}  // namespace

Result<Secret> job_secret() {
  static std::mutex mutex;
  static std::optional<Secret> remembered;
  const std::lock_guard lock(mutex);
  if (remembered) return *remembered;
  Result<Secret> secret = read_secret();
  if (secret.ok()) remembered = secret.value();
  return secret;
}

}  // namespace ibcoll
