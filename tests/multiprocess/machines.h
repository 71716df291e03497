// SPDX-License-Identifier: BSD-3-Clause
// Machines that are none: each has network, processes, host name and /proc of its own, and a cable to a switch that the
// test may pull. All of it ends with this process, however that ends.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ibcoll::multiprocess {

class Machines {
 public:
  // Why there are none here (not root, a sandbox); empty: there are.
  static std::string missing();

  explicit Machines(int count);
  Machines(const Machines&) = delete;
  Machines& operator=(const Machines&) = delete;
  ~Machines();

  // As fork(); the child is on that machine. The device eth0 there has address().
  pid_t fork_on(int machine) const;
  static std::string address(int machine);
  // The switch drops what comes from the machine and what goes to it, and tells nobody. Any process of the test or of
  // its machines may pull a cable.
  void pull_cable(int machine) const;

 private:
  struct Namespaces {
    pid_t keeper = -1;  // the first process of the machine
    int network = -1;
    int processes = -1;
    int host = -1;
    int lives = -1;  // its end tells the keeper that this process is gone
  };
  static Namespaces make(bool of_processes);
  static void end(const Namespaces& machine);
  void connect(int machine) const;

  Namespaces switch_;
  std::vector<Namespaces> machines_;
};

}  // namespace ibcoll::multiprocess
