// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fake_verbs/completion_queue.h"

#include "tests/fake_verbs/queue_pair.h"

namespace ibcoll::fake_verbs {

void CompletionQueue::add(const ibv_wc& done, const QueuePair& of, uint32_t freed, bool of_receive) {
  if (overrun) return;
  if (entries.size() < static_cast<size_t>(cqe)) {
    entries.push_back({done, of.qp_num, of.life, freed, of_receive});
    return;
  }
  overflow();
}

void CompletionQueue::overflow() {
  overrun = true;
  fabric().event(context_of(context).rank, IBV_EVENT_CQ_ERR);
  for (QueuePair* queue_pair : fabric().queue_pairs)
    if (queue_pair->send_cq == this || queue_pair->recv_cq == this) queue_pair->enter_error();
}

void CompletionQueue::take(Entry& entry) {
  entry = entries.front();
  entries.pop_front();
  QueuePair* const of = fabric().queue_pair(entry.queue_pair);
  if (of == nullptr || of->life != entry.life) return;
  (entry.of_receive ? of->receives_held : of->requests_held) -= entry.freed;
  if (of->qp_type != IBV_QPT_RC) return;
  Counts& counts = rank_of(context).counts;
  ++(entry.of_receive ? counts.received : counts.sent);
}

int poll_cq(ibv_cq* queue, int most, ibv_wc* done) {
  const Lock lock(fabric().mutex);
  fabric().poll();
  auto& from = static_cast<CompletionQueue&>(*queue);
  if (from.overrun || rank_of(queue->context).traits.polls_fail) return -1;
  int count = 0;
  for (CompletionQueue::Entry entry; count < most && !from.entries.empty(); done[count++] = entry.done)
    from.take(entry);
  return count;
}

}  // namespace ibcoll::fake_verbs

using namespace ibcoll::fake_verbs;

extern "C" {

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void*, ibv_comp_channel* channel, int) {
  const Lock lock(fabric().mutex);
  if (is_removed(context)) return refuse<ibv_cq>(EIO);
  if (cqe < 1 || cqe > rank_of(context).traits.most_completions || channel != nullptr) return refuse<ibv_cq>(EINVAL);
  auto* const made = new CompletionQueue();
  made->context = context;
  made->cqe = cqe;
  fabric().completion_queues.push_back(made);
  ++fabric().objects;
  return made;
}

int ibv_resize_cq(ibv_cq* queue, int cqe) {
  const Lock lock(fabric().mutex);
  const Traits& traits = rank_of(queue->context).traits;
  if (traits.removed) return EIO;
  if (!traits.resizes) return EOPNOTSUPP;
  const size_t used = static_cast<ibcoll::fake_verbs::CompletionQueue*>(queue)->entries.size();
  if (cqe < 1 || static_cast<size_t>(cqe) < used || cqe > traits.most_completions) return EINVAL;
  queue->cqe = cqe;
  return 0;
}

int ibv_destroy_cq(ibv_cq* queue) {
  const Lock lock(fabric().mutex);
  auto* const gone = static_cast<ibcoll::fake_verbs::CompletionQueue*>(queue);
  if (gone->users > 0) return EBUSY;
  std::erase(fabric().completion_queues, gone);
  delete gone;
  --fabric().objects;
  return 0;
}

}  // extern "C"
