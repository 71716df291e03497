// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/agent.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "tools/ibcoll_run/allgather_series.h"
#include "tools/ibcoll_run/process_scan.h"
#include "tools/ibcoll_run/rank_environment.h"

namespace ibcoll::run {
namespace {

using namespace std::chrono_literals;

// From the end of all ranks until their output is closed, where processes that they started still have it open.
constexpr auto kStreamTimeout = 2s;
constexpr auto kSecondLook = 50ms;
constexpr int kMistake = 2;  // exit code

winsize size_of(const Terminal& terminal) {
  winsize size{};
  size.ws_row = static_cast<unsigned short>(terminal.rows);
  size.ws_col = static_cast<unsigned short>(terminal.columns);
  return size;
}

}  // namespace

Agent::Agent(EventLoop& loop, HostJob job, HostEvents& events, const ProcessDefaults& defaults, Input input)
    : loop_(loop), job_(std::move(job)), events_(events), defaults_(defaults), input_mode_(input), input_(loop) {
  input_.on_progress = [this](size_t bytes) { events_.input_taken(bytes); };
}

Agent::~Agent() {
  kill_all();
  loop_.cancel(stream_timer_);
  if (failures_) loop_.forget(failures_.get());
}

void Agent::start() {
  for (const RankProgram& program : job_.programs) {
    const std::vector<std::string> environment = base_environment_of_rank(job_, program, {});
    const ProgramPath found = find_program(program.words.front(), search_path(environment), program.folder);
    if (found.exit_code != 0) return fail(found.exit_code, found.text);
    programs_.push_back({found.path, {}});
  }
  if (Status status = spawn_all(); !status.ok())
    fail(status.code() == IBCOLL_ERR_INVALID_ARGUMENT ? kMistake : 1, status.text());
}

Status Agent::spawn_all() {
  secret_folder_.make(job_.secret);
  Result<Guard> guard = Guard::start(secret_folder_.folder());
  if (!guard.ok()) return guard.status();
  guard_ = std::move(guard.value());
  Result<UniqueFd> secret = secret_file(job_.secret);
  if (!secret.ok()) return secret.status();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return error(IBCOLL_ERR_SYSTEM, "pipe2: {}", std::strerror(errno));
  const UniqueFd write_end(ends[1]);
  watch_failures(UniqueFd(ends[0]));
  const auto count = static_cast<int>(job_.ranks.size());
  const Result<CoreBinding> binding = CoreBinding::for_ranks(job_.binding, count, job_.nodes);
  if (!binding.ok()) return binding.status();
  const bool binds = job_.binding.to == Binding::To::kCore || job_.binding.to == Binding::To::kNuma;
  if (const std::string ignored = CoreBinding::ignored_variables(); !ignored.empty() && (binds || job_.binding.report))
    events_.host_says(*this, fmt::format("{} is ignored: ranks are bound by this machine's own topology", ignored));
  for (size_t i = 0; i < programs_.size(); ++i)
    programs_[i].environment = base_environment_of_rank(job_, job_.programs[i], {secret->get(), secret_folder_.file()});
  const SpawnSettings settings{&defaults_, &binding.value(), secret->get(), write_end.get()};
  ranks_.reserve(job_.ranks.size());  // callbacks hold references
  for (int i = 0; i < count; ++i) {
    const int number = job_.ranks[static_cast<size_t>(i)];
    if (Status status = spawn(settings, i); !status.ok())
      return error(status.code(), "rank {}: {}", number, status.text());
    if (job_.binding.report) events_.host_says(*this, fmt::format("rank {} {}", number, binding.value().describe(i)));
  }
  return {};
}

Status Agent::spawn(const SpawnSettings& settings, int index) {
  const int number = job_.ranks[static_cast<size_t>(index)];
  const auto program = static_cast<size_t>(job_.program_of[static_cast<size_t>(index)]);
  const Result<UniqueFd> input = input_of(number);
  if (!input.ok()) return input.status();
  Result<OutputEnds> output = output_of_rank();
  if (!output.ok()) return output.status();
  const RankStart start{number,
                        index,
                        programs_[program].path,
                        &job_.programs[program],
                        with_rank(programs_[program].environment, job_, index),
                        input.value().get()};
  Result<RankProcess> process = spawn_rank(settings, start, std::move(output.value()));
  if (!process.ok()) return process.status();
  guard_.add(process->pid);
  ranks_.push_back({number, std::move(process.value())});
  watch_rank(ranks_.back());
  return {};
}

Result<OutputEnds> Agent::output_of_rank() {
  if (job_.terminal.use == Terminal::Use::kNo) return open_pipe();
  Result<OutputEnds> terminal = open_pseudo_terminal(size_of(job_.terminal));
  if (terminal.ok() || job_.terminal.use == Terminal::Use::kYes) return terminal;
  events_.host_says(*this, fmt::format("ranks get pipes instead of pseudo-terminals: {}", terminal.status().text()));
  job_.terminal.use = Terminal::Use::kNo;
  return open_pipe();
}

Result<UniqueFd> Agent::input_of(int rank) {
  UniqueFd input;
  if (rank == 0 && input_mode_ == Input::kInherit) {
    input.reset(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
    if (input) return input;
  }
  if (rank == 0 && input_mode_ == Input::kForward) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return error(IBCOLL_ERR_SYSTEM, "pipe2: {}", std::strerror(errno));
    input.reset(ends[0]);
    if (Status status = input_.own(UniqueFd(ends[1])); !status.ok()) return status;
    return input;
  }
  input.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!input) return error(IBCOLL_ERR_SYSTEM, "/dev/null: {}", std::strerror(errno));
  return input;
}

void Agent::watch_rank(Rank& rank) {
  ++running_;
  open_streams_ += 2;
  const auto watch = [&](int fd, EventLoop::OnReady on_ready) {
    const bool held = paused_ && fd != rank.process.descriptor.get();
    const Status status = loop_.watch(fd, held ? 0 : uint32_t{EPOLLIN}, std::move(on_ready));
    if (!status.ok()) fail(1, fmt::format("rank {}: {}", rank.number, status.text()));
  };
  watch(rank.process.descriptor.get(), [this, &rank](uint32_t) { on_exit(rank); });
  watch(rank.process.output.get(), [this, &rank](uint32_t) { read_output(rank, 1); });
  watch(rank.process.error_output.get(), [this, &rank](uint32_t) { read_output(rank, 2); });
  events_.rank_started(rank.number, rank.process.pid);
}

void Agent::watch_failures(UniqueFd read_end) {
  failures_ = std::move(read_end);
  const Status status = loop_.watch(failures_.get(), EPOLLIN, [this](uint32_t) { report_exec_failures(); });
  if (!status.ok()) fail(1, status.text());
}

ProgramPath Agent::explain(const ExecFailure& failure) const {
  const auto index = std::lower_bound(job_.ranks.begin(), job_.ranks.end(), failure.rank) - job_.ranks.begin();
  const auto program = static_cast<size_t>(job_.program_of[static_cast<size_t>(index)]);
  if (failure.what == ExecFailure::kExecute) return cannot_execute(programs_[program].path, failure.reason);
  return {"", 1,
          fmt::format("cannot enter the working directory {}: {}", job_.programs[program].folder,
                      std::strerror(failure.reason))};
}

void Agent::report_exec_failures() {
  ExecFailure failure{};
  while (failures_) {
    const ssize_t got = ::read(failures_.get(), &failure, sizeof(failure));
    if (got == sizeof(failure)) {
      const ProgramPath why = explain(failure);
      events_.host_failed(*this, why.exit_code, fmt::format("rank {}: {}", failure.rank, why.text));
    } else if (got == 0) {  // every child became the program, or ended
      loop_.forget(failures_.get());
      failures_.reset();
    } else if (errno != EINTR) {
      return;
    }
  }
}

void Agent::on_exit(Rank& rank) {
  report_exec_failures();  // the cause before the effect
  const std::optional<RankExit> exit = rank.process.exit_status();
  if (!exit) {
    loop_.change(rank.process.descriptor.get(), 0);
    if (second_look_ == 0) second_look_ = loop_.after(kSecondLook, [this] { look_again(); });
    return;
  }
  loop_.forget(rank.process.descriptor.get());
  rank.exited = true;
  --running_;
  events_.rank_exited(rank.number, *exit);
  finish_when_done();
}

void Agent::look_again() {
  second_look_ = 0;
  for (const Rank& rank : ranks_)
    if (!rank.exited) loop_.change(rank.process.descriptor.get(), EPOLLIN);
}

bool Agent::read_output(Rank& rank, int stream) {
  static std::array<char, 65536> buffer;  // a pipe holds no more
  const UniqueFd& fd = stream == 1 ? rank.process.output : rank.process.error_output;
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  if (got > 0) {
    events_.rank_output(rank.number, stream, {buffer.data(), static_cast<size_t>(got)});
    return true;
  }
  if (got == 0 || (got < 0 && errno == EIO)) end_stream(rank, stream);  // EIO: of a terminal
  return false;
}

void Agent::end_stream(Rank& rank, int stream) {
  UniqueFd& fd = stream == 1 ? rank.process.output : rank.process.error_output;
  loop_.forget(fd.get());
  fd.reset();
  --open_streams_;
  events_.rank_output(rank.number, stream, {});
  finish_when_done();
}

void Agent::finish_when_done() {
  if (finished_ || running_ > 0) return;
  if (open_streams_ > 0) {
    if (stream_timer_ == 0) stream_timer_ = loop_.after(kStreamTimeout, [this] { end_streams_that_others_hold(); });
    return;
  }
  finished_ = true;
  kill_all();
  events_.host_finished(*this);
}

// A process that a rank started and did not wait for keeps its output open. Nothing that a rank wrote itself is lost:
// it is in the pipe.
void Agent::end_streams_that_others_hold() {
  stream_timer_ = 0;
  if (paused_) return finish_when_done();  // the reader of the launcher's output is slow: later
  report_leftover_processes();
  for (Rank& rank : ranks_) ::kill(-rank.process.pid, SIGKILL);
  for (Rank& rank : ranks_) {
    for (const int stream : {1, 2}) {
      const UniqueFd& fd = stream == 1 ? rank.process.output : rank.process.error_output;
      // At most what a pipe can hold: a process in another process group may still write.
      for (int i = 0; fd && i < 16 && read_output(rank, stream); ++i) {
      }
      if (fd) end_stream(rank, stream);
    }
  }
}

// Not where the job is being ended: what ranks started ends with it.
void Agent::report_leftover_processes() {
  if (ending_) return;
  std::vector<int> numbers;
  for (const Rank& rank : ranks_)
    if (rank.process.output || rank.process.error_output) numbers.push_back(rank.number);
  events_.host_says(*this,
                    fmt::format("rank{} {} left processes behind that still have the output open {} s after the "
                                "ranks here have ended; these are killed, and what they have not written is lost. "
                                "A rank should wait for what it starts",
                                numbers.size() == 1 ? "" : "s", rank_list(numbers), kStreamTimeout.count()));
}

void Agent::signal(int number) {
  ending_ = ending_ || number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGKILL;
  for (const Rank& rank : ranks_) {
    if (rank.process.pid > 0) ::kill(-rank.process.pid, number);
  }
}

void Agent::kill_rank(int rank) {
  for (const Rank& one : ranks_)
    if (one.number == rank && !one.exited && one.process.pid > 0) ::kill(-one.process.pid, SIGKILL);
}

void Agent::resize(int rows, int columns) {
  job_.terminal.rows = rows;
  job_.terminal.columns = columns;
  if (job_.terminal.use == Terminal::Use::kNo) return;
  const winsize size = size_of(job_.terminal);
  for (const Rank& rank : ranks_)
    if (rank.process.output) ::ioctl(rank.process.output.get(), TIOCSWINSZ, &size);
}

void Agent::ask() {
  std::vector<pid_t> groups;
  for (const Rank& rank : ranks_) {
    if (!rank.exited) groups.push_back(rank.process.pid);
  }
  signal_those_that_catch(SIGUSR1, groups);
}

void Agent::pause_output(bool paused) {
  paused_ = paused;
  for (const Rank& rank : ranks_) {
    for (const UniqueFd* fd : {&rank.process.output, &rank.process.error_output}) {
      if (*fd) loop_.change(fd->get(), paused ? 0 : uint32_t{EPOLLIN});
    }
  }
}

void Agent::send_input(std::string_view bytes) {
  if (bytes.empty()) {
    input_.close_when_written();
  } else {
    input_.write(bytes);
  }
}

void Agent::kill_all() {
  loop_.cancel(second_look_);
  for (const Rank& rank : ranks_) rank.process.kill();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (Rank& rank : ranks_) {
    if (rank.process.pid < 0) continue;
    if (rank.process.descriptor) loop_.forget(rank.process.descriptor.get());
    for (const UniqueFd* fd : {&rank.process.output, &rank.process.error_output}) {
      if (*fd) loop_.forget(fd->get());
    }
    const pid_t pid = rank.process.pid;
    if (rank.process.reap(deadline)) guard_.remove(pid);
  }
}

void Agent::abandon() {
  finished_ = true;
  kill_all();
}

void Agent::fail(int exit_code, const std::string& text) {
  events_.host_failed(*this, exit_code, text);
  finish_when_done();
}

}  // namespace ibcoll::run
