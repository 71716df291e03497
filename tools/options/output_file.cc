// SPDX-License-Identifier: BSD-3-Clause
#include "tools/options/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/options/follow_links.h"

namespace ibcoll {
namespace {

std::string failure(const std::string& path, int error) {
  return fmt::format("cannot write {}: {}", path.empty() ? "to standard output" : path, std::strerror(error));
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
}

void OutputFile::keep_error(bool failed) {
  if (failed && error_ == 0) error_ = errno != 0 ? errno : EIO;
}

std::string OutputFile::open(const std::string& path) {
  file_ = stdout;
  if (path.empty()) return {};
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    path_ = path;
    file_ = std::fopen(path.c_str(), "we");
    return file_ == nullptr ? failure(path, errno) : std::string();
  }
  path_ = follow_links(path).string();
  file_ = nullptr;
  // rename() would replace a file that the user has protected.
  if (exists && ::access(path_.c_str(), W_OK) != 0) return failure(path_, errno);
  const int fd = temporary_.create(path_);
  if (fd < 0) return failure(path_, errno);
  keep_error(::fchmod(fd, exists ? status.st_mode & 07777 : new_file_mode()) != 0);
  file_ = ::fdopen(fd, "w");
  if (file_ != nullptr) return {};
  const int error = errno;
  ::close(fd);
  return failure(path_, error);
}

void OutputFile::write(std::string_view text) {
  if (error_ == 0) keep_error(std::fwrite(text.data(), 1, text.size(), file_) != text.size());
}

bool OutputFile::flush() {
  if (error_ == 0) keep_error(std::fflush(file_) != 0);
  return error_ == 0;
}

std::string OutputFile::commit() {
  flush();
  if (error_ == 0 && temporary_.exists()) keep_error(::fsync(::fileno(file_)) != 0);
  // Some file systems report only here that they are full.
  if (file_ != stdout) keep_error(std::fclose(file_) != 0);
  file_ = nullptr;
  if (error_ == 0 && temporary_.exists()) keep_error(!temporary_.replace(path_));
  return error_ == 0 ? std::string() : failure(path_, error_);
}

std::string print_all(std::string_view text) {
  OutputFile output;
  output.open("");
  output.write(text);
  return output.commit();
}

}  // namespace ibcoll
