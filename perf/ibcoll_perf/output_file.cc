// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "perf/follow_links.h"
#include "perf/ibcoll_perf/report.h"

namespace ibcoll::perf {
namespace {

std::string failure(const std::string& path, int error) {
  return fmt::format("{}: {}", path.empty() ? "standard output" : path, std::strerror(error));
}

// The mode that open(2) would have given a new file.
mode_t new_file_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace

OutputFile::~OutputFile() {
  if (file_ != nullptr && file_ != stdout) std::fclose(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

std::string OutputFile::open(const std::string& path) {
  file_ = stdout;
  if (path.empty()) return {};
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    file_ = std::fopen(path.c_str(), "we");
    if (file_ == nullptr) return failure(path, errno);
    path_ = path;
    return {};
  }
  path_ = follow_links(path).string();
  std::string name = path_ + ".XXXXXX";
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return failure(path_, errno);
  temporary_ = name;
  if (::fchmod(fd, exists ? status.st_mode & 07777 : new_file_mode()) != 0) error_ = errno;
  file_ = ::fdopen(fd, "w");
  if (file_ == nullptr) {
    const int error = errno;
    ::close(fd);
    return failure(path_, error);
  }
  return {};
}

void OutputFile::write(const std::string& text) {
  if (error_ != 0) return;
  // Line by line, so that a long run can be watched.
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0) error_ = errno;
}

std::string OutputFile::commit() {
  if (error_ == 0 && !temporary_.empty() && ::fsync(::fileno(file_)) != 0) error_ = errno;
  if (file_ != stdout && std::fclose(file_) != 0 && error_ == 0) error_ = errno;
  file_ = nullptr;
  if (error_ == 0 && !temporary_.empty() && ::rename(temporary_.c_str(), path_.c_str()) != 0) error_ = errno;
  if (error_ != 0) return failure(path_, error_) + "; the figures were not written there";
  temporary_.clear();
  return {};
}

}  // namespace ibcoll::perf
