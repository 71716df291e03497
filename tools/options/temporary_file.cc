// SPDX-License-Identifier: BSD-3-Clause
#include "tools/options/temporary_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace ibcoll {
namespace {

constexpr std::array<int, 3> kEnding = {SIGINT, SIGTERM, SIGHUP};

// Memory that stays where it is, so that a signal handler can read it at any time.
struct Slot {
  std::atomic<bool> used = false;
  std::array<char, PATH_MAX> name{};
};
std::array<Slot, 4> slots;  // more than any tool writes at a time

extern "C" void remove_and_end(int number) {
  for (const Slot& slot : slots)
    if (slot.used.load()) ::unlink(slot.name.data());
  ::raise(number);  // SA_RESETHAND: its default action comes next
}

// Signals that the process ignores, as under nohup, stay ignored. Those that it handles stay with their handler.
void handle_signals() {
  for (const int number : kEnding) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    struct sigaction action {};
    action.sa_handler = remove_and_end;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    ::sigaction(number, &action, nullptr);
  }
}

// While it exists, no such signal comes between the creation of a file and the note of its name.
class Blocked {
 public:
  Blocked() {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int number : kEnding) ::sigaddset(&set, number);
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;
  ~Blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

int TemporaryFile::create(const std::string& path) {
  remove();
  const std::string name = path + ".XXXXXX";
  const auto free = std::find_if(slots.begin(), slots.end(), [](const Slot& slot) { return !slot.used.load(); });
  if (free == slots.end() || name.size() >= free->name.size()) {
    errno = free == slots.end() ? EMFILE : ENAMETOOLONG;
    return -1;
  }
  handle_signals();
  const Blocked blocked;
  name.copy(free->name.data(), name.size());
  free->name[name.size()] = '\0';
  const int fd = ::mkostemp(free->name.data(), O_CLOEXEC);
  if (fd < 0) return -1;
  free->used.store(true);
  slot_ = static_cast<int>(free - slots.begin());
  return fd;
}

bool TemporaryFile::replace(const std::string& path) {
  Slot& slot = slots[static_cast<size_t>(slot_)];
  if (std::rename(slot.name.data(), path.c_str()) != 0) return false;
  slot.used.store(false);
  slot_ = -1;
  return true;
}

void TemporaryFile::remove() {
  if (slot_ < 0) return;
  Slot& slot = slots[static_cast<size_t>(slot_)];
  ::unlink(slot.name.data());
  slot.used.store(false);
  slot_ = -1;
}

}  // namespace ibcoll
