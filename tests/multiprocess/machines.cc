// SPDX-License-Identifier: BSD-3-Clause
#include "tests/multiprocess/machines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace ibcoll::multiprocess {
namespace {

// Runs a command in a network namespace, its words separated by spaces. False: it failed.
bool run_in(int network, const std::string& command) {
  std::vector<std::string> words;
  std::istringstream stream(command);
  for (std::string word; stream >> word;) words.push_back(word);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setns(network, CLONE_NEWNET) == 0) ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = -1;
  return ::waitpid(pid, &status, 0) == pid && status == 0;
}

// The kernel says a while after "up" that a device runs; UCX takes none that does not. False: not within a minute.
bool await_running_device(int network, const char* name) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setns(network, CLONE_NEWNET) != 0) ::_exit(1);
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (int tries = 0; tries < 6000; ++tries) {
      ifreq device{};
      std::strncpy(device.ifr_name, name, sizeof device.ifr_name - 1);
      if (::ioctl(socket, SIOCGIFFLAGS, &device) == 0 && (device.ifr_flags & IFF_RUNNING)) ::_exit(0);
      ::usleep(10'000);
    }
    ::_exit(1);
  }
  int status = -1;
  return ::waitpid(pid, &status, 0) == pid && status == 0;
}

void must(bool done, const std::string& what) {
  if (done) return;
  std::fprintf(stderr, "machines of a test: %s: failed\n", what.c_str());
  std::abort();
}

pid_t clone_process(int flags) { return static_cast<pid_t>(::syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0)); }

int open_namespace(pid_t pid, const char* name) {
  return ::open(fmt::format("/proc/{}/ns/{}", pid, name).c_str(), O_RDONLY | O_CLOEXEC);
}

[[noreturn]] void keep(int parent_lives) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  char byte = 0;
  while (::read(parent_lives, &byte, 1) > 0) {
  }
  ::_exit(0);
}

}  // namespace

std::string Machines::missing() {
  if (::geteuid() != 0) return "needs root for namespaces";
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(::unshare(CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS) == 0 ? 0 : 1);
  int status = 1;
  if (::waitpid(pid, &status, 0) != pid || status != 0) return "this machine makes no namespaces";
  const Namespaces trial = make(/*of_processes=*/false);
  const bool veth = run_in(trial.network, "ip link add name left type veth peer name right") &&
                    run_in(trial.network, "ip link add name middle type bridge");
  end(trial);
  return veth ? "" : "this machine makes no virtual network devices";
}

void Machines::end(const Namespaces& machine) {
  ::kill(machine.keeper, SIGKILL);
  ::waitpid(machine.keeper, nullptr, 0);
  for (const int file : {machine.network, machine.processes, machine.host, machine.lives})
    if (file >= 0) ::close(file);
}

Machines::Namespaces Machines::make(bool of_processes) {
  int lives[2];
  must(::pipe2(lives, O_CLOEXEC) == 0, "pipe2");
  const pid_t pid = clone_process(CLONE_NEWNET | CLONE_NEWUTS | (of_processes ? CLONE_NEWPID : 0));
  must(pid >= 0, "clone");
  if (pid == 0) {
    ::close(lives[1]);
    keep(lives[0]);
  }
  ::close(lives[0]);
  return {pid, open_namespace(pid, "net"), of_processes ? open_namespace(pid, "pid") : -1, open_namespace(pid, "uts"),
          lives[1]};
}

Machines::Machines(int count, const std::function<void(const Machines&, int)>& prepare) {
  switch_ = make(/*of_processes=*/false);
  must(run_in(switch_.network, "ip link add name switch type bridge") &&
           run_in(switch_.network, "ip link set switch up"),
       "a bridge");
  for (int i = 0; i < count; ++i) {
    machines_.push_back(make(/*of_processes=*/true));
    if (prepare) prepare(*this, i);
    connect(i);
  }
}

void Machines::run_on(int machine, const std::string& command) const {
  must(run_in(machines_[static_cast<size_t>(machine)].network, command), command);
}

void Machines::await_running(int machine, const std::string& device) const {
  must(await_running_device(machines_[static_cast<size_t>(machine)].network, device.c_str()), device);
}

void Machines::join(int machine, int other, const std::string& device) const {
  run_on(machine, fmt::format("ip link add name {} type veth peer name {} netns {}", device, device,
                              machines_[static_cast<size_t>(other)].keeper));
  run_on(machine, fmt::format("ip link set {} up", device));
  run_on(other, fmt::format("ip link set {} up", device));
  await_running(machine, device);
  await_running(other, device);
}

std::string Machines::address(int machine) { return fmt::format("10.83.7.{}", machine + 1); }

void Machines::connect(int machine) const {
  const Namespaces& it = machines_[static_cast<size_t>(machine)];
  const std::string port = fmt::format("port{}", machine);
  must(run_in(switch_.network, fmt::format("ip link add name {} type veth peer name eth0 netns {}", port, it.keeper)) &&
           run_in(switch_.network, fmt::format("ip link set {} master switch up", port)) &&
           run_in(it.network, fmt::format("ip address add {}/24 dev eth0", address(machine))) &&
           run_in(it.network, "ip link set lo up") && run_in(it.network, "ip link set eth0 up") &&
           await_running_device(it.network, "eth0"),
       "a network device");
}

Machines::~Machines() {
  machines_.push_back(switch_);
  for (const Namespaces& it : machines_) end(it);
}

pid_t Machines::fork_on(int machine) const {
  const Namespaces& it = machines_[static_cast<size_t>(machine)];
  const int own = ::open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
  must(own >= 0 && ::setns(it.processes, CLONE_NEWPID) == 0, "setns");
  const pid_t pid = ::fork();
  if (pid == 0) {
    const std::string name = fmt::format("machine-{}", machine);
    const bool moved = ::setns(it.network, CLONE_NEWNET) == 0 && ::setns(it.host, CLONE_NEWUTS) == 0 &&
                       ::sethostname(name.data(), name.size()) == 0 && ::unshare(CLONE_NEWNS) == 0 &&
                       ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       ::mount("proc", "/proc", "proc", 0, nullptr) == 0 &&
                       ::mount("sysfs", "/sys", "sysfs", 0, nullptr) == 0;  // UCX looks for network devices there
    if (!moved) ::_exit(98);
    return 0;
  }
  must(::setns(own, CLONE_NEWPID) == 0, "setns back");
  ::close(own);
  return pid;
}

void Machines::pull_cable(int machine) const {
  must(run_in(switch_.network, fmt::format("ip link set port{} nomaster", machine)), "ip link set nomaster");
}

}  // namespace ibcoll::multiprocess
