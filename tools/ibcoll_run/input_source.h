// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include "tools/ibcoll_run/event_loop.h"
#include "tools/ibcoll_run/host.h"

namespace ibcoll::run {

// Brings the launcher's standard input to rank 0, up to kInputWindow and a pipe more than that one has read. What is
// not read here stays for whoever reads the same file or terminal next, or at the same time.
class InputSource {
 public:
  InputSource(EventLoop& loop, Host& host) : loop_(loop), host_(host) {}
  ~InputSource();

  void start();
  void taken(size_t bytes);

 private:
  void open();
  long read_some(char* to, size_t bytes) const;
  void read_once();
  void read_always_ready();
  void end();

  EventLoop& loop_;
  Host& host_;
  UniqueFd own_;
  int fd_ = 0;  // standard input, or own_
  bool socket_ = false;
  size_t room_ = Host::kInputWindow;
  bool waits_ = false;  // the loop tells when there is input; else it is always there (a regular file)
  bool ended_ = false;
  EventLoop::TimerId retry_ = 0;
};

}  // namespace ibcoll::run
