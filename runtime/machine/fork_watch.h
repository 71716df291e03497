// SPDX-License-Identifier: BSD-3-Clause
// A child that fork() makes inherits the contexts of its parent: the node's memory, sockets and queue pairs, under the
// parent's rank, and perhaps a lock held by a thread that the child does not have. A call there would act as the
// parent.
#pragma once

namespace ibcoll {

// Each context has one.
class ForkWatch {
 public:
  ForkWatch();
  ForkWatch(const ForkWatch&) = delete;
  ForkWatch& operator=(const ForkWatch&) = delete;
  ~ForkWatch();

  // True in a process whose parent had a context when it forked.
  static bool in_child() noexcept { return in_child_; }

 private:
  static bool in_child_;  // written before the child has a second thread
};

}  // namespace ibcoll
