// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/agent_main.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>

#include "tools/ibcoll_run/agent.h"
#include "tools/ibcoll_run/agent_channel.h"
#include "tools/ibcoll_run/heartbeat.h"

namespace ibcoll::run {
namespace {

using namespace std::chrono_literals;

constexpr auto kJobTimeout = 30s;

// Passes on what the agent reports, and does what the launcher says.
class AgentServer : public HostEvents {
 public:
  AgentServer(EventLoop& loop, const ProcessDefaults& defaults)
      : loop_(loop), defaults_(defaults), replies_(loop), heartbeat_(loop, replies_) {
    replies_.on_drained = [this] { update_pause(); };
    replies_.on_broken = [this] { launcher_gone_ = true; };
  }

  int run() {
    if (!replies_.borrow(STDOUT_FILENO).ok() ||
        !loop_.watch(STDIN_FILENO, EPOLLIN, [this](uint32_t) { read_once(); }).ok()) {
      return complain("standard input and output must be the launcher's pipes");
    }
    Result<UniqueFd> signals = signal_descriptor();
    if (!signals.ok() ||
        !loop_.watch(signals->get(), EPOLLIN, [this, fd = signals->get()](uint32_t) { on_signal(fd); }).ok())
      return complain("cannot watch for signals");
    loop_.after(kJobTimeout, [this] { launcher_gone_ = launcher_gone_ || !agent_; });
    replies_.write(kGreeting);
    while (!launcher_gone_ && !(finished_ && replies_.empty())) {
      if (Status status = loop_.run_once(); !status.ok()) return complain(status.text());
    }
    if (agent_) agent_->abandon();  // no launcher, no ranks
    return finished_ ? 0 : 1;
  }

 private:
  static int complain(const std::string& text) {
    std::fprintf(stderr, "ibcoll_run --agent: %s\n", text.c_str());
    return 2;
  }

  void read_once() {
    std::array<char, 65536> buffer;
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) {
      launcher_gone_ = true;
      return;
    }
    heartbeat_.heard();
    frames_.add({buffer.data(), static_cast<size_t>(got)});
    AgentFrame frame;
    for (;;) {
      const Result<bool> whole = frames_.next(frame);
      if (!whole.ok()) return fail(1, whole.status().text());
      if (!whole.value()) return;
      obey(frame);
    }
  }

  // Only SIGTERM is for this process: those of a terminal reach the launcher, too, which passes them on.
  void on_signal(int fd) {
    signalfd_siginfo signal{};
    while (::read(fd, &signal, sizeof signal) == sizeof signal) {
      if (signal.ssi_signo != SIGTERM) continue;
      launcher_gone_ = true;
      complain(fmt::format("got SIGTERM from pid {}; ending its ranks here", signal.ssi_pid));
    }
  }

  void obey(const AgentFrame& frame) {
    if (frame.message == Message::kJob) return start(frame.body);
    if (!agent_) return;
    switch (frame.message) {
      case Message::kSignal:
        if (frame.value == SIGTSTP) heartbeat_.excuse();  // the launcher stops, too
        return agent_->signal(frame.value);
      case Message::kKillRank:
        return agent_->kill_rank(frame.rank);
      case Message::kResize:
        return agent_->resize(frame.value >> 16 & 0xffff, frame.value & 0xffff);
      case Message::kAsk:
        return agent_->ask();
      case Message::kPause:
        pause_asked_ = frame.value != 0;
        return update_pause();
      case Message::kInput:
        return agent_->send_input(frame.body);
      default:
        return;
    }
  }

  void start(std::string_view description) {
    if (agent_) return;
    Result<HostJob> job = unpack_job(description);
    if (!job.ok()) return fail(1, job.status().text());
    if (::chdir(job->folder.c_str()) != 0) {
      return fail(1, fmt::format("cannot enter the working directory {}: {}", job->folder, std::strerror(errno)));
    }
    heartbeat_.start(Heartbeat::Seconds(job->timeouts.launcher_silence),
                     [this, host = job->host, seconds = job->timeouts.launcher_silence] { on_silence(host, seconds); });
    const Agent::Input input = job->ranks.front() == 0 ? Agent::Input::kForward : Agent::Input::kInherit;
    agent_ = std::make_unique<Agent>(loop_, std::move(job.value()), *this, defaults_, input);
    agent_->start();
  }

  void on_silence(const std::string& host, double seconds) {
    launcher_gone_ = true;
    agent_->abandon();
    complain(fmt::format("host {}: nothing heard from the launcher for {} s; ended its ranks here", host, seconds));
  }

  void fail(int exit_code, const std::string& text) {
    send({.message = Message::kFailed, .value = exit_code, .body = text});
    if (!agent_) finished();
  }

  void finished() {
    send({.message = Message::kFinished, .body = {}});
    finished_ = true;
  }

  void send(const AgentFrame& frame) {
    send_frame(replies_, frame);
    if (replies_.full()) update_pause();
  }

  void update_pause() {
    const bool paused = pause_asked_ || replies_.full();
    if (agent_ && paused != paused_) agent_->pause_output(paused);
    paused_ = paused;
  }

  void rank_started(int rank, pid_t pid) override {
    send({.message = Message::kStarted, .rank = rank, .value = pid, .body = {}});
  }
  void rank_exited(int rank, RankExit exit) override {
    const int32_t value = exit.signal == 0 ? exit.code : 256 + exit.signal;
    send({.message = Message::kExited, .rank = rank, .value = value, .body = {}});
  }
  void rank_output(int rank, int stream, std::string_view bytes) override {
    send({.message = Message::kOutput, .rank = rank, .value = stream, .body = bytes});
  }
  void input_taken(size_t bytes) override {
    send({.message = Message::kInputTaken, .value = static_cast<int32_t>(bytes), .body = {}});
  }
  void host_says(Host&, std::string text) override { send({.message = Message::kSays, .body = text}); }
  void host_failed(Host&, int exit_code, std::string text) override {
    send({.message = Message::kFailed, .value = exit_code, .body = text});
  }
  void host_finished(Host&) override { finished(); }

  EventLoop& loop_;
  const ProcessDefaults& defaults_;
  ByteQueue replies_;
  Heartbeat heartbeat_;
  AgentFrameReader frames_;
  std::unique_ptr<Agent> agent_;
  bool pause_asked_ = false;
  bool paused_ = false;
  bool finished_ = false;
  bool launcher_gone_ = false;
};

}  // namespace

int agent_main(const ProcessDefaults& defaults) {
  EventLoop loop;
  if (Status status = loop.open(); !status.ok()) {
    std::fprintf(stderr, "ibcoll_run --agent: %s\n", status.text().c_str());
    return 2;
  }
  AgentServer server(loop, defaults);
  return server.run();
}

}  // namespace ibcoll::run
