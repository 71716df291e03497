// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/job.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "tools/ibcoll_run/launch.h"
#include "tools/terminal.h"

namespace ibcoll::run {
namespace {

using namespace std::chrono_literals;

constexpr auto kGrace = 2s;    // between SIGTERM and SIGKILL
constexpr int kLauncher = -1;  // as source of lines
constexpr int kTimeoutExitCode = 124;
constexpr int kLostHostExitCode = 1;
constexpr std::chrono::milliseconds kTimeForTheCause{200};
constexpr auto kTimeToAnswer = 1s;  // for the ranks that were asked

bool same_file(int a, int b) {
  if (((::fcntl(a, F_GETFL) ^ ::fcntl(b, F_GETFL)) & O_ACCMODE) != 0) return false;  // /dev/null for a closed output
  struct stat first {};
  struct stat second {};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

std::string describe(RankExit exit) {
  if (exit.signal == 0) return fmt::format("exited with status {}", exit.code);
  const char* name = ::strsignal(exit.signal);
  return fmt::format("was killed by signal {} ({})", exit.signal, name == nullptr ? "?" : name);
}

}  // namespace

Job::Job(EventLoop& loop, const Options& options, const ProcessDefaults& defaults)
    : loop_(loop), options_(options), defaults_(defaults) {}

Job::~Job() {
  input_.reset();
  if (signals_) loop_.forget(signals_.get());
}

Status Job::prepare(std::vector<HostJob> jobs) {
  const int ranks = jobs.front().size;
  if (const int least = options_.keep_going.value_or(1); least < 1 || least > ranks)
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "--keep-going=MIN: MIN is from 1 to {}, the ranks of the job", ranks);
  if (Status status = open_streams(); !status.ok()) return status;
  if (Status status = watch_signals(); !status.ok()) return status;
  timeouts_ = jobs.front().timeouts;
  Result<std::unique_ptr<RendezvousServer>> server = open_rendezvous(loop_, options_, jobs);
  if (!server.ok()) return server.status();
  server_ = std::move(server.value());
  server_->on_accused = [this](int rank) { hosts_[ranks_[static_cast<size_t>(rank)].host].host->kill_rank(rank); };
  server_->on_trouble = [this](const std::string& text) { say(text); };
  const bool forward = forwards_input(jobs.front());
  ranks_.resize(static_cast<size_t>(jobs.front().size));
  for (HostJob& job : jobs) {
    for (const int number : job.ranks) {
      const std::string tag = options_.tag_output ? fmt::format("[{}] ", number) : "";
      ranks_[static_cast<size_t>(number)] = {.host = hosts_.size(),
                                             .output = LineAssembler(tag, output_->terminal()),
                                             .error_output = LineAssembler(tag, error_output_->terminal())};
    }
    HostEntry entry{.name = job.host, .host = nullptr, .ranks = job.ranks, .remote = job.remote};
    entry.host = make_host(loop_, std::move(job), *this, options_, defaults_);
    hosts_.push_back(std::move(entry));
  }
  unended_ranks_ = ranks_.size();
  if (forward) input_ = std::make_unique<InputSource>(loop_, *hosts_.front().host);
  return {};
}

Status Job::open_streams() {
  const auto open = [&](int fd) -> Result<std::shared_ptr<OutputStream>> {
    auto stream = std::make_shared<OutputStream>(loop_, overwrites_lines(fd));
    OutputStream* raw = stream.get();
    if (Status status = raw->queue.borrow(fd); !status.ok()) return status;
    raw->queue.on_drained = [this] { set_paused(false); };
    raw->queue.on_broken = [this, raw] { on_output_broken(*raw); };
    return stream;
  };
  Result<std::shared_ptr<OutputStream>> output = open(STDOUT_FILENO);
  if (!output.ok()) return output.status();
  output_ = error_output_ = std::move(output.value());
  if (same_file(STDOUT_FILENO, STDERR_FILENO)) return {};
  Result<std::shared_ptr<OutputStream>> error_output = open(STDERR_FILENO);
  if (!error_output.ok()) return error_output.status();
  error_output_ = std::move(error_output.value());
  return {};
}

void Job::say(std::string_view text) { error_output_->write(kLauncher, fmt::format("ibcoll_run: {}\n", text)); }

int Job::run() {
  unfinished_hosts_ = hosts_.size();
  if (options_.timeout > 0) {
    time_limit_ = loop_.after(std::chrono::duration<double>(options_.timeout), [this] {
      end_job(kTimeoutExitCode,
              fmt::format("the job has not ended within {} s (--timeout); ending it", options_.timeout));
    });
  }
  start_hosts();
  if (input_) input_->start();
  while (!done()) {
    if (Status status = loop_.run_once(); !status.ok()) {
      say(status.text());
      return 1;
    }
  }
  if (!deaths_.empty())
    say(fmt::format("{} of {} ranks did not finish: {}", deaths_.size(), ranks_.size(), fmt::join(deaths_, "; ")));
  return exit_code_;
}

bool Job::done() const {
  if (given_up_) return true;
  if (failed_ && !ending_) return false;
  return unfinished_hosts_ == 0 && output_->queue.empty() && error_output_->queue.empty();
}

void Job::rank_started(int rank, pid_t pid) { ranks_[static_cast<size_t>(rank)].pid = pid; }

bool Job::all_have_started() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.ended || rank.pid > 0; });
}

void Job::rank_ended(Rank& rank) {
  if (!std::exchange(rank.ended, true)) --unended_ranks_;
}

void Job::rank_exited(int rank, RankExit exit) {
  Rank& entry = ranks_[static_cast<size_t>(rank)];
  const std::string& host = hosts_[entry.host].name;
  const std::string what = fmt::format("rank {} on host {} (pid {}) {}", rank, host, entry.pid, describe(exit));
  const int code = exit.signal != 0 ? 128 + exit.signal : exit.code;
  rank_ended(entry);
  entry.failed = code != 0;
  // First how the process ended: a verdict that names the rank may follow. Ranks of a job that is ended get a signal
  // instead.
  if (!ending_)
    server_->report_end(rank, fmt::format("its process (pid {} on host {}) {}", entry.pid, host, describe(exit)));
  server_->rank_ended(rank, what);
  if (code == 0) return;
  if (options_.keep_going) {
    // A rank that ends itself with an error has not died: the user gets its exit code.
    if (exit.signal == 0 && !ending_ && exit_code_ == 0) exit_code_ = code;
    return note_failed(what, code);
  }
  const bool gave_up = exit.signal == 0 || exit.signal == SIGABRT;
  if (!gave_up) {
    end_job(code, what + "; ending the job");
  } else if (!failed_) {
    // When a rank is killed, others may fail before its end is seen here. The killed one is the cause.
    failed_ = true;
    loop_.after(kTimeForTheCause, [this, what, code] { end_job(code, what + "; ending the job"); });
  }
}

// Under --keep-going.
void Job::note_failed(const std::string& what, int exit_code) {
  if (ending_) return;
  const auto after = std::chrono::duration<double>(EventLoop::Clock::now() - begin_).count();
  deaths_.push_back(fmt::format("{} after {:.1f} s", what, after));
  const auto left = std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.failed; });
  if (left >= *options_.keep_going) return say(fmt::format("{}; {} ranks go on", what, left));
  end_job(exit_code, fmt::format("{}; {} of {} ranks are left, and --keep-going={} wants more; ending the job", what,
                                 left, ranks_.size(), *options_.keep_going));
}

void Job::rank_output(int rank, int stream, std::string_view bytes) {
  Rank& entry = ranks_[static_cast<size_t>(rank)];
  const std::shared_ptr<OutputStream>& target = stream == 1 ? output_ : error_output_;
  const auto emit = [&](std::string_view text) {
    target->write(rank * 2 + stream, text);
    if (stream == 2 && late_ranks_) late_ranks_->read(text);
  };
  LineAssembler& lines = stream == 1 ? entry.output : entry.error_output;
  if (bytes.empty()) {
    lines.finish(emit);
  } else {
    hosts_[entry.host].output_has_come = true;
    lines.feed(bytes, emit);
    // The lines of one rank alone cannot be mixed with others: a prompt appears at once.
    if (ranks_.size() == 1) lines.finish(emit);
  }
  pause_when_full();
}

void Job::input_taken(size_t bytes) {
  if (input_) input_->taken(bytes);
}

void Job::host_says(Host& host, std::string text) { say(fmt::format("host {}: {}", entry_of(host).name, text)); }

void Job::host_failed(Host& host, int exit_code, std::string text) {
  end_job(exit_code, fmt::format("host {}: {}", entry_of(host).name, text));
}

// Where not all ranks have started, the job cannot run. A host that is lost later is as dead as its ranks; each of these
// is reported.
void Job::host_lost(Host& host, std::string text) {
  HostEntry& entry = entry_of(host);
  const std::string what = fmt::format("host {}: {}", entry.name, text);
  if (!options_.keep_going || !all_have_started()) return end_job(kLostHostExitCode, what);
  for (const int number : entry.ranks) {
    Rank& rank = ranks_[static_cast<size_t>(number)];
    if (rank.ended) continue;
    rank_ended(rank);
    rank.failed = true;
    server_->report_end(number, fmt::format("its {}", what));
    server_->rank_ended(number, fmt::format("rank {} was lost ({})", number, what));
    note_failed(fmt::format("rank {} was lost ({})", number, what), kLostHostExitCode);
  }
}

void Job::host_answers(Host& host) { stop_connecting(entry_of(host)); }

void Job::host_finished(Host& host) { finish(entry_of(host)); }

// As many as may connect at a time. Once the job ends, the others are not started any more.
void Job::start_hosts() {
  while (next_host_ < hosts_.size() && (ending_ || connecting_ < kMostConnecting)) {
    HostEntry& entry = hosts_[next_host_++];
    if (ending_) {
      finish(entry);
      continue;
    }
    entry.started = true;
    entry.connecting = entry.remote;
    connecting_ += entry.remote ? 1 : 0;
    entry.host->start();
    if (paused_) entry.host->pause_output(true);
    if (resized_) resize_terminals();
  }
}

void Job::stop_connecting(HostEntry& entry) {
  if (!std::exchange(entry.connecting, false)) return;
  --connecting_;
  start_hosts();
}

Job::HostEntry& Job::entry_of(const Host& host) {
  return *std::find_if(hosts_.begin(), hosts_.end(), [&](const HostEntry& entry) { return entry.host.get() == &host; });
}

// Nothing more comes from the host.
void Job::finish(HostEntry& entry) {
  if (std::exchange(entry.finished, true)) return;
  --unfinished_hosts_;
  for (const int number : entry.ranks) {
    rank_ended(ranks_[static_cast<size_t>(number)]);
    for (const int stream : {1, 2}) rank_output(number, stream, {});
  }
  stop_connecting(entry);
}

void Job::pause_when_full() {
  if (output_->queue.full() || error_output_->queue.full()) set_paused(true);
}

void Job::set_paused(bool paused) {
  if (!paused && (output_->queue.full() || error_output_->queue.full())) return;
  if (paused_ == paused) return;
  paused_ = paused;
  for (const HostEntry& entry : hosts_)
    if (entry.started) entry.host->pause_output(paused);
}

// As in `program | head`: when the reader has ended, the program ends.
void Job::on_output_broken(const OutputStream& stream) {
  set_paused(false);
  if (stream.queue.broken_reason() == EPIPE) {
    end_job(128 + SIGPIPE, "nobody reads the output any more; ending the job");
  } else {
    end_job(1, fmt::format("writing the output: {}; ending the job", std::strerror(stream.queue.broken_reason())));
  }
}

void Job::end_job(int exit_code, std::string_view text) {
  if (ending_) return;
  ending_ = true;
  exit_code_ = exit_code;
  say(text);
  server_->job_ends(std::string(text));
  signal_all(SIGTERM);
  signal_all(SIGCONT);  // a stopped rank would not notice
  start_hosts();
  loop_.after(kGrace, [this] {
    signal_all(SIGKILL);
    for (HostEntry& entry : hosts_) entry.output_has_come = false;
    loop_.after(std::chrono::duration<double>(timeouts_.after_kill), [this] { give_up_silent_hosts(); });
  });
}

// Gives up the hosts that have not ended and send no output. Output may come slowly, if its reader is slow, and the
// report of a host's end follows it.
void Job::give_up_silent_hosts() {
  if (unfinished_hosts_ == 0) return;
  loop_.after(std::chrono::duration<double>(timeouts_.after_kill), [this] { give_up_silent_hosts(); });
  for (HostEntry& entry : hosts_) {
    if (entry.finished || paused_ || std::exchange(entry.output_has_come, false)) continue;
    say(fmt::format("host {} does not answer; its ranks may still run", entry.name));
    entry.host->abandon();
    finish(entry);
  }
}

// The ranks' terminals get the size of the launcher's. While the launcher was stopped, it may have missed a SIGWINCH.
void Job::resize_terminals() {
  if (::isatty(STDOUT_FILENO) == 0) return;
  const winsize size = terminal_size(STDOUT_FILENO);
  resized_ = true;
  for (const HostEntry& entry : hosts_)
    if (entry.started) entry.host->resize(size.ws_row, size.ws_col);
}

// Until SIGCONT, which is then passed on. The job's time stands still meanwhile.
void Job::suspend() {
  signal_all(SIGTSTP);
  const EventLoop::Clock::time_point begin = EventLoop::Clock::now();
  ::raise(SIGSTOP);
  loop_.postpone(time_limit_, EventLoop::Clock::now() - begin);
}

void Job::signal_all(int number) {
  for (const HostEntry& entry : hosts_)
    if (entry.started) entry.host->signal(number);
}

// The ranks know what their collectives wait for; the launcher knows which ranks an exchange of a context waits for.
void Job::ask() {
  if (!late_ranks_) loop_.after(kTimeToAnswer, [this] { say_who_is_late(); });
  late_ranks_ = std::make_unique<LateRanks>();
  for (const HostEntry& entry : hosts_)
    if (entry.started) entry.host->ask();
  if (const std::string missing = server_->missing(); !missing.empty()) {
    say("ranks wait in the creation or the end of a context: " + missing);
  }
}

void Job::say_who_is_late() {
  for (const std::string& line : late_ranks_->summary()) say(line);
  late_ranks_.reset();
}

Status Job::watch_signals() {
  Result<UniqueFd> descriptor = signal_descriptor();
  if (!descriptor.ok()) return descriptor.status();
  signals_ = std::move(descriptor.value());
  return loop_.watch(signals_.get(), EPOLLIN, [this](uint32_t) {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) on_signal(static_cast<int>(info.ssi_signo));
  });
}

void Job::on_signal(int number) {
  const bool ends = number == SIGINT || number == SIGTERM || number == SIGHUP;
  if (ends && unended_ranks_ == 0) {  // only output that nobody reads is left
    given_up_ = true;
    if (exit_code_ == 0) exit_code_ = 128 + number;
    return;
  }
  if (number == SIGWINCH || number == SIGCONT) resize_terminals();
  switch (signal_policy_.decide(number, SignalPolicy::Clock::now())) {
    case SignalPolicy::Action::kForward:
      // Before all have started, some ranks would not get the signal, and a remote shell may take long to start.
      if (ends && !all_have_started())
        end_job(128 + number, fmt::format("got signal {} before all ranks have started; ending the job", number));
      return signal_all(number);
    case SignalPolicy::Action::kAsk:
      return ask();
    case SignalPolicy::Action::kSuspend:
      return suspend();
    case SignalPolicy::Action::kKill:
      end_job(128 + number, "interrupted twice; killing the job");
      signal_all(SIGKILL);
      return;
  }
}

}  // namespace ibcoll::run
