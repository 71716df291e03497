// SPDX-License-Identifier: BSD-3-Clause
// The receiving side of a queue pair: the bytes of Writes become visible, then immediates complete.
#include <algorithm>
#include <cstring>

#include "tests/fake_verbs/queue_pair.h"

namespace ibcoll::fake_verbs {
namespace {

constexpr size_t kOverlapping = 4;   // Writes of one queue pair whose bytes may come at a time
constexpr uint64_t kMuchLater = 40;  // polls

// The fragment that lands next, where one is left.
size_t next_of(const Message& message) {
  return fabric().script.landing == Landing::kInOrder ? 0 : fabric().pick(message.fragments.size());
}

}  // namespace

size_t Receive::room() const {
  size_t bytes = 0;
  for (const ibv_sge& sge : sges) bytes += sge.length;
  return bytes;
}

bool Receive::scatter(const ibv_pd* domain, size_t offset, const std::vector<std::byte>& data) const {
  if (sges.size() != 1 || readable(domain, sges.front()) == nullptr) return false;
  std::memcpy(reinterpret_cast<std::byte*>(sges.front().addr) + offset, data.data(), data.size());
  return true;
}

void QueuePair::let_in(const std::shared_ptr<Message>& message) {
  landing.push_back(message);
  if (fabric().script.landing != Landing::kLastFirst || message->fragments.size() < 2) return;
  land_fragment(*message, message->fragments.size() - 1);
  message->rest_after = fabric().now + kMuchLater;
}

void QueuePair::land_fragment(Message& message, size_t index) {
  const auto [begin, bytes] = message.fragments[index];
  std::memcpy(reinterpret_cast<std::byte*>(message.to) + begin, message.data.data() + begin, bytes);
  message.fragments.erase(message.fragments.begin() + static_cast<ptrdiff_t>(index));
}

// The completion of an immediate comes after the bytes of this Write and of all before it.
bool QueuePair::end_landed() {
  if (landing.empty() || !landing.front()->fragments.empty()) return false;
  const std::shared_ptr<Message> message = landing.front();
  landing.pop_front();
  if (!message->receive) return true;
  ibv_wc done = completion(*message->receive, IBV_WC_SUCCESS);
  done.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  done.byte_len = static_cast<uint32_t>(message->data.size());
  done.imm_data = message->immediate;
  done.wc_flags = IBV_WC_WITH_IMM;
  receive_queue().add(done, *this, 1, true);
  return true;
}

bool QueuePair::land() {
  if (landing.empty()) return false;
  if (end_landed()) return true;
  const bool in_order = fabric().script.landing == Landing::kInOrder;
  Message& message = *landing[in_order ? 0 : fabric().pick(std::min(landing.size(), kOverlapping))];
  if (message.fragments.empty() || message.rest_after > fabric().now) return false;
  land_fragment(message, next_of(message));
  return true;
}

void QueuePair::land_all_in(const Region& region) {
  for (const auto& message : landing)
    if (message->region == &region)
      while (!message->fragments.empty()) land_fragment(*message, 0);
}

// The queue pair breaks: what was acknowledged is there, and of the first of the others perhaps a part.
void QueuePair::end_landing() {
  while (!landing.empty()) {
    const std::shared_ptr<Message> message = landing.front();
    if (!message->acknowledged && fabric().pick(2) == 0) break;
    while (!message->fragments.empty()) land_fragment(*message, 0);
    end_landed();
  }
  if (landing.empty()) return;
  for (size_t i = fabric().pick(landing.front()->fragments.size() + 1); i > 0; --i)
    land_fragment(*landing.front(), next_of(*landing.front()));
  for (auto message = landing.rbegin(); message != landing.rend(); ++message) {
    (*message)->lost = true;
    if ((*message)->receive) receives.push_front({*(*message)->receive, {}});
  }
  landing.clear();
}

}  // namespace ibcoll::fake_verbs
