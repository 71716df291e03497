// SPDX-License-Identifier: BSD-3-Clause
// An RDMA device in memory that the processes of one machine share: this library is loaded before libibverbs
// (LD_PRELOAD), and takes its place. The device is one sparse file without a name, which `ibcoll_run --rdma-in-memory`
// makes. It begins with what this header describes; rings of queues follow; each process has a window, in which the
// pages of its registered memory lie at their own addresses.
//
// The process that posts a work request executes it: an RDMA Write is one copy into the window of the peer, and for an
// immediate an entry in the peer's completion ring. A process learns of it by polling, and never acts for others.
//
// What processes write often has a cache line of its own, apart from what others read.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "tools/rdma_in_memory/lock.h"

namespace ibcoll::rdma_in_memory {

constexpr uint32_t kProcesses = 1024;  // that may ever use one device; numbers from 1
constexpr uint32_t kQueuePairs = 1 << 13, kCompletionQueues = 1 << 12, kReceiveQueues = 1 << 13;  // at a time
constexpr uint32_t kRegions = 1 << 16;                                                            // and windows
constexpr uint32_t kMostSges = 8, kMostReceiveSges = 2, kMostInline = 256;
constexpr uint64_t kPage = 4096;

// Where page `address` of a process lies in the file.
constexpr int kAddressBits = 47;
constexpr uint64_t window_of(uint32_t process, uint64_t address) { return uint64_t{process} << kAddressBits | address; }

struct Completion {
  ibv_wc what;
  std::atomic<uint64_t> number;  // from 1: the place in the ring is filled for the number-th time; written last
  uint64_t due;                  // CLOCK_MONOTONIC nanoseconds before which nobody sees it
};
static_assert(sizeof(Completion) == 64);

struct alignas(64) SharedCompletions {
  Lock lock;  // of those that add
  uint64_t tail, head_seen;
  alignas(64) uint64_t ring;  // offset in the file
  uint32_t mask, channel;     // 0: no channel
  std::atomic<uint32_t> armed, overrun;
  alignas(64) std::atomic<uint64_t> head;  // written now and then by the process that polls
};

struct PostedReceive {
  std::atomic<uint64_t> number;  // as in Completion
  uint64_t id;
  uint32_t count;
  ibv_sge sges[kMostReceiveSges];
};

struct alignas(64) SharedReceives {
  std::atomic<uint64_t> head;
  alignas(64) uint64_t ring;
  uint32_t mask;
};

struct alignas(64) SharedQueuePair {
  std::atomic<uint32_t> state;   // ibv_qp_state
  std::atomic<uint32_t> number;  // another one each time that this entry is used; 0: not in use
  uint32_t type, process, domain, receives, completions, access, key, peer, not_ready_timer, receives_shared;
  // The peer is writing: it has seen the state and the rights, and who takes them away waits until it is done.
  alignas(64) std::atomic<uint32_t> busy;
};

// A region, or a window bound to one. All but the key stands still while the key is not 0.
struct alignas(64) SharedRegion {
  std::atomic<uint32_t> key;
  uint32_t last_key, process, domain, access, queue_pair, in_file;
  uint64_t address, bytes;
};

struct Process {
  std::atomic<int> pid;
  std::atomic<uint32_t> ended;
};

struct Layout {
  std::atomic<uint32_t> processes, queue_pairs, completion_queues, receive_queues, regions, channels, domains;
  std::atomic<uint64_t> end;  // of the rings
  Process process[kProcesses];
  SharedQueuePair queue_pair[kQueuePairs];
  SharedCompletions completion_queue[kCompletionQueues];
  SharedReceives receive_queue[kReceiveQueues];
  SharedRegion region[kRegions];
};

}  // namespace ibcoll::rdma_in_memory
