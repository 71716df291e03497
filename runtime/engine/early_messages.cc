// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/early_messages.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/machine/simulation.h"

namespace ibcoll {

EarlyMessages::~EarlyMessages() {
  for (EarlyMessage* list : {small_, large_})
    while (list) ::operator delete(std::exchange(list, list->next));
}

EarlyMessage* EarlyMessages::copy(int peer, const Note& note, ConstBytes payload) noexcept {
  const auto bytes = static_cast<uint32_t>(payload.size());
  const bool small = bytes <= kSmall;
  EarlyMessage*& list = small ? small_ : large_;
  EarlyMessage* message = nullptr;
  if (list && list->capacity >= bytes) {
    message = std::exchange(list, list->next);
  } else {
    const auto most = static_cast<uint32_t>(std::max<uint64_t>(usual_bytes_, kSmall + 1));
    const uint32_t capacity = small ? kSmall : std::max(bytes, most);
    message = static_cast<EarlyMessage*>(::operator new(sizeof(EarlyMessage) + capacity, std::nothrow));
    if (!message) return nullptr;
    message->capacity = capacity;
  }
  message->next = nullptr;
  message->note = note;
  message->peer = peer;
  message->bytes = bytes;
  auto* const to = reinterpret_cast<std::byte*>(message + 1);
  if (bytes && !landing_is_simulated(to, payload.data())) std::memcpy(to, payload.data(), bytes);
  return message;
}

void EarlyMessages::recycle(EarlyMessage* message) noexcept {
  EarlyMessage*& list = message->capacity <= kSmall ? small_ : large_;
  message->next = std::exchange(list, message);
}

}  // namespace ibcoll
