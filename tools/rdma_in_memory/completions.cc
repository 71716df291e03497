// SPDX-License-Identifier: BSD-3-Clause
#include "tools/rdma_in_memory/completions.h"

#include <cerrno>
#include <mutex>

#include "tools/rdma_in_memory/channel.h"
#include "tools/rdma_in_memory/file.h"
#include "tools/rdma_in_memory/index.h"
#include "tools/rdma_in_memory/model.h"
#include "tools/rdma_in_memory/removal.h"
#include "tools/rdma_in_memory/send.h"

namespace ibcoll::rdma_in_memory {
namespace {

Indices queue_indices(&Layout::completion_queues, kCompletionQueues);

SharedCompletions& completions_of(uint32_t index) { return File::get().layout().completion_queue[index]; }
SharedCompletions& completions_of(const CompletionQueue& queue) { return completions_of(queue.index); }

Completion* ring_at(uint64_t offset) { return reinterpret_cast<Completion*>(File::get().at(offset)); }

// Polls that find nothing do this: others wait for what this process knows, or must learn.
void keep_house(CompletionQueue& queue) {
  constexpr uint32_t kOften = 64, kSeldom = 1024;
  if (++queue.empty_polls % kOften == 0) completions_of(queue).head.store(queue.next, std::memory_order_release);
  if (queue.empty_polls % kSeldom != 0) return;
  File::get().look_for_ended();
  remove_if_due();
}

bool take_sent(CompletionQueue& queue, ibv_wc& found) {
  if (queue.sent.empty() || queue.sent.front().first > now_ns()) return false;
  found = queue.sent.front().second;
  queue.sent.pop_front();
  return true;
}

bool take(CompletionQueue& queue, ibv_wc& found) {
  const Completion& first = queue.ring[queue.next & queue.mask];
  if (first.number.load(std::memory_order_acquire) != queue.next + 1) return false;
  if (first.due != 0 && first.due > now_ns()) return false;
  found = first.what;
  ++queue.next;
  return true;
}

// 0: it has at least `wanted` entries now.
int make_ring(CompletionQueue& queue, uint32_t wanted) {
  uint32_t size = 16;
  while (size < wanted) size *= 2;
  const uint64_t ring = File::get().allocate(size * sizeof(Completion));
  if (ring == 0) return ENOMEM;
  SharedCompletions& all = completions_of(queue);
  const std::lock_guard polling(queue.polling);
  const std::lock_guard adding(all.lock);
  Completion* const entries = ring_at(ring);
  for (uint64_t i = queue.next; i < all.tail; ++i) {
    const Completion& from = queue.ring[i & queue.mask];
    Completion& to = entries[i & (size - 1)];
    to.what = from.what;
    to.due = from.due;
    to.number.store(i + 1);
  }
  if (all.ring != 0) File::get().release(all.ring, (uint64_t{all.mask} + 1) * sizeof(Completion));
  all.ring = ring;
  all.mask = queue.mask = size - 1;
  all.head_seen = queue.next;
  all.head.store(queue.next);
  queue.ring = entries;
  queue.cqe = static_cast<int>(size - 1);
  return 0;
}

}  // namespace

ibv_wc flushed(uint64_t id, uint32_t queue_pair) {
  ibv_wc what{};
  what.wr_id = id;
  what.status = IBV_WC_WR_FLUSH_ERR;
  what.qp_num = queue_pair;
  return what;
}

void add_to(uint32_t index, const ibv_wc& what, uint64_t due) {
  SharedCompletions& all = completions_of(index);
  bool rings = false;
  {
    const std::lock_guard guard(all.lock);
    const uint64_t place = all.tail;
    if (place - all.head_seen > all.mask) all.head_seen = all.head.load(std::memory_order_acquire);
    if (place - all.head_seen > all.mask) {
      all.overrun.store(1);
      return;
    }
    Completion& entry = ring_at(all.ring)[place & all.mask];
    entry.what = what;
    entry.due = due;
    entry.number.store(place + 1, std::memory_order_release);
    all.tail = place + 1;
    rings = all.armed.load(std::memory_order_relaxed) != 0;
    if (rings) all.armed.store(0, std::memory_order_relaxed);
  }
  if (rings) wake(all.channel, index);
}

void add_own(ibv_cq* queue, const ibv_wc& what, uint64_t due) {
  auto& own = *static_cast<CompletionQueue*>(queue);
  if (!model().has_times()) {
    add_to(own.index, what, 0);
    return;
  }
  const std::lock_guard guard(own.polling);
  own.sent.emplace_back(due, what);  // they come in the order of the requests, whatever each took
}

int poll(ibv_cq* which, int most, ibv_wc* found) {
  auto& queue = *static_cast<CompletionQueue*>(which);
  run_waiting_requests();
  const std::lock_guard guard(queue.polling);
  int count = 0;
  while (count < most && take_sent(queue, found[count])) ++count;
  while (count < most && take(queue, found[count])) ++count;
  if (count == 0) {
    keep_house(queue);
    return completions_of(queue).overrun.load(std::memory_order_relaxed) != 0 ? -1 : 0;
  }
  if (queue.next - completions_of(queue).head.load(std::memory_order_relaxed) > queue.mask / 4)
    completions_of(queue).head.store(queue.next, std::memory_order_release);
  return count;
}

// Under the lock of those that add: what was added before is seen by the poll that follows.
int request_notice(ibv_cq* queue, int) {
  SharedCompletions& all = completions_of(*static_cast<CompletionQueue*>(queue));
  const std::lock_guard guard(all.lock);
  all.armed.store(1);
  return 0;
}

}  // namespace ibcoll::rdma_in_memory

using namespace ibcoll::rdma_in_memory;

extern "C" {

ibv_cq* ibv_create_cq(ibv_context* context, int size, void* user, ibv_comp_channel* channel, int) {
  auto* const made = new CompletionQueue();
  made->index = queue_indices.take();
  if (made->index == 0 || size < 1) {
    errno = size < 1 ? EINVAL : ENOMEM;
    delete made;
    return nullptr;
  }
  made->context = context;
  made->channel = channel;
  made->cq_context = user;
  ::pthread_mutex_init(&made->mutex, nullptr);
  SharedCompletions& all = completions_of(*made);
  all.tail = all.head_seen = all.ring = 0;
  all.head.store(0);
  all.overrun.store(0);
  all.armed.store(0);
  all.channel = channel ? channel_number(channel) : 0;
  if (const int code = make_ring(*made, static_cast<uint32_t>(size) + 1); code != 0) {
    queue_indices.give_back(made->index);
    delete made;
    errno = code;
    return nullptr;
  }
  if (channel) add_to_channel(*made);
  return made;
}

int ibv_resize_cq(ibv_cq* queue, int size) {
  if (size <= queue->cqe) return 0;
  return make_ring(*static_cast<CompletionQueue*>(queue), static_cast<uint32_t>(size) + 1);
}

int ibv_destroy_cq(ibv_cq* which) {
  auto* const queue = static_cast<CompletionQueue*>(which);
  if (queue->channel) remove_from_channel(*queue);
  SharedCompletions& all = completions_of(*queue);
  File::get().release(all.ring, (uint64_t{all.mask} + 1) * sizeof(Completion));
  queue_indices.give_back(queue->index);
  delete queue;
  return 0;
}

}  // extern "C"
