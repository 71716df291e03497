// SPDX-License-Identifier: BSD-3-Clause
// Posting, and what waits: for a peer that is not there yet or no more, and for a receive of it.
#include "tools/rdma_in_memory/send.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "tools/rdma_in_memory/completions.h"
#include "tools/rdma_in_memory/file.h"
#include "tools/rdma_in_memory/model.h"

namespace ibcoll::rdma_in_memory {
namespace {

std::mutex waiting_mutex;  // before QueuePair::sending only by try_lock
std::vector<QueuePair*> waiting_pairs;
std::atomic<size_t> waiting_count{0};
std::atomic<uint64_t> polls{0};

// How long to wait for a receiver that was not ready, by the code of min_rnr_timer, in units of 10 us (InfiniBand
// Architecture, 9.7.5.2.8).
constexpr uint32_t kNotReadyTimes[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                         48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                         2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
constexpr uint8_t kEndless = 7;

// How long a request is tried again, in nanoseconds.
uint64_t patience(const QueuePair& queue_pair, Outcome why) {
  constexpr uint8_t kNoTimeout = 20;  // 0 means none at all: no wait without an end
  const ibv_qp_attr& set = queue_pair.attributes;
  if (why == Outcome::kNoPeer) {
    const uint8_t code = std::min<uint8_t>(set.timeout == 0 ? kNoTimeout : set.timeout, 31);
    return (uint64_t{4096} << code) * (set.retry_cnt + 1U);
  }
  if (set.rnr_retry == kEndless) return ~uint64_t{0};
  return kNotReadyTimes[entry_of(set.dest_qp_num).not_ready_timer] * uint64_t{10'000} * (set.rnr_retry + 1U);
}

// True: it has completed.
bool try_again(QueuePair& queue_pair, WaitingRequest& first) {
  if (first.after > polls.load(std::memory_order_relaxed)) return false;
  const Outcome outcome = execute(queue_pair, first.request);
  if (outcome == Outcome::kDone || outcome == Outcome::kError) return true;
  const uint64_t now = now_ns();
  if (first.since == 0) first.since = now;
  if (outcome == Outcome::kNoPeer) File::get().look_for_ended();
  if (now - first.since < patience(queue_pair, outcome)) return false;
  complete(queue_pair, first.request, outcome == Outcome::kNoPeer ? IBV_WC_RETRY_EXC_ERR : IBV_WC_RNR_RETRY_EXC_ERR, 0);
  return true;
}

// With queue_pair.sending.
void run_waiting(QueuePair& queue_pair) {
  while (!queue_pair.waiting.empty() && shared(queue_pair).state.load() == IBV_QPS_RTS) {
    if (!try_again(queue_pair, queue_pair.waiting.front())) return;
    queue_pair.waiting.pop_front();
  }
  if (shared(queue_pair).state.load() == IBV_QPS_ERR) flush_waiting(queue_pair);
}

void let_wait(QueuePair& queue_pair, const ibv_send_wr& request) {
  WaitingRequest& kept = queue_pair.waiting.emplace_back();
  kept.request = request;
  kept.request.next = nullptr;
  kept.request.sg_list = kept.sges.data();
  if (model().shuffles()) kept.after = polls.load() + model().pick(32);
  std::copy_n(request.sg_list, request.num_sge, kept.sges.begin());
  if (request.send_flags & IBV_SEND_INLINE) {
    uint64_t at = 0;
    for (int i = 0; i < request.num_sge; ++i) {
      std::memcpy(kept.inlined.data() + at, reinterpret_cast<const void*>(request.sg_list[i].addr),
                  request.sg_list[i].length);
      at += request.sg_list[i].length;
    }
    kept.sges[0] = {reinterpret_cast<uint64_t>(kept.inlined.data()), static_cast<uint32_t>(at), 0};
    kept.request.num_sge = at > 0 ? 1 : 0;
  }
  if (queue_pair.waiting.size() > 1) return;  // it is in the list
  const std::lock_guard guard(waiting_mutex);
  if (std::find(waiting_pairs.begin(), waiting_pairs.end(), &queue_pair) == waiting_pairs.end())
    waiting_pairs.push_back(&queue_pair);
  waiting_count.store(waiting_pairs.size());
}

bool is_possible(const QueuePair& queue_pair, const ibv_send_wr& request) {
  if (request.num_sge < 0 || request.num_sge > int{kMostSges}) return false;
  return (request.send_flags & IBV_SEND_INLINE) == 0 || bytes_of(request) <= queue_pair.wanted.cap.max_inline_data;
}

// 0, or why the request is not taken.
int post_one(QueuePair& queue_pair, const ibv_send_wr& request) {
  const uint32_t state = shared(queue_pair).state.load(std::memory_order_relaxed);
  if (state == IBV_QPS_ERR) {
    add_own(queue_pair.send_cq, flushed(request.wr_id, queue_pair.qp_num), 0);
    return 0;
  }
  if (state != IBV_QPS_RTS || !is_possible(queue_pair, request)) return EINVAL;
  if (queue_pair.waiting.empty() && !model().shuffles()) {
    const Outcome outcome = execute(queue_pair, request);
    if (outcome == Outcome::kDone || outcome == Outcome::kError) return 0;
  } else if (queue_pair.waiting.size() >= queue_pair.wanted.cap.max_send_wr) {
    return ENOMEM;
  }
  let_wait(queue_pair, request);
  return 0;
}

}  // namespace

int post_send(ibv_qp* which, ibv_send_wr* first, ibv_send_wr** bad) {
  auto& queue_pair = *static_cast<QueuePair*>(which);
  const std::lock_guard guard(queue_pair.sending);
  if (!queue_pair.waiting.empty()) run_waiting(queue_pair);
  for (ibv_send_wr* request = first; request != nullptr; request = request->next) {
    const int code = post_one(queue_pair, *request);
    if (code == 0) continue;
    *bad = request;
    return code;
  }
  return 0;
}

void run_waiting_requests() {
  if (waiting_count.load(std::memory_order_relaxed) == 0) return;
  polls.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard guard(waiting_mutex);
  std::erase_if(waiting_pairs, [](QueuePair* one) {
    if (!one->sending.try_lock()) return false;
    run_waiting(*one);
    const bool done = one->waiting.empty();
    one->sending.unlock();
    return done;
  });
  waiting_count.store(waiting_pairs.size());
}

void flush_waiting(QueuePair& queue_pair) {
  for (const WaitingRequest& one : queue_pair.waiting)
    add_own(queue_pair.send_cq, flushed(one.request.wr_id, queue_pair.qp_num), 0);
  queue_pair.waiting.clear();
}

void forget_waiting(QueuePair& queue_pair) {
  const std::lock_guard guard(waiting_mutex);
  std::erase(waiting_pairs, &queue_pair);
  waiting_count.store(waiting_pairs.size());
}

}  // namespace ibcoll::rdma_in_memory
