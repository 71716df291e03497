// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/rank_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "tools/ibcoll_run/program_path.h"

namespace ibcoll::run {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (const std::string& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// Where it says that standard error leads to a terminal of n columns, it says so of this pipe, and of no other that a
// rank may put there.
std::vector<std::string> with_pipe(std::vector<std::string> environment, int error_output) {
  struct stat about {};
  for (std::string& entry : environment)
    if (entry.starts_with("IBCOLL_RUN_TERMINAL=") && ::fstat(error_output, &about) == 0)
      entry += fmt::format(":{}", about.st_ino);
  return environment;
}

struct ChildWords {
  char* const* argv;
  char* const* envp;
};

[[noreturn]] void report(const SpawnSettings& settings, const RankStart& start, ExecFailure::What what) {
  const ExecFailure failure{start.rank, errno, what};
  if (::write(settings.failures, &failure, sizeof(failure)) < 0) ::_exit(125);
  ::_exit(failure.reason == ENOENT ? 127 : 126);
}

[[noreturn]] void become_rank(const SpawnSettings& settings, pid_t parent, const RankStart& start, int output,
                              int error_output, const ChildWords& words) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it died before the line above
  ::dup2(start.input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(error_output, STDERR_FILENO);
  ::fcntl(settings.secret, F_SETFD, 0);
  settings.binding->bind(start.index_on_host);
  const std::string& folder = start.program->folder;
  if (!folder.empty() && ::chdir(folder.c_str()) != 0) report(settings, start, ExecFailure::kEnterFolder);
  settings.defaults->restore();
  ::execve(start.path.c_str(), words.argv, words.envp);
  // The path has a slash: no search. Scripts without #! go to sh, programs for other machines do not.
  if (errno == ENOEXEC) {
    if (beginning_of(start.path).is_text()) ::execvpe(start.path.c_str(), words.argv, words.envp);
    errno = ENOEXEC;
  }
  report(settings, start, ExecFailure::kExecute);
}

// The advice what to try where pidfd_open() fails.
const char* advice_for(int reason) {
  switch (reason) {
    case EMFILE:
      return "raise the limit of open files (ulimit -n)";
    case ENFILE:
      return "the machine has too many open files (/proc/sys/fs/file-max)";
    case ENOSYS:
    case EPERM:
    case EACCES:
      return "Linux 5.3 or newer is needed, and a container's seccomp filter has to allow the call";
    default:
      return "it is needed to notice the ends of ranks";
  }
}

}  // namespace

Result<UniqueFd> open_process(pid_t pid) {
  // Not pidfd_open(): the header of glibc 2.36 declares it without C linkage.
  UniqueFd descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (descriptor) return descriptor;
  const int reason = errno;
  return error(IBCOLL_ERR_SYSTEM, "pidfd_open: {}; {}", std::strerror(reason), advice_for(reason));
}

std::optional<RankExit> RankProcess::exit_status() const {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT | WNOHANG) != 0 || info.si_pid == 0) return {};
  return info.si_code == CLD_EXITED ? RankExit{info.si_status, 0} : RankExit{0, info.si_status};
}

void RankProcess::kill() const {
  if (pid >= 0) ::kill(-pid, SIGKILL);
}

bool RankProcess::reap(std::chrono::steady_clock::time_point deadline) {
  const pid_t process = std::exchange(pid, -1);
  if (process < 0) return true;
  for (;;) {
    const pid_t ended = ::waitpid(process, nullptr, WNOHANG);
    if (ended == process || (ended < 0 && errno != EINTR)) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Result<RankProcess> spawn_rank(const SpawnSettings& settings, const RankStart& start, OutputEnds output) {
  Result<OutputEnds> error_output = open_pipe();
  if (!error_output.ok()) return error_output.status();
  const std::vector<char*> argv = pointers(start.program->words);
  const std::vector<std::string> variables = with_pipe(start.environment, error_output->write_end.get());
  const std::vector<char*> envp = pointers(variables);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    return error(IBCOLL_ERR_SYSTEM, "fork: {}; is the limit of processes (ulimit -u) reached?", std::strerror(errno));
  }
  if (pid == 0) {
    become_rank(settings, parent, start, output.write_end.get(), error_output->write_end.get(),
                {argv.data(), envp.data()});
  }
  ::setpgid(pid, pid);  // in parent and child: either may run first
  RankProcess process;
  process.pid = pid;
  process.output = std::move(output.read_end);
  process.error_output = std::move(error_output->read_end);
  Result<UniqueFd> descriptor = open_process(pid);
  if (!descriptor.ok()) {
    process.kill();
    process.reap(std::chrono::steady_clock::now() + std::chrono::seconds(1));
    return descriptor.status();
  }
  process.descriptor = std::move(descriptor.value());
  return process;
}

Result<UniqueFd> secret_file(const rendezvous::Secret& secret) {
  constexpr int kLowestNumber = 64;
  UniqueFd low(::memfd_create(rendezvous::kSecretFileName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!low) return error(IBCOLL_ERR_SYSTEM, "memfd_create: {}", std::strerror(errno));
  if (::write(low.get(), secret.data(), secret.size()) != static_cast<ssize_t>(secret.size()) ||
      ::fcntl(low.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
    return error(IBCOLL_ERR_SYSTEM, "memfd of the job secret: {}{}", std::strerror(errno),
                 errno == EFBIG ? " (ulimit -f)" : "");
  }
  UniqueFd high(::fcntl(low.get(), F_DUPFD_CLOEXEC, kLowestNumber));
  return high ? std::move(high) : std::move(low);
}

}  // namespace ibcoll::run
