// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "tools/ibcoll_run/agent_channel.h"
#include "tools/ibcoll_run/byte_queue.h"
#include "tools/ibcoll_run/heartbeat.h"
#include "tools/ibcoll_run/host.h"
#include "tools/ibcoll_run/process_defaults.h"

namespace ibcoll::run {

// A host whose ranks an agent runs, at the other end of a remote shell (ssh, or what --rsh says). Secret and
// environment go through the shell's standard input; its command line has only `ibcoll_run --agent`. A shell that
// exits with status 255 before the agent answers has lost its connection, as ssh has where sshd has too many logins at a
// time (MaxStartups): it is tried again.
class RemoteHost : public Host {
 public:
  RemoteHost(EventLoop& loop, HostJob job, HostEvents& events, const std::string& rsh, const ProcessDefaults& defaults);
  ~RemoteHost() override;

  void start() override;
  void signal(int number) override;
  void kill_rank(int rank) override;
  void resize(int rows, int columns) override;
  void ask() override;
  void pause_output(bool paused) override;
  void send_input(std::string_view bytes) override;
  void abandon() override;

 private:
  Status start_shell();
  void read_once();
  void take(std::string_view bytes);
  void find_greeting();
  void on_silence();
  void handle(const AgentFrame& frame);
  void on_shell_exit();
  bool try_again(const std::string& why);
  void lose(const std::string& why);
  void finish();
  void close_output();

  EventLoop& loop_;
  const HostJob job_;
  HostEvents& events_;
  std::vector<std::string> command_;
  const ProcessDefaults& defaults_;
  pid_t shell_ = -1;
  UniqueFd shell_descriptor_;
  UniqueFd output_;
  ByteQueue input_;
  Heartbeat heartbeat_;
  bool greeted_ = false;
  bool finished_ = false;
  bool lost_ = false;
  std::string before_greeting_;
  AgentFrameReader frames_;
  EventLoop::TimerId deadline_ = 0;
  EventLoop::TimerId retry_ = 0;  // 0: no shell is about to be started
  size_t tries_ = 0;
};

// The command that runs the agent on a host: CMD's words, the host, the path of this program, --agent.
std::vector<std::string> agent_command(const std::string& rsh, const std::string& host, const std::string& program);

}  // namespace ibcoll::run
