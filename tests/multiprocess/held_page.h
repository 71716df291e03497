// SPDX-License-Identifier: BSD-3-Clause
// A page of this process that is missing until the test gives it back: an access waits, by the kernel too. So a
// process can be kept in the middle of a copy by process_vm_writev for as long as the test likes.
#pragma once

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace ibcoll::multiprocess {

class HeldPage {
 public:
  // Why there is none here; empty: there is. Without privileges the kernel holds no access of its own
  // (vm.unprivileged_userfaultfd), and that is the one that counts.
  static std::string missing() {
    const int descriptor = open();
    if (descriptor < 0) return std::string("userfaultfd: ") + std::strerror(errno);
    ::close(descriptor);
    return {};
  }

  // Takes away the first whole page of the memory. What it held is lost; it comes back as zeros.
  explicit HeldPage(std::byte* memory) : descriptor_(open()) {
    const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    page_ = {(reinterpret_cast<uint64_t>(memory) + page_bytes - 1) / page_bytes * page_bytes, page_bytes};
    uffdio_register registered{page_, UFFDIO_REGISTER_MODE_MISSING, 0};
    held_ = descriptor_ >= 0 && ::madvise(reinterpret_cast<void*>(page_.start), page_.len, MADV_DONTNEED) == 0 &&
            ::ioctl(descriptor_, UFFDIO_REGISTER, &registered) == 0;
  }
  HeldPage(const HeldPage&) = delete;
  HeldPage& operator=(const HeldPage&) = delete;
  ~HeldPage() {
    give_back();
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  bool held() const { return held_; }
  // For another thread than the one that is kept. False: no access within that time.
  bool is_touched(double seconds) const {
    pollfd entry{descriptor_, POLLIN, 0};
    uffd_msg message;
    return held_ && ::poll(&entry, 1, static_cast<int>(1000 * seconds)) == 1 &&
           ::read(descriptor_, &message, sizeof message) == sizeof message;
  }
  void give_back() {
    uffdio_zeropage zeros{page_, 0, 0};
    if (held_) ::ioctl(descriptor_, UFFDIO_ZEROPAGE, &zeros);
    held_ = false;
  }

 private:
  static int open() {
    const auto descriptor = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC));
    uffdio_api api{UFFD_API, 0, 0};
    if (descriptor < 0 || ::ioctl(descriptor, UFFDIO_API, &api) == 0) return descriptor;
    ::close(descriptor);
    return -1;
  }

  int descriptor_;
  uffdio_range page_{};
  bool held_ = false;
};

}  // namespace ibcoll::multiprocess
