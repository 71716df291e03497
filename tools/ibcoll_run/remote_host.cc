// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/remote_host.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>

#include "tools/ibcoll_run/rank_process.h"

namespace ibcoll::run {
namespace {

using namespace std::chrono_literals;

constexpr auto kGreetingTimeout = 30s;
constexpr size_t kMostChatter = 64 * 1024;  // what a login shell may print before the agent speaks
constexpr const char* kDefaultShell = "ssh -x -o BatchMode=yes -o ConnectTimeout=10";

// One word for the shell on the other side.
std::string quoted(const std::string& word) {
  constexpr std::string_view kSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+=:,@%";
  if (!word.empty() && word.find_first_not_of(kSafe) == std::string::npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

constexpr int kConnectionLost = 255;
constexpr std::array kRetryDelays{500ms, 1500ms};

std::string text_of_ending(int wait_status) {
  if (WIFSIGNALED(wait_status)) return fmt::format("was killed by signal {}", WTERMSIG(wait_status));
  return fmt::format("exited with status {}", WEXITSTATUS(wait_status));
}

}  // namespace

std::vector<std::string> agent_command(const std::string& rsh, const std::string& host, const std::string& program) {
  std::istringstream words(rsh.empty() ? kDefaultShell : rsh);
  std::vector<std::string> command;
  for (std::string word; words >> word;) command.push_back(word);
  command.insert(command.end(), {host, quoted(program), "--agent"});
  return command;
}

RemoteHost::RemoteHost(EventLoop& loop, HostJob job, HostEvents& events, const std::string& rsh,
                       const ProcessDefaults& defaults)
    : loop_(loop), job_(std::move(job)), events_(events), defaults_(defaults), input_(loop), heartbeat_(loop, input_) {
  std::error_code failed;
  command_ = agent_command(rsh, job_.host, std::filesystem::read_symlink("/proc/self/exe", failed));
}

RemoteHost::~RemoteHost() { abandon(); }

void RemoteHost::start() {
  if (Status status = start_shell(); !status.ok()) return lose(status.text());
  send_frame(input_, {.message = Message::kJob, .body = pack_job(job_)});
  deadline_ = loop_.after(kGreetingTimeout, [this] {
    lose(fmt::format("no agent answered through '{}' within {} s; does it work without a password?", command_.front(),
                     kGreetingTimeout.count()));
  });
}

Status RemoteHost::start_shell() {
  int to_shell[2];
  int from_shell[2];
  if (::pipe2(to_shell, O_CLOEXEC) != 0) return error(IBCOLL_ERR_SYSTEM, "pipe2: {}", std::strerror(errno));
  const UniqueFd shell_input(to_shell[0]);
  UniqueFd input(to_shell[1]);
  if (::pipe2(from_shell, O_CLOEXEC) != 0) return error(IBCOLL_ERR_SYSTEM, "pipe2: {}", std::strerror(errno));
  output_.reset(from_shell[0]);
  const UniqueFd shell_output(from_shell[1]);
  if (Status status = input_.own(std::move(input)); !status.ok()) return status;

  std::vector<char*> argv;
  argv.reserve(command_.size() + 1);
  for (std::string& word : command_) argv.push_back(word.data());
  argv.push_back(nullptr);
  shell_ = ::fork();
  if (shell_ < 0) return error(IBCOLL_ERR_SYSTEM, "fork: {}", std::strerror(errno));
  if (shell_ == 0) {
    ::setsid();  // Ctrl-C reaches the ranks through the launcher: the remote shell must outlive it
    ::dup2(shell_input.get(), STDIN_FILENO);
    ::dup2(shell_output.get(), STDOUT_FILENO);
    defaults_.restore();
    ::execvp(argv[0], argv.data());
    const std::string text = fmt::format("ibcoll_run: host {}: {}: {}\n", job_.host, argv[0], std::strerror(errno));
    if (::write(STDERR_FILENO, text.data(), text.size()) < 0) ::_exit(126);
    ::_exit(127);
  }
  Result<UniqueFd> descriptor = open_process(shell_);
  if (!descriptor.ok()) return descriptor.status();
  shell_descriptor_ = std::move(descriptor.value());
  if (Status status = loop_.watch(shell_descriptor_.get(), EPOLLIN, [this](uint32_t) { on_shell_exit(); });
      !status.ok()) {
    return status;
  }
  ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(output_.get(), F_SETPIPE_SZ, 1 << 20);  // it has the output of many ranks; refused: the default size
  return loop_.watch(output_.get(), EPOLLIN, [this](uint32_t) { read_once(); });
}

void RemoteHost::read_once() {
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(output_.get(), buffer.data(), buffer.size());
  if (got > 0) {
    take({buffer.data(), static_cast<size_t>(got)});
  } else if (got == 0) {
    close_output();
  }
}

void RemoteHost::take(std::string_view bytes) {
  if (finished_) return;  // a host that was given up is heard again
  heartbeat_.heard();
  if (!greeted_) {
    before_greeting_ += bytes;
    return find_greeting();
  }
  frames_.add(bytes);
  AgentFrame frame;
  for (;;) {
    const Result<bool> whole = frames_.next(frame);
    if (!whole.ok()) return lose(whole.status().text());
    if (!whole.value()) return;
    handle(frame);
    if (finished_) return;
  }
}

// A login script may print before the agent does; that is neither ours nor the job's output.
void RemoteHost::find_greeting() {
  const size_t at = before_greeting_.find(kGreeting);
  if (at == std::string::npos) {
    if (before_greeting_.size() > kMostChatter) lose("something else than ibcoll_run's agent answers");
    return;
  }
  greeted_ = true;
  loop_.cancel(deadline_);
  events_.host_answers(*this);
  heartbeat_.start(Heartbeat::Seconds(job_.timeouts.agent_silence), [this] { on_silence(); });
  const std::string rest = before_greeting_.substr(at + kGreeting.size());
  before_greeting_.clear();
  if (!rest.empty()) take(rest);
}

void RemoteHost::on_silence() {
  lose(fmt::format(
      "nothing heard from its agent for {} s; is the host up, and the network to it? Its ranks may still run",
      job_.timeouts.agent_silence));
}

void RemoteHost::handle(const AgentFrame& frame) {
  const int rank = frame.rank;
  const bool ours = std::binary_search(job_.ranks.begin(), job_.ranks.end(), rank);
  switch (frame.message) {
    case Message::kStarted:
      if (ours) events_.rank_started(rank, frame.value);
      return;
    case Message::kExited:
      if (ours)
        events_.rank_exited(rank, frame.value < 256 ? RankExit{frame.value, 0} : RankExit{0, frame.value - 256});
      return;
    case Message::kOutput:
      if (ours) events_.rank_output(rank, frame.value, frame.body);
      return;
    case Message::kInputTaken:
      return events_.input_taken(static_cast<size_t>(frame.value));
    case Message::kSays:
      return events_.host_says(*this, std::string(frame.body));
    case Message::kFailed:
      return events_.host_failed(*this, frame.value, std::string(frame.body));
    case Message::kFinished:
      return finish();
    case Message::kAlive:
      return;
    default:
      return lose("the agent sent what only the launcher sends");
  }
}

void RemoteHost::on_shell_exit() {
  while (output_ && !finished_) {  // what it said before it ended
    std::array<char, 65536> buffer;
    const ssize_t got = ::read(output_.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    take({buffer.data(), static_cast<size_t>(got)});
  }
  loop_.forget(shell_descriptor_.get());
  shell_descriptor_.reset();
  int status = 0;
  const bool known = ::waitpid(shell_, &status, WNOHANG) == shell_;  // else a debugger must see it first
  shell_ = -1;
  if (finished_) return;
  const std::string why = fmt::format("'{}' {} {}", command_.front(), known ? text_of_ending(status) : "ended",
                                      greeted_ ? "while ranks were running there" : "before an agent answered");
  const bool connection_lost = known && WIFEXITED(status) && WEXITSTATUS(status) == kConnectionLost && !greeted_;
  if (!connection_lost || !try_again(why)) lose(why);
}

// False: it was tried often enough.
bool RemoteHost::try_again(const std::string& why) {
  if (tries_ == kRetryDelays.size()) return false;
  loop_.cancel(deadline_);
  if (output_) close_output();
  before_greeting_.clear();
  events_.host_says(*this, why + "; trying again");
  retry_ = loop_.after(kRetryDelays[tries_++], [this] {
    retry_ = 0;
    start();
  });
  return true;
}

void RemoteHost::lose(const std::string& why) {
  if (finished_) return;
  lost_ = true;
  events_.host_lost(*this, why);
  finish();
}

void RemoteHost::finish() {
  if (finished_) return;
  finished_ = true;
  loop_.cancel(deadline_);
  loop_.cancel(std::exchange(retry_, 0));
  heartbeat_.stop();
  input_.close_when_written();
  events_.host_finished(*this);
}

void RemoteHost::close_output() {
  loop_.forget(output_.get());
  output_.reset();
}

void RemoteHost::signal(int number) {
  const bool ends = number == SIGTERM || number == SIGKILL;
  if (ends) tries_ = kRetryDelays.size();
  if (ends && retry_ != 0) return finish();
  send_frame(input_, {.message = Message::kSignal, .value = number, .body = {}});
}

void RemoteHost::kill_rank(int rank) { send_frame(input_, {.message = Message::kKillRank, .rank = rank, .body = {}}); }

void RemoteHost::resize(int rows, int columns) {
  send_frame(input_, {.message = Message::kResize, .value = rows << 16 | columns, .body = {}});
}

void RemoteHost::ask() { send_frame(input_, {.message = Message::kAsk, .body = {}}); }

void RemoteHost::pause_output(bool paused) {
  send_frame(input_, {.message = Message::kPause, .value = paused ? 1 : 0, .body = {}});
}

void RemoteHost::send_input(std::string_view bytes) { send_frame(input_, {.message = Message::kInput, .body = bytes}); }

void RemoteHost::abandon() {
  const int number = finished_ && !lost_ ? SIGTERM : SIGKILL;  // one that hangs may hang at SIGTERM as well
  finished_ = true;
  loop_.cancel(deadline_);
  loop_.cancel(std::exchange(retry_, 0));
  heartbeat_.stop();
  input_.close_when_written();  // the agent ends with its input, and its ranks with it
  if (output_) close_output();
  if (shell_descriptor_) loop_.forget(shell_descriptor_.get());
  if (shell_ > 0) {
    ::kill(-shell_, number);
    shell_ = -1;
  }
}

}  // namespace ibcoll::run
