// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/handover.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "runtime/machine/wait_loop.h"

namespace ibcoll::shm {
namespace {

constexpr size_t kMostCallers = 64;                     // at a time, that have sent nothing yet
constexpr uint64_t kLongestPollNs = 3'600'000'000'000;  // an hour; poll() takes milliseconds in an int
constexpr WaitStrategy kTryingAgain = WaitStrategy::sleeping(5'000'000);

// The message that a rank sends first.
struct Claim {
  uint64_t key;
  int64_t rank;  // local
};

struct Address {
  sockaddr_un address{};
  socklen_t length;
  explicit Address(const std::string& name) {
    address.sun_family = AF_UNIX;
    const size_t bytes = std::min(name.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, name.data(), bytes);  // a leading zero byte: abstract, not in the file system
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

bool same_user(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

// Waits until one of them is readable; false at the deadline.
bool ready(std::span<pollfd> entries, Deadline deadline, const Meanwhile& meanwhile) {
  for (bool moved = false;;) {
    const uint64_t left_ms = deadline.left_ns(kLongestPollNs) / 1'000'000;
    if (left_ms == 0) return false;
    const uint64_t slice_ms = !meanwhile ? left_ms : moved ? 0 : 1;
    const int count = ::poll(entries.data(), entries.size(), static_cast<int>(slice_ms));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
    if (meanwhile) moved = meanwhile();
  }
}

union Control {
  char bytes[CMSG_SPACE(sizeof(int))];
  cmsghdr align;
};

bool send_descriptor(int socket, int descriptor) {
  char byte = 1;
  iovec data{&byte, 1};
  Control control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

int receive_descriptor(int socket) {
  char byte = 0;
  iovec data{&byte, 1};
  Control control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  const cmsghdr* const head = CMSG_FIRSTHDR(&message);
  if (!head || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof(int))) return -1;
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
  return descriptor;
}

// Sends the segment to ranks that know the key.
class Server {
 public:
  Server(int listener, int segment, uint64_t key, int ranks)
      : listener_(listener), segment_(segment), key_(key), served_(static_cast<size_t>(ranks)) {
    callers_.reserve(kMostCallers);  // ranks wait for the leader, so it takes its memory first
    served_[0] = true;               // the leader
  }
  bool done() const { return std::find(served_.begin(), served_.end(), false) == served_.end(); }
  // Their names.
  std::vector<int> missing(std::span<const int> ranks) const {
    std::vector<int> names;
    for (size_t i = 0; i < served_.size(); ++i)
      if (!served_[i]) names.push_back(ranks[i]);
    return names;
  }
  // Until something has happened, or the deadline has passed: false.
  bool serve(Deadline deadline, const Meanwhile& meanwhile) {
    std::array<pollfd, 1 + kMostCallers> entries{{{listener_, POLLIN, 0}}};
    for (size_t i = 0; i < callers_.size(); ++i) entries[i + 1] = {callers_[i].get(), POLLIN, 0};
    if (!ready(std::span(entries).first(1 + callers_.size()), deadline, meanwhile)) return false;
    for (size_t i = callers_.size(); i-- > 0;)
      if (entries[i + 1].revents != 0) {
        answer(callers_[i].get());
        callers_.erase(callers_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    if (entries[0].revents != 0) take_caller();
    return true;
  }

 private:
  void take_caller() {
    UniqueFd caller(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (caller.get() < 0 || !same_user(caller.get())) return;
    if (callers_.size() == kMostCallers) callers_.erase(callers_.begin());  // a rank tries again
    callers_.push_back(std::move(caller));
  }
  void answer(int caller) {
    Claim claim{};
    if (::recv(caller, &claim, sizeof claim, MSG_DONTWAIT) != sizeof claim || claim.key != key_) return;
    if (claim.rank < 0 || claim.rank >= std::ssize(served_)) return;
    if (send_descriptor(caller, segment_)) served_[static_cast<size_t>(claim.rank)] = true;
  }

  int listener_;
  int segment_;
  uint64_t key_;
  std::vector<bool> served_;  // by local rank
  std::vector<UniqueFd> callers_;
};

// A connection to the leader, or why there is none.
Result<UniqueFd> connect(const Address& address, Deadline deadline, const Meanwhile& meanwhile) {
  UniqueFd socket;
  int code = 0;
  const auto decided = [&] {
    socket = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const bool connected = socket.get() >= 0 && ::connect(socket.get(), address.get(), address.length) == 0;
    code = connected ? 0 : errno;
    return code != EAGAIN && code != EINTR;  // the queue of the socket is full
  };
  WaitLoop(kTryingAgain, deadline).until(decided, [&] { return meanwhile && meanwhile(); });
  if (code == 0) return socket;
  return error(IBCOLL_ERR_SYSTEM, "shm: connecting to the leader of this node for the shared segment: {}",
               std::strerror(code));
}

// One try to get the segment; -1: the leader had too many strangers to listen to.
Result<int> fetch(const Address& address, const Claim& claim, Deadline deadline, const Meanwhile& meanwhile) {
  Result<UniqueFd> connected = connect(address, deadline, meanwhile);
  if (!connected.ok()) return connected.status();
  const int socket = connected.value().get();
  if (!same_user(socket))
    return error(IBCOLL_ERR_SYSTEM, "shm: the process that offers the node's segment runs as another user");
  pollfd entry{socket, POLLIN, 0};
  if (::send(socket, &claim, sizeof claim, MSG_NOSIGNAL) != sizeof claim ||
      !ready(std::span(&entry, 1), deadline, meanwhile))
    return -1;
  return receive_descriptor(socket);
}

}  // namespace

Result<UniqueFd> offer_segment(const std::string& name, int ranks) {
  UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const Address address(name);
  if (!listener || ::bind(listener.get(), address.get(), address.length) != 0 ||
      ::listen(listener.get(), ranks + 8) != 0)
    return error(IBCOLL_ERR_SYSTEM, "shm: UNIX socket for handing over the node's segment: {}", std::strerror(errno));
  return listener;
}

Status hand_over(const Segment& segment, UniqueFd offer, uint64_t key, std::span<const int> ranks, Deadline deadline,
                 const Meanwhile& meanwhile) {
  Server server(offer.get(), segment.descriptor(), key, segment.ranks());
  while (!server.done())
    if (!server.serve(deadline, meanwhile))
      return error(IBCOLL_ERR_TIMEOUT,
                   "shm: of this node's ranks these did not fetch the shared segment in time (IBCOLL_TIMEOUT): {}",
                   fmt::join(server.missing(ranks), ", "));
  return {};
}

Result<std::unique_ptr<Segment>> receive_segment(const std::string& name, uint64_t key, int rank, int ranks,
                                                 uint64_t ring_bytes, Deadline deadline, const Meanwhile& meanwhile) {
  const Address address(name);
  Result<int> fd = -1;
  const auto decided = [&] {
    fd = fetch(address, {key, rank}, deadline, meanwhile);
    return !fd.ok() || fd.value() >= 0;
  };
  if (!WaitLoop(kTryingAgain, deadline).until(decided, [&] { return meanwhile && meanwhile(); }))
    return error(IBCOLL_ERR_TIMEOUT,
                 "shm: the leader of this node did not hand over the shared segment in time (IBCOLL_TIMEOUT)");
  if (!fd.ok()) return fd.status();
  return Segment::adopt(UniqueFd(fd.value()), ranks, ring_bytes);
}

}  // namespace ibcoll::shm
