// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "tools/ibcoll_run/byte_queue.h"
#include "tools/ibcoll_run/guard.h"
#include "tools/ibcoll_run/host.h"
#include "tools/ibcoll_run/program_path.h"
#include "tools/ibcoll_run/rank_process.h"
#include "tools/ibcoll_run/secret_folder.h"

namespace ibcoll::run {

// Runs the ranks of this machine: in the launcher's process for a local job, in `ibcoll_run --agent` on a remote host.
class Agent : public Host {
 public:
  enum class Input {
    kInherit,  // rank 0 reads this process's standard input itself
    kForward,  // what send_input() brings
  };

  Agent(EventLoop& loop, HostJob job, HostEvents& events, const ProcessDefaults& defaults, Input input);
  ~Agent() override;

  void start() override;
  void signal(int number) override;
  void kill_rank(int rank) override;
  void resize(int rows, int columns) override;
  void ask() override;
  void pause_output(bool paused) override;
  void send_input(std::string_view bytes) override;
  void abandon() override;

 private:
  struct Rank {
    int number;
    RankProcess process;
    bool exited = false;
  };

  Status spawn_all();
  Status spawn(const SpawnSettings& settings, int index);
  Result<UniqueFd> input_of(int rank);
  Result<OutputEnds> output_of_rank();
  void watch_rank(Rank& rank);
  void watch_failures(UniqueFd read_end);
  void report_exec_failures();
  ProgramPath explain(const ExecFailure& failure) const;
  void on_exit(Rank& rank);
  void look_again();
  // Reads once; false when nothing was there.
  bool read_output(Rank& rank, int stream);
  void end_stream(Rank& rank, int stream);
  void end_streams_that_others_hold();
  void report_leftover_processes();
  void finish_when_done();
  void kill_all();
  void fail(int exit_code, const std::string& text);

  EventLoop& loop_;
  HostJob job_;
  struct Program {
    std::string path;
    std::vector<std::string> environment;  // of all its ranks
  };
  std::vector<Program> programs_;
  HostEvents& events_;
  const ProcessDefaults& defaults_;
  const Input input_mode_;
  SecretFolder secret_folder_;
  Guard guard_;  // gone before the folder is
  ByteQueue input_;
  UniqueFd failures_;
  std::vector<Rank> ranks_;
  int running_ = 0;
  int open_streams_ = 0;
  bool paused_ = false;
  bool finished_ = false;
  bool ending_ = false;
  EventLoop::TimerId stream_timer_ = 0;
  EventLoop::TimerId second_look_ = 0;  // at ranks that have ended, which a debugger must see first
};

}  // namespace ibcoll::run
