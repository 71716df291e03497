// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/ibcoll_run/event_loop.h"
#include "tools/ibcoll_run/host.h"
#include "tools/ibcoll_run/input_source.h"
#include "tools/ibcoll_run/late_ranks.h"
#include "tools/ibcoll_run/line_assembler.h"
#include "tools/ibcoll_run/options.h"
#include "tools/ibcoll_run/output_stream.h"
#include "tools/ibcoll_run/process_defaults.h"
#include "tools/ibcoll_run/rendezvous_server.h"
#include "tools/ibcoll_run/signal_policy.h"

namespace ibcoll::run {

// A running job: starts the hosts, joins their output, watches for the end, and ends what is left when a rank fails.
class Job : public HostEvents {
 public:
  // `jobs`: one entry for each host, without secret and address, which this class provides.
  Job(EventLoop& loop, const Options& options, const ProcessDefaults& defaults);
  ~Job() override;

  // Opens the streams and the rendezvous, and makes the hosts. What fails here fails before any rank runs.
  Status prepare(std::vector<HostJob> jobs);
  // Returns the exit code of ibcoll_run.
  int run();
  // "ibcoll_run: TEXT" on standard error, between the lines of the ranks.
  void say(std::string_view text);

 private:
  struct Rank {
    size_t host = 0;  // as an index of hosts_
    pid_t pid = -1;
    bool ended = false;
    bool failed = false;  // died, or ended with another exit code than 0
    LineAssembler output{""};
    LineAssembler error_output{""};
  };
  struct HostEntry {
    std::string name;
    std::unique_ptr<Host> host;
    std::vector<int> ranks;
    bool remote = false;
    bool started = false;
    bool connecting = false;  // its agent has not answered yet
    bool finished = false;
    bool output_has_come = false;  // since the last look at the end
  };

  void rank_started(int rank, pid_t pid) override;
  void rank_exited(int rank, RankExit exit) override;
  void rank_output(int rank, int stream, std::string_view bytes) override;
  void input_taken(size_t bytes) override;
  void host_says(Host& host, std::string text) override;
  void host_failed(Host& host, int exit_code, std::string text) override;
  void host_lost(Host& host, std::string text) override;
  void host_answers(Host& host) override;
  void host_finished(Host& host) override;

  // Remote shells. sshd refuses logins beyond ten (MaxStartups), and all may go through one gateway.
  static constexpr int kMostConnecting = 10;

  Status open_streams();
  void start_hosts();
  Status watch_signals();
  void on_signal(int number);
  void end_job(int exit_code, std::string_view text);
  void give_up_silent_hosts();
  void rank_ended(Rank& rank);
  void note_failed(const std::string& what, int exit_code);
  void stop_connecting(HostEntry& entry);
  void finish(HostEntry& entry);
  HostEntry& entry_of(const Host& host);
  void resize_terminals();
  void suspend();
  void signal_all(int number);
  void ask();
  void say_who_is_late();
  void pause_when_full();
  void set_paused(bool paused);
  void on_output_broken(const OutputStream& stream);
  bool done() const;
  bool all_have_started() const;

  EventLoop& loop_;
  const Options& options_;
  const ProcessDefaults& defaults_;
  std::shared_ptr<OutputStream> output_;
  std::shared_ptr<OutputStream> error_output_;  // the same object when both are one file
  std::unique_ptr<RendezvousServer> server_;
  std::vector<HostEntry> hosts_;
  std::vector<Rank> ranks_;
  std::unique_ptr<InputSource> input_;
  std::unique_ptr<LateRanks> late_ranks_;  // while the ranks answer ask()
  UniqueFd signals_;
  SignalPolicy signal_policy_;
  Timeouts timeouts_;
  EventLoop::TimerId time_limit_ = 0;  // of --timeout
  size_t next_host_ = 0;               // to be started
  int connecting_ = 0;
  size_t unfinished_hosts_ = 0;
  size_t unended_ranks_ = 0;         // those that have not started yet, too
  std::vector<std::string> deaths_;  // that have not ended the job (--keep-going)
  const EventLoop::Clock::time_point begin_ = EventLoop::Clock::now();
  bool failed_ = false;  // a rank exited with an error; ends the job unless a better reason shows first
  bool ending_ = false;
  bool given_up_ = false;
  bool paused_ = false;
  bool resized_ = false;  // the terminal, since the start
  int exit_code_ = 0;
};

}  // namespace ibcoll::run
