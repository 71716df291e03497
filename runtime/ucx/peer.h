// SPDX-License-Identifier: BSD-3-Clause
// The state of one peer that this rank communicates with.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <string>

#include "runtime/transport/event_outbox.h"
#include "runtime/ucx/windows.h"

namespace ibcoll::ucx {
class Transport;
}

namespace ibcoll::ucx {

struct Peer : OutboxPeer {
  enum class State : uint8_t {
    kNew,        // has sent something, or is about to be sent something: no endpoint yet
    kConnected,  // there is an endpoint (UCX may still be connecting)
    kBroken,     // UCX reported an error; the endpoint is not closed yet
    kFailed      // reported, or about to be reported, by kPeerFailed
  };

  Transport* transport = nullptr;
  State state = State::kNew;
  bool left = false;            // said that it closes
  bool credit_pending = false;  // to be returned
  bool control_in_flight = false;
  bool has_fragments = false;       // of large puts, still to be posted
  bool asked_all_received = false;  // it waits for our kAllReceived
  bool all_received = false;        // it has all that we sent
  bool leaving_sent = false;        // to the peer

  ucp_ep_h endpoint = nullptr;
  ucs_status_ptr_t closing = nullptr;  // at the end: the endpoint's close, which is under way
  Time connected_at = 0;               // when the endpoint was made
  ucs_status_t error = UCS_OK;         // of a broken one
  bool lacks = false;                  // this error is that of this rank, which lacks what it needs to reach the peer
  ucs_status_t cut = UCS_OK;           // why its sockets were shut down: UCX has not reported that yet
  Time report_until = 0;               // of that report
  std::string failure;                 // the text of kPeerFailed

  Buffer* large_first = nullptr;  // puts of which fragments are still to be posted, in order
  Buffer* large_last = nullptr;
  uint32_t fragments_in_flight = 0;
  uint32_t puts_pending = 0;  // whose sources UCX may read
  Time send_deadline = 0;     // of want_back(), for the next of them to leave; 0: not called since the last one left

  SendWindow send;
  ReceiveWindow receive;
  uint32_t reported_consumed = 0;  // as sent to the peer last
  uint32_t bytes_consumed = 0;     // payload handed out since then
  uint32_t expected_total = 0;     // with asked_all_received

  // It may be one to drop.
  bool has_message() const { return receive.ready(); }
};

inline bool credit_is_due(const Peer& peer) {
  return peer.receive.consumed() - peer.reported_consumed >= kWindowMessages / 2 ||
         peer.bytes_consumed >= kWindowBytes / 2;
}

// For a peer that has sent expected_total.
inline bool all_has_arrived(const Peer& peer) { return peer.receive.received() == peer.expected_total; }

}  // namespace ibcoll::ucx
