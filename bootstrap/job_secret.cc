// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/job_secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

Result<Secret> read_secret() {
  const char* text = std::getenv(rendezvous::kSecretVariable);
  int number = -1;
  if (text != nullptr) {
    const char* end = text + std::strlen(text);
    const auto [rest, reason] = std::from_chars(text, end, number);
    if (reason != std::errc() || rest != end) number = -1;
  }
  if (number < 0 || !is_secret_file(number)) {
    return error(IBCOLL_ERR_BOOTSTRAP,
                 "{}={}: no job secret there; only the program that ibcoll_run starts has it, not what that program "
                 "starts in turn, and a wrapper between must leave the descriptor open",
                 rendezvous::kSecretVariable, text == nullptr ? "" : text);
  }
  const UniqueFd fd(number);
  Secret secret;
  // Not read(): the ranks share one open file, hence one position.
  const ssize_t got = ::pread(fd.get(), secret.data(), secret.size(), 0);
  if (got != static_cast<ssize_t>(secret.size())) {
    return error(IBCOLL_ERR_BOOTSTRAP, "{}={}: the job secret cannot be read: {}", rendezvous::kSecretVariable, text,
                 got < 0 ? std::strerror(errno) : "it is too short");
  }
  return secret;
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
