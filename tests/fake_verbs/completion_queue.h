// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>

#include "tests/fake_verbs/fabric.h"

namespace ibcoll::fake_verbs {

struct CompletionQueue : ibv_cq {
  struct Entry {
    ibv_wc done;
    uint32_t queue_pair, life;  // whose entries the poll frees, if it is still that one
    uint32_t freed;
    bool of_receive;
  };
  // One too many: the queue is lost, and with it every queue pair that uses it.
  void add(const ibv_wc& done, const QueuePair& of, uint32_t freed, bool of_receive);
  void overflow();
  void take(Entry& entry);

  std::deque<Entry> entries;
  bool overrun = false;
  size_t users = 0;  // ends of queue pairs
};

}  // namespace ibcoll::fake_verbs
