// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fake_verbs/fabric.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "tests/fake_verbs/completion_queue.h"
#include "tests/fake_verbs/queue_pair.h"

namespace ibcoll::fake_verbs {
namespace {

constexpr size_t kMostMoves = 6;  // in one poll

}  // namespace

Fabric& fabric() {
  static Fabric only;
  return only;
}

Rank& Fabric::rank(size_t number) {
  while (ranks.size() <= number) ranks.emplace_back();
  return ranks[number];
}

void Fabric::misuse(std::string what) {
  std::fprintf(stderr, "fake verbs: misuse: %s\n", what.c_str());
  misuses.push_back(std::move(what));
}

QueuePair* Fabric::queue_pair(uint32_t number) const {
  const auto found = std::find_if(queue_pairs.begin(), queue_pairs.end(),
                                  [=](const QueuePair* queue_pair) { return queue_pair->qp_num == number; });
  return found == queue_pairs.end() ? nullptr : *found;
}

// Numbers come again, as those of devices do.
uint32_t Fabric::new_number() {
  if (free_numbers.empty() || pick(2) == 0) return next_number++;
  const auto taken = free_numbers.begin() + static_cast<ptrdiff_t>(pick(free_numbers.size()));
  const uint32_t number = *taken;
  free_numbers.erase(taken);
  return number;
}

void Fabric::poll() {
  ++now;
  for (size_t i = 0; i < datagrams.size();) {
    if (datagrams[i].due > now) {
      ++i;
      continue;
    }
    const Datagram arrived = std::move(datagrams[i]);
    datagrams.erase(datagrams.begin() + static_cast<ptrdiff_t>(i));
    deliver(arrived);
  }
  if (queue_pairs.empty()) return;
  size_t moves = 1 + pick(kMostMoves);
  const size_t first = pick(queue_pairs.size());
  for (size_t i = 0; i < queue_pairs.size() && moves > 0; ++i)
    if (queue_pairs[(first + i) % queue_pairs.size()]->move()) --moves;
}

// To a queue pair that is not ready, has another key or no receive: it is lost.
void Fabric::deliver(const Datagram& datagram) {
  QueuePair* const to = queue_pair(datagram.to);
  if (to == nullptr || to->qp_type != IBV_QPT_UD || !to->can_receive() || to->key != datagram.key ||
      to->receives.empty() || !is_address_of(to->rank(), datagram.route) || !to->port_is_up())
    return;
  const Receive receive = std::move(to->receives.front());
  to->receives.pop_front();
  const size_t bytes = kRouteHeader + datagram.payload.size();
  ibv_wc done = to->completion(receive.id, bytes <= receive.room() ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR);
  if (done.status == IBV_WC_SUCCESS && !receive.scatter(to->pd, kRouteHeader, datagram.payload))
    done.status = IBV_WC_LOC_PROT_ERR;
  done.opcode = IBV_WC_RECV;
  done.byte_len = static_cast<uint32_t>(bytes);
  done.src_qp = datagram.from;
  done.wc_flags = IBV_WC_GRH;
  to->receive_queue().add(done, *to, 1, true);
  if (done.status != IBV_WC_SUCCESS) to->enter_error();
}

uint64_t Counts::all() const { return std::accumulate(requests.begin(), requests.end(), uint64_t{0}); }

Counts operator-(const Counts& after, const Counts& before) {
  Counts difference = after;
  for (size_t i = 0; i < difference.requests.size(); ++i) difference.requests[i] -= before.requests[i];
  difference.posts -= before.posts;
  difference.inlined -= before.inlined;
  difference.signaled -= before.signaled;
  difference.receives -= before.receives;
  difference.receive_posts -= before.receive_posts;
  difference.sent -= before.sent;
  difference.received -= before.received;
  return difference;
}

void begin(uint64_t seed) {
  Fabric& all = fabric();
  const Lock lock(all.mutex);
  if (all.objects > 0) all.misuse("objects are left of the fabric before: " + std::to_string(all.objects));
  all.random.seed(seed);
  all.script = {};
  all.now = 0;
  all.opened = 0;
  all.ranks.clear();
  all.datagrams.clear();
}

Script& script() { return fabric().script; }
Rank& rank(int number) {
  const Lock lock(fabric().mutex);
  return fabric().rank(static_cast<size_t>(number));
}
uint64_t polls() { return fabric().now; }
std::vector<std::string> misuses() {
  const Lock lock(fabric().mutex);
  return fabric().misuses;
}
std::vector<ibv_event_type> events(int number) {
  const Lock lock(fabric().mutex);
  return fabric().events[number];
}
void report(int number, ibv_event_type what) {
  const Lock lock(fabric().mutex);
  fabric().event(number, what);
}
void forget_events() {
  const Lock lock(fabric().mutex);
  fabric().misuses.clear();
  fabric().events.clear();
}
bool overrun(int number) {
  const Lock lock(fabric().mutex);
  CompletionQueue* largest = nullptr;
  for (CompletionQueue* queue : fabric().completion_queues)
    if (context_of(queue->context).rank == number && (largest == nullptr || queue->cqe > largest->cqe)) largest = queue;
  if (largest != nullptr) largest->overflow();
  return largest != nullptr;
}
size_t live_objects() {
  const Lock lock(fabric().mutex);
  return fabric().objects;
}

}  // namespace ibcoll::fake_verbs
