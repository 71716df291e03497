// SPDX-License-Identifier: BSD-3-Clause
#include "tools/rdma_in_memory/channel.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>

#include "tools/rdma_in_memory/file.h"

namespace ibcoll::rdma_in_memory {
namespace {

struct Channel : ibv_comp_channel {
  uint32_t number = 0;
};

std::mutex queues_mutex;
std::map<uint32_t, CompletionQueue*>& queues() {
  static std::map<uint32_t, CompletionQueue*> all;
  return all;
}

// An abstract address: it ends with the socket.
struct Address {
  sockaddr_un text{};
  socklen_t bytes = 0;

  explicit Address(uint32_t channel) {
    text.sun_family = AF_UNIX;
    const std::string name = fmt::format("rdma_in_memory.{}.{}", File::get().number(), channel);
    std::memcpy(text.sun_path + 1, name.data(), name.size());
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&text); }
};

}  // namespace

uint32_t channel_number(const ibv_comp_channel* channel) { return static_cast<const Channel*>(channel)->number; }

void add_to_channel(CompletionQueue& queue) {
  const std::lock_guard guard(queues_mutex);
  queues()[queue.index] = &queue;
}

void remove_from_channel(CompletionQueue& queue) {
  const std::lock_guard guard(queues_mutex);
  queues().erase(queue.index);
}

// A socket that is full wakes its reader anyway.
void wake(uint32_t channel, uint32_t queue) {
  static const int sender = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const Address address(channel);
  ::sendto(sender, &queue, sizeof queue, MSG_DONTWAIT | MSG_NOSIGNAL, address.get(), address.bytes);
}

}  // namespace ibcoll::rdma_in_memory

using namespace ibcoll::rdma_in_memory;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* const made = new Channel();
  made->context = context;
  made->number = File::get().layout().channels.fetch_add(1) + 1;
  made->fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const Address address(made->number);
  if (made->fd >= 0 && ::bind(made->fd, address.get(), address.bytes) == 0) return made;
  const int code = errno;
  if (made->fd >= 0) ::close(made->fd);
  delete made;
  errno = code;
  return nullptr;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  ::close(channel->fd);
  delete static_cast<Channel*>(channel);
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** user) {
  for (;;) {
    uint32_t number = 0;
    if (::recv(channel->fd, &number, sizeof number, 0) != sizeof number) return -1;
    const std::lock_guard guard(queues_mutex);
    const auto found = queues().find(number);
    if (found == queues().end() || found->second->channel != channel) continue;  // of a queue that is no more
    *queue = found->second;
    *user = found->second->cq_context;
    return 0;
  }
}

void ibv_ack_cq_events(ibv_cq*, unsigned) {}

}  // extern "C"
