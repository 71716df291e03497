// SPDX-License-Identifier: BSD-3-Clause
// How the node's segment gets from its leader to the other ranks: its descriptor travels over an abstract UNIX socket,
// whose name holds random bytes that only the job's ranks know; both ends check that the other runs as the same user.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/shm/segment.h"

namespace ibcoll {
namespace {

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
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

// Waits until `fd` is readable; false at the deadline.
bool readable(int fd, Segment::Deadline deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd entry{fd, POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(left.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
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

}  // namespace

Status Segment::offer(const std::string& name) {
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const Address address(name);
  if (listener_ < 0 || ::bind(listener_, address.get(), address.length) != 0 || ::listen(listener_, ranks_ + 8) != 0)
    return error(IBCOLL_ERR_SYSTEM, "shm: UNIX socket for handing over the node's segment: {}", std::strerror(errno));
  return {};
}

Status Segment::serve(Deadline deadline) {
  for (int served = 1; served < ranks_;) {
    if (!readable(listener_, deadline))
      return error(IBCOLL_ERR_TIMEOUT, "shm: {} of {} ranks of this node did not fetch the shared segment in time",
                   ranks_ - served, ranks_ - 1);
    const Socket peer(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    if (peer.fd() >= 0 && same_user(peer.fd()) && send_descriptor(peer.fd(), fd_)) ++served;
  }
  ::close(listener_);
  listener_ = -1;
  return {};
}

Result<std::unique_ptr<Segment>> Segment::receive(const std::string& name, int ranks, uint64_t ring_bytes,
                                                  Deadline deadline) {
  const Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Address address(name);
  if (socket.fd() < 0 || ::connect(socket.fd(), address.get(), address.length) != 0)
    return error(IBCOLL_ERR_SYSTEM, "shm: connecting to the leader of this node for the shared segment: {}",
                 std::strerror(errno));
  if (!same_user(socket.fd()))
    return error(IBCOLL_ERR_SYSTEM, "shm: the process that offers the node's segment runs as another user");
  if (!readable(socket.fd(), deadline))
    return error(IBCOLL_ERR_TIMEOUT, "shm: the leader of this node did not hand over the shared segment in time");
  const int fd = receive_descriptor(socket.fd());
  if (fd < 0)
    return error(IBCOLL_ERR_SYSTEM,
                 "shm: the leader of this node closed the connection without handing over the shared segment");
  std::unique_ptr<Segment> segment(new Segment(fd, ranks, ring_bytes));
  if (Status status = segment->map(); !status.ok()) return status;
  return segment;
}

}  // namespace ibcoll
