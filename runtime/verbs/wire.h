// SPDX-License-Identifier: BSD-3-Clause
// The data that travel between two ranks: addresses through the bootstrap, greetings as datagrams or by librdmacm,
// messages into landing slots. All ranks of a job run the same build on the same kind of machine: no byte order, no
// versions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/hash.h"
#include "runtime/machine/process_watch.h"
#include "runtime/transport/transport.h"
#include "runtime/verbs/devices.h"

namespace ibcoll::verbs {

// The address at which the greetings of a rank arrive.
struct Address {
  Gid gid{};                // with rdmacm: an IP address, as IPv6
  uint32_t queue_pair = 0;  // unreliable datagrams; with rdmacm: the port of the listener
  uint16_t lid = 0;
  uint8_t mtu = 0;  // ibv_mtu
  uint8_t global = 0;
  GidEntry::Type protocol = GidEntry::Type::kInfiniBand;
  uint64_t subnet = 0;  // of an InfiniBand port: the upper half of its GIDs
  ProcessId process;
};
static_assert(sizeof(Address) == 64);

// How a rank notices messages.
enum class Notify : uint8_t {
  kImmediate,  // every message is a Write with immediate; its completion is the notice
  kMemory      // messages are Writes; the last word of the slot is the notice. Puts still end with an immediate.
};

constexpr uint32_t kMostRekeys = 254;

// Both sides of a connection send the same: neither is the caller, so two that connect at once need no decision.
// Repeated until the peer's greeting of the same epoch says that it has this one. As long as the private data
// of a connection request may be.
struct Greeting {
  uint64_t job = 0;
  uint32_t from = 0;  // job ranks
  uint32_t to = 0;
  uint32_t epoch = 0;  // the number of the connection between the two; the higher one counts
  uint32_t queue_pair = 0;
  uint32_t first_packet = 0;  // sequence number
  uint32_t landing_key = 0;
  uint64_t landing_address = 0;
  uint64_t delivered = 0;  // messages of the peer that have landed here, over all epochs
  uint16_t rekeys = 0;     // new keys that follow (Rekeys)
  uint8_t mtu = 0;
  Notify notify = Notify::kImmediate;
  uint8_t has_yours = 0;  // the sender has the receiver's greeting of this epoch, and is ready to receive
  uint8_t confirmed = 0;  // and knows that the receiver has the sender's: it wants no answer
  uint8_t given_up = 0;   // none of all this: the sender has given the receiver up, and connects to it no more
  uint8_t zero = 0;

  // It promises no more keys than there is room for.
  bool fits() const { return rekeys <= kMostRekeys; }
};
static_assert(sizeof(Greeting) == 56);

// An exposure keeps its number, but has another key on another queue pair. Numbers are used again, and the peer may
// keep this for longer than the exposure lasts: later exposures were advertised with another key.
struct Rekey {
  uint32_t exposure = 0;
  uint32_t advertised = 0;
  uint32_t key = 0;

  bool is_of(const RemoteRegion& region) const { return region.key == (uint64_t{exposure} << 32 | advertised); }
};

// Exposures of the sender to the receiver that have outlived their queue pair. Follows the greetings as an RDMA Write
// into the landing memory. The digest covers it all, so it does not matter in which order the bytes become visible.
struct Rekeys {
  uint64_t digest = 0;
  uint32_t epoch = 0;
  uint32_t count = 0;  // used elements of `keys`
  Rekey keys[kMostRekeys];

  // The other functions may be asked.
  bool fits() const { return count <= kMostRekeys; }
  size_t bytes() const { return offsetof(Rekeys, keys) + count * sizeof(Rekey); }
  uint64_t digest_now() const {
    Digest all;
    all.add(uint64_t{epoch} << 32 | count);
    for (uint32_t i = 0; i < count; ++i)
      all.add(uint64_t{keys[i].exposure} << 32 | keys[i].key).add(keys[i].advertised);
    return all.value();
  }
};
static_assert(sizeof(Rekeys) == 3064);

// A slot holds one message: [ ... payload, padding to 8 bytes, header ], so that the header, and its last word, end
// where the slot ends, whatever the length of the payload. One RDMA Write carries payload and header.
constexpr uint32_t kSlots = 32;
constexpr size_t kSlotPayload = 8192;

enum class SlotKind : uint16_t {
  kMessage,   // note and payload of send()
  kPut,       // note of a put(), whose payload was written before
  kSmallPut,  // note and payload of a put(): the receiver moves it into the region
  kDropped,   // in place of a put that the receiver's device refused
  kRefused,   // the sender has dropped a small put of the receiver; payload: the header of that
  kLeaving    // the sender closes
};

// Up to here a put rides in its note's slot: both are one packet then, at the smallest MTU in use (1024), and the
// second copy costs less than the second work request.
constexpr size_t kSmallPutBytes = 960;

struct SlotHeader {
  Note note;
  uint64_t consumed = 0;  // messages of the receiver that the sender has handed out: returns credit
  uint16_t bytes = 0;     // of the payload
  SlotKind kind = SlotKind::kMessage;
  uint32_t exposure = 0;  // number and address of the region of a small put
  uint64_t address = 0;
  uint64_t sequence = 0;  // from 1, over all epochs; written last
};
static_assert(sizeof(SlotHeader) == 64);

struct Slot {
  std::byte payload[kSlotPayload];
  SlotHeader header;
  // The start of a payload of `bytes`, at most kSlotPayload. The peer may change the header at any time, so its length
  // is read only once.
  const std::byte* payload_of(size_t bytes) const {
    return payload + kSlotPayload - ((bytes + size_t{7}) & ~size_t{7});
  }
};
static_assert(sizeof(Slot) == kSlotPayload + 64);

// The memory that one peer may write to.
struct Landing {
  alignas(64) uint64_t consumed;  // messages of this rank that the peer has handed out; written without a message
  alignas(64) Rekeys rekeys;
  alignas(64) Slot slots[kSlots];
};

}  // namespace ibcoll::verbs
