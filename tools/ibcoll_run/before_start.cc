// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/before_start.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>

#include "runtime/base/byte_order_mark.h"
#include "runtime/base/unique_fd.h"
#include "tools/ibcoll_run/timeouts.h"

namespace ibcoll::run {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr size_t kLargestFile = size_t{16} << 20;
constexpr auto kSilence = 1s;  // then the user learns what is waited for

Deadline after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void end_when_interrupted() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, number);
  const timespec now{};
  const int number = ::sigtimedwait(&ends, nullptr, &now);
  if (number <= 0) return;
  ::signal(number, SIG_DFL);
  ::raise(number);
  ::sigprocmask(SIG_UNBLOCK, &ends, nullptr);
}

// The child of look_up(): getaddrinfo() can neither be interrupted nor given a timeout.
[[noreturn]] void look_up_into(int pipe, const std::string& host) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_UNBLOCK, &all, nullptr);
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int reason = ::getaddrinfo(host.c_str(), "9", &hints, &found);
  for (const addrinfo* entry = found; reason == 0 && entry != nullptr; entry = entry->ai_next) {
    SocketAddress address;
    address.length = std::min<socklen_t>(entry->ai_addrlen, sizeof(address.storage));
    std::memcpy(&address.storage, entry->ai_addr, address.length);
    if (::write(pipe, &address, sizeof(address)) < 0) ::_exit(1);
  }
  ::_exit(reason == 0 ? 0 : 1);
}

Result<std::vector<SocketAddress>> receive_addresses(int pipe, const std::string& host) {
  const double seconds = timeouts_or_default().name_server;
  const Deadline deadline = after(seconds);
  bool reported = false;
  std::vector<SocketAddress> addresses;
  for (;;) {
    Status status = wait_readable(pipe, reported ? deadline : Clock::now() + kSilence);
    if (!status.ok() && !reported) {
      std::fprintf(stderr, "ibcoll_run: looking up the address of host %s\n", host.c_str());
      reported = true;
      continue;
    }
    if (!status.ok())
      return error(IBCOLL_ERR_TIMEOUT, "host {}: the name server does not answer within {} s", host, seconds);
    SocketAddress address;
    const ssize_t got = ::read(pipe, &address, sizeof(address));
    if (got != sizeof(address)) break;
    addresses.push_back(address);
  }
  if (addresses.empty()) return error(IBCOLL_ERR_SYSTEM, "host {}: no address known", host);
  return addresses;
}

}  // namespace

Status wait_readable(int fd, Deadline deadline) {
  constexpr auto kPause = 50ms;
  for (;;) {
    end_when_interrupted();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left <= 0ms) return error(IBCOLL_ERR_TIMEOUT, "nothing came in time");
    pollfd entry{fd, POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min<int64_t>(left.count(), kPause.count())));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return error(IBCOLL_ERR_SYSTEM, "poll: {}", std::strerror(errno));
  }
}

Result<std::string> read_text_file(const std::string& path) {
  const auto failed = [&path](std::string_view why) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: cannot be read: {}", path, why);
  };
  // O_NONBLOCK: a pipe without a writer does not block open(). Nor is it at its end before a writer has closed it.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0) return failed(std::strerror(errno));
  if (S_ISDIR(about.st_mode)) return failed("not a file");
  const double seconds = timeouts_or_default().file;
  const Deadline deadline = after(seconds);
  std::string text;
  std::vector<char> buffer(size_t{1} << 16);
  for (;;) {
    if (!wait_readable(file.get(), deadline).ok())
      return failed(fmt::format("no end of it within {} s; is it a pipe that nobody writes to, or closes?", seconds));
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got == 0) return std::string(without_byte_order_mark(text));
    if (got < 0 && errno != EAGAIN && errno != EINTR) return failed(std::strerror(errno));
    text.append(buffer.data(), static_cast<size_t>(std::max<ssize_t>(0, got)));
    if (text.size() > kLargestFile) return failed("it is above 16 MB, more than a list of hosts has");
  }
}

Result<std::vector<SocketAddress>> look_up(const std::string& host) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return error(IBCOLL_ERR_SYSTEM, "pipe2: {}", std::strerror(errno));
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return error(IBCOLL_ERR_SYSTEM, "fork: {}", std::strerror(errno));
  if (child == 0) look_up_into(write_end.get(), host);
  write_end.reset();
  Result<std::vector<SocketAddress>> addresses = receive_addresses(read_end.get(), host);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return addresses;
}

}  // namespace ibcoll::run
