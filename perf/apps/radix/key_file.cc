// SPDX-License-Identifier: BSD-3-Clause
#include "perf/apps/radix/key_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

#include "tools/options/follow_links.h"

namespace radix {
namespace {

constexpr uint64_t kKeyBytes = sizeof(uint32_t);
// A single read or write moves at most 0x7ffff000 bytes.
constexpr uint64_t kLargestTransfer = uint64_t{1} << 30;

// The path of the file that the signal handler removes: a fixed array, as a handler may not touch a std::string.
std::array<char, PATH_MAX> removed_on_signal{};

extern "C" void remove_and_die(int signal) {
  if (removed_on_signal[0] != '\0') unlink(removed_on_signal.data());
  std::signal(signal, SIG_DFL);
  raise(signal);
}

Error failed(const char* what, const std::string& path, int number) {
  return fmt::format("{} {}: {}", what, path, std::strerror(number));
}

std::string directory_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// Permissions of a new file: what the user's mask says.
mode_t new_file_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.release();
  }
  return *this;
}

int FileDescriptor::release() noexcept { return std::exchange(fd_, -1); }

Error InputFile::open(const std::string& path) {
  path_ = path;
  fd_ = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a FIFO must not block here
  if (fd_.get() < 0) return failed("cannot read", path, errno);
  struct stat about {};
  if (fstat(fd_.get(), &about) != 0) return failed("cannot read", path, errno);
  if (!S_ISREG(about.st_mode)) return fmt::format("{} is not a regular file; copy the keys into one first", path);
  const auto bytes = static_cast<uint64_t>(about.st_size);
  if (bytes % kKeyBytes != 0) {
    return fmt::format("{} is {} bytes long, no multiple of 4: it does not hold whole 32-bit keys; cut or pad it first",
                       path, bytes);
  }
  keys_ = bytes / kKeyBytes;
  return {};
}

Error InputFile::read(uint32_t* keys, uint64_t first, uint64_t count) const {
  char* to = reinterpret_cast<char*>(keys);
  uint64_t offset = first * kKeyBytes, left = count * kKeyBytes;
  while (left > 0) {
    const ssize_t got = pread(fd_.get(), to, std::min(left, kLargestTransfer), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("reading", path_, errno);
    if (got == 0) return fmt::format("{} became shorter while it was read", path_);
    to += got;
    offset += static_cast<uint64_t>(got);
    left -= static_cast<uint64_t>(got);
  }
  return {};
}

OutputFile::~OutputFile() {
  // On every rank: the first one that ends removes the file, in case rank 0 has died.
  if (!temporary_.empty()) unlink(temporary_.c_str());
  removed_on_signal[0] = '\0';
}

void OutputFile::guard(std::string temporary) {
  temporary_ = std::move(temporary);
  std::copy_n(temporary_.c_str(), temporary_.size() + 1, removed_on_signal.begin());
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})  // but for what is ignored, as nohup has it
    if (std::signal(signal, remove_and_die) == SIG_IGN) std::signal(signal, SIG_IGN);
}

Error OutputFile::choose(const std::string& path) {
  struct stat existing {};
  if (stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode))
    return fmt::format("{} exists and is not a regular file; name another output", path);
  path_ = follow_links(path).string();  // the file that a symbolic link points to is replaced, not the link
  std::random_device random;
  const uint64_t tag = static_cast<uint64_t>(random()) << 32 | random();
  temporary_ = fmt::format("{}/.ibcoll_radix.{:016x}", directory_of(path_), tag);
  if (temporary_.size() >= removed_on_signal.size()) return failed("cannot write", path, ENAMETOOLONG);
  return {};
}

Error OutputFile::create(uint64_t keys) {
  fd_ = FileDescriptor(::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd_.get() < 0) {
    const int number = errno;
    return failed(fmt::format("cannot create a file in {} for", directory_of(path_)).c_str(), path_, number);
  }
  // Reserved now, so that a full disk is found before the work.
  const int full = keys == 0 ? 0 : posix_fallocate(fd_.get(), 0, static_cast<off_t>(keys * kKeyBytes));
  if (full != 0) return failed(fmt::format("no room for {} bytes for", keys * kKeyBytes).c_str(), path_, full);
  return {};
}

Error OutputFile::open() {
  fd_ = FileDescriptor(::open(temporary_.c_str(), O_WRONLY | O_CLOEXEC));
  if (fd_.get() >= 0) return {};
  const int number = errno;
  return failed("rank 0's file is not to be had here; all hosts must share the directory:", temporary_, number);
}

Error OutputFile::write(const uint32_t* keys, uint64_t first, uint64_t count) const {
  const char* from = reinterpret_cast<const char*>(keys);
  uint64_t offset = first * kKeyBytes, left = count * kKeyBytes;
  while (left > 0) {
    const ssize_t put = pwrite(fd_.get(), from, std::min(left, kLargestTransfer), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return failed("writing", temporary_, errno);
    from += put;
    offset += static_cast<uint64_t>(put);
    left -= static_cast<uint64_t>(put);
  }
  if (fsync(fd_.get()) != 0) return failed("writing to the disk", temporary_, errno);
  return {};
}

Error OutputFile::rename() {
  // Owner and permissions are those of the file that it replaces. The owner first, as giving a file away takes away
  // some of the permissions; where this process may not, the file stays its own.
  struct stat existing {};
  const bool replaces = stat(path_.c_str(), &existing) == 0;
  [[maybe_unused]] const bool given = replaces && fchown(fd_.get(), existing.st_uid, existing.st_gid) == 0;
  if (fchmod(fd_.get(), replaces ? existing.st_mode & 07777 : new_file_mode()) != 0)
    return failed("cannot set the permissions of", temporary_, errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    return failed("cannot rename the temporary file to", path_, errno);
  // The new name is there for every process; that it survives a power failure is for the directory's fsync to see to,
  // which not every file system offers.
  const FileDescriptor directory(::open(directory_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) fsync(directory.get());
  return {};
}

void OutputFile::keep() {
  removed_on_signal[0] = '\0';
  temporary_.clear();
}

}  // namespace radix
