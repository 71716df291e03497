// SPDX-License-Identifier: BSD-3-Clause
// One host of a job as the launcher sees it: here (agent.h) or behind a remote shell (remote_host.h).
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/rendezvous_protocol.h"
#include "tools/ibcoll_run/timeouts.h"

namespace ibcoll::run {

// One of the programs of a job.
struct RankProgram {
  std::vector<std::string> words;        // with arguments
  std::vector<std::string> environment;  // NAME=VALUE, on top of that of the job
  std::string folder;                    // working directory; "": the host's
};

// The cores that ranks are bound to.
struct Binding {
  enum class To { kAuto, kNone, kCore, kNuma };  // kAuto: cores, where the ranks fill the machine
  To to = To::kAuto;
  int cores_per_rank = 1;
  bool report = false;
};

// Whether the ranks' standard output is a pseudo-terminal, and of what size.
struct Terminal {
  enum class Use { kNo, kIfThereAreSome, kYes };
  Use use = Use::kNo;
  int rows = 24;
  int columns = 80;
};

// The data that a host needs to start its ranks.
struct HostJob {
  std::string host;
  std::vector<int> ranks;          // on this host, ascending
  int size = 0;                    // ranks of the job
  std::vector<std::string> nodes;  // node text of each rank here; empty: the host itself is the node
  std::vector<int> program_of;     // of each rank here, as an index of `programs`
  std::vector<RankProgram> programs;
  std::string address;  // of the rendezvous, as this host reaches it
  bool remote = false;  // not the launcher's machine
  bool local = false;   // the whole job is on the launcher's machine
  Binding binding;
  Terminal terminal;
  rendezvous::Secret secret{};
  Timeouts timeouts;
  std::string folder;                    // working directory
  std::vector<std::string> environment;  // NAME=VALUE, on top of what the host has
};

struct RankExit {
  int code = 0;  // exit status, when signal is 0
  int signal = 0;
};

class Host;

// The reports of a host. Order for one rank: started, output and exited in any order, output with no bytes (the end).
class HostEvents {
 public:
  virtual ~HostEvents() = default;
  virtual void rank_started(int rank, pid_t pid) = 0;
  virtual void rank_exited(int rank, RankExit exit) = 0;
  // stream: 1 standard output, 2 standard error. No bytes: the stream ended.
  virtual void rank_output(int rank, int stream, std::string_view bytes) = 0;
  // Rank 0 took this many bytes of its standard input: as many more may be sent.
  virtual void input_taken(size_t bytes) = 0;
  // The agent of a remote host answers: its remote shell has logged in.
  virtual void host_answers(Host& /*host*/) {}
  // A message for the user.
  virtual void host_says(Host& host, std::string text) = 0;
  // Ranks cannot be started; `exit_code` is what the launcher should end with.
  virtual void host_failed(Host& host, int exit_code, std::string text) = 0;
  // A remote host is not heard any more, and so its ranks are lost.
  virtual void host_lost(Host& /*host*/, std::string /*text*/) {}
  // All ranks have ended and all output was reported. The last call.
  virtual void host_finished(Host& host) = 0;
};

class Host {
 public:
  static constexpr size_t kInputWindow = 64 * 1024;  // bytes of standard input in flight to rank 0

  virtual ~Host() = default;
  virtual void start() = 0;
  // To every process of every rank here.
  virtual void signal(int number) = 0;
  // SIGKILL to the processes of one rank here.
  virtual void kill_rank(int rank) = 0;
  // The pseudo-terminals of the ranks here have this size from now on. Sends no signal.
  virtual void resize(int rows, int columns) = 0;
  // SIGUSR1 to those processes of the ranks that catch it: ibcoll prints what its collectives wait for.
  virtual void ask() = 0;
  virtual void pause_output(bool paused) = 0;
  // Standard input of rank 0; no bytes: its end.
  virtual void send_input(std::string_view bytes) = 0;
  // The host does not answer: gives it up, without further calls to its events.
  virtual void abandon() = 0;
};

}  // namespace ibcoll::run
