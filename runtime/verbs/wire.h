// SPDX-License-Identifier: BSD-3-Clause
// What travels between two ranks: addresses through the bootstrap, greetings as datagrams, messages into landing slots.
// All ranks of a job run the same build on the same kind of machine: no byte order, no versions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/process_watch.h"
#include "runtime/transport.h"
#include "runtime/verbs/devices.h"

namespace ibcoll::verbs {

// Where the greetings of a rank arrive.
struct Address {
  Gid gid{};
  uint32_t queue_pair = 0;  // unreliable datagrams
  uint16_t lid = 0;
  uint8_t mtu = 0;  // ibv_mtu
  uint8_t global = 0;
  ProcessId process;
};
static_assert(sizeof(Address) == 48);

// How a rank wants to learn of messages.
enum class Notify : uint8_t {
  kImmediate,  // every message is a Write with immediate; its completion is the notice
  kMemory      // messages are Writes; the last word of the slot is the notice. Puts still end with an immediate.
};

// An exposure keeps its number, but has another key on another queue pair.
struct Rekey {
  uint32_t exposure = 0;
  uint32_t key = 0;
};

// Both sides of a connection send the same: there is no caller and no called, so simultaneous connects need no settling.
// Repeated until the peer's greeting of the same epoch says that it has this one.
struct Greeting {
  uint64_t job = 0;
  uint32_t from = 0;  // job ranks
  uint32_t to = 0;
  uint32_t epoch = 0;  // how often the two have connected; the higher one counts
  uint32_t queue_pair = 0;
  uint32_t first_packet = 0;  // sequence number
  uint32_t landing_key = 0;
  uint64_t landing_address = 0;
  uint64_t delivered = 0;  // messages of the peer that have landed here, over all epochs
  uint8_t mtu = 0;
  Notify notify = Notify::kImmediate;
  uint8_t has_yours = 0;  // the sender has the receiver's greeting of this epoch, and is ready to receive
  uint8_t confirmed = 0;  // and knows that the receiver has the sender's: it wants no answer
  uint32_t rekeys = 0;    // used elements of `rekey`
  Rekey rekey[48];        // exposures of the sender to the receiver from earlier epochs
};
static_assert(sizeof(Greeting) == 56 + 48 * sizeof(Rekey));

// A slot holds one message: [ ... payload, padding to 8 bytes, header ], so that the header, and its last word, end where the
// slot ends, whatever the length of the payload. One RDMA Write carries payload and header.
constexpr uint32_t kSlots = 32;
constexpr size_t kSlotPayload = 8192;

enum class SlotKind : uint16_t {
  kMessage,  // note and payload of send()
  kPut,      // note of a put(), whose payload was written before
  kDropped,  // in place of a put that the receiver's device refused
  kLeaving   // the sender closes
};

struct SlotHeader {
  Note note;
  uint64_t consumed = 0;  // messages of the receiver that the sender has handed out: returns credit
  uint32_t bytes = 0;     // of the payload
  SlotKind kind = SlotKind::kMessage;
  uint16_t zero = 0;
  uint64_t unused = 0;
  uint64_t sequence = 0;  // from 1, over all epochs; written last
};
static_assert(sizeof(SlotHeader) == 64);

struct Slot {
  std::byte payload[kSlotPayload];
  SlotHeader header;
};
static_assert(sizeof(Slot) == kSlotPayload + 64);

// What one peer may write to.
struct Landing {
  alignas(64) uint64_t consumed;  // messages of this rank that the peer has handed out, told without a message
  alignas(64) Slot slots[kSlots];
};

}  // namespace ibcoll::verbs
