// SPDX-License-Identifier: BSD-3-Clause
// The cost of a message on this port, measured at start: devices differ by a factor of fifty (1 us for an adapter, 20
// us and more for the soft-RoCE driver), and neither driver nor port reports it. And what the device promises of a
// connection, which drivers report only for one that exists.
#pragma once

#include "runtime/transport/transport.h"
#include "runtime/verbs/greetings.h"

namespace ibcoll::verbs {

struct LinkTrial {
  LinkModel model;
  // The bytes of one RDMA Write land in the order of their addresses (ibv_query_qp_data_in_order).
  bool in_order = false;
};

// RDMA Writes of this rank to itself: they leave through the device and come back, which is the way of a message but
// for cable and switch (some 0.1 us each). All figures are rounded up to powers of two, so that noise does not change
// which algorithm a job gets from run to run; beta is at least the port's. Takes some microseconds on an adapter, and
// at most 100 ms. An error says which call failed; then nothing is known.
Result<LinkTrial> try_link(ibv_pd* domain, const Route& route, const PortChoice& choice);

}  // namespace ibcoll::verbs
