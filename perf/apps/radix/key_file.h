// SPDX-License-Identifier: BSD-3-Clause
// The two files: keys in, and keys out through a temporary file that takes the output's name only when it is whole.
#pragma once

#include <cstdint>
#include <string>

#include "perf/apps/layer/library.h"

namespace radix {

using apps::Error;

// Owns a file descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) noexcept : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  int get() const noexcept { return fd_; }
  int release() noexcept;

 private:
  int fd_;
};

class InputFile {
 public:
  // Fails on what cannot be read or is no regular file, and on a length that is no multiple of 4 bytes.
  Error open(const std::string& path);
  uint64_t keys() const noexcept { return keys_; }
  // Keys [first, first + count) into `keys`.
  Error read(uint32_t* keys, uint64_t first, uint64_t count) const;

 private:
  std::string path_;
  FileDescriptor fd_;
  uint64_t keys_ = 0;
};

// Rank 0 creates and renames; every rank opens the same file and writes its part. Until rename() succeeded an existing
// output is as it was; if it does not come to that, the temporary file goes: on return, on SIGINT, SIGTERM and SIGHUP.
class OutputFile {
 public:
  OutputFile() = default;
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Rank 0: names a temporary file beside `path`. It does not exist yet.
  Error choose(const std::string& path);
  // Every rank, before the file exists: from here on each rank removes it when it ends early, even if rank 0 was
  // killed.
  void guard(std::string temporary);
  // Rank 0: the file, with room for `keys` keys on its disk.
  Error create(uint64_t keys);
  // The other ranks: rank 0's file.
  Error open();
  const std::string& temporary() const noexcept { return temporary_; }
  // Keys to position `first`, and on to the disk.
  Error write(const uint32_t* keys, uint64_t first, uint64_t count) const;
  // Rank 0, after all ranks have written.
  Error rename();
  // All ranks, after that: there is no temporary file to remove any more.
  void keep();

 private:
  std::string path_;       // as the user gave it, symbolic links followed
  std::string temporary_;  // empty: nothing to remove
  FileDescriptor fd_;
};

}  // namespace radix
