// SPDX-License-Identifier: BSD-3-Clause
// Machines that are none: each has network, processes, host name, /proc and /sys of its own, and a cable to a switch
// that the test may pull. All of it ends with this process, however that ends.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace ibcoll::multiprocess {

class Machines {
 public:
  // Why there are none here (not root, a sandbox); empty: there are.
  static std::string missing();

  // `prepare` gives a machine more devices, before it has eth0.
  explicit Machines(int count, const std::function<void(const Machines&, int machine)>& prepare = {});
  Machines(const Machines&) = delete;
  Machines& operator=(const Machines&) = delete;
  ~Machines();

  // As fork(); the child is on that machine. The device eth0 there has address().
  pid_t fork_on(int machine) const;
  static std::string address(int machine);
  // Runs a command in the network of the machine, its words separated by spaces. Ends the test if it fails.
  void run_on(int machine, const std::string& command) const;
  // The device is ready for use: it is up, and its other end too.
  void await_running(int machine, const std::string& device) const;
  // A cable between two machines, each with a device of this name.
  void join(int machine, int other, const std::string& device) const;
  // The switch drops what comes from the machine and what goes to it, and reports nothing. Any process of the test or
  // of its machines may pull a cable.
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
