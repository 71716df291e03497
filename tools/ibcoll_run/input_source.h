// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include "tools/ibcoll_run/event_loop.h"
#include "tools/ibcoll_run/host.h"

namespace ibcoll::run {

// Forwards the launcher's standard input to rank 0: at most kInputWindow and the size of a pipe ahead of what rank 0
// has read. Other readers of the same file or terminal get the rest.
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
  bool waits_ = false;  // the loop reports input; else the file can always be read (a regular file)
  bool ended_ = false;
  EventLoop::TimerId retry_ = 0;
};

}  // namespace ibcoll::run
