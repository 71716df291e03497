// SPDX-License-Identifier: BSD-3-Clause
// The launcher's smaller parts.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include "bootstrap/rendezvous_protocol.h"
#include "bootstrap/socket_address.h"
#include "tools/ibcoll_run/agent_channel.h"
#include "tools/ibcoll_run/options.h"
#include "tools/ibcoll_run/process_scan.h"
#include "tools/ibcoll_run/program_path.h"
#include "tools/ibcoll_run/rank_environment.h"
#include "tools/ibcoll_run/rank_registry.h"
#include "tools/ibcoll_run/remote_host.h"
#include "tools/ibcoll_run/signal_policy.h"
#include "tools/ibcoll_run/timeouts.h"

namespace ibcoll::run {
namespace {

using namespace std::chrono_literals;

TEST(Exports, TakeTheirValueFromHere) {
  ::setenv("IBCOLL_LAUNCHER_TEST", "a=b", 1);
  const auto variables = exported_variables({"X=", "Y=1=2", "IBCOLL_LAUNCHER_TEST"});
  ASSERT_TRUE(variables.ok());
  EXPECT_EQ(variables.value(), (std::vector<std::string>{"X=", "Y=1=2", "IBCOLL_LAUNCHER_TEST=a=b"}));
  for (const char* text : {"", "=1", "IBCOLL_RUN_RANK=3", "IBCOLL_NO_SUCH_VARIABLE"}) {
    EXPECT_FALSE(exported_variables({text}).ok()) << text;
  }
}

TEST(SignalPolicy, ASecondRequestWithinSecondsKills) {
  SignalPolicy policy;
  const SignalPolicy::Clock::time_point start{};
  EXPECT_EQ(policy.decide(SIGINT, start), SignalPolicy::Action::kForward);
  EXPECT_EQ(policy.decide(SIGINT, start + 6s), SignalPolicy::Action::kForward);
  EXPECT_EQ(policy.decide(SIGUSR1, start + 7s), SignalPolicy::Action::kForward);
  EXPECT_EQ(policy.decide(SIGQUIT, start + 7s), SignalPolicy::Action::kAsk);
  EXPECT_EQ(policy.decide(SIGINT, start + 8s), SignalPolicy::Action::kKill);
}

TEST(AgentChannel, FramesSurviveAnyCut) {
  HostJob job;
  job.host = "h1";
  job.ranks = {2, 4};
  job.size = 5;
  job.nodes = {"emulated-0", "emulated-1"};
  job.programs = {{{"prog", "\xff\xfe", ""}, {"C=3"}, "/folder"}, {{"other"}, {}, ""}};
  job.program_of = {1, 0};
  job.binding = {Binding::To::kNuma, 3, true};
  job.terminal = {Terminal::Use::kYes, 11, 33};
  job.environment = {"A=\xc3", "B=2"};
  job.secret.fill(std::byte{0x9d});
  const std::string body = pack_job(job);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EventLoop loop;
  ASSERT_TRUE(loop.open().ok());
  std::string stream(65536, '\0');
  {
    ByteQueue queue(loop);
    ASSERT_TRUE(queue.own(UniqueFd(ends[1])).ok());
    send_frame(queue, {.message = Message::kJob, .body = body});
    send_frame(queue, {.message = Message::kExited, .rank = 3, .value = 256 + 9, .body = {}});
    stream.resize(static_cast<size_t>(::read(ends[0], stream.data(), stream.size())));
  }
  ::close(ends[0]);
  for (size_t step : {size_t{1}, size_t{7}, stream.size()}) {
    AgentFrameReader reader;
    std::vector<Message> seen;
    for (size_t begin = 0; begin < stream.size(); begin += step) {
      reader.add(std::string_view(stream).substr(begin, step));
      for (AgentFrame frame; reader.next(frame).value();) {
        seen.push_back(frame.message);
        if (frame.message != Message::kJob) continue;
        const auto copy = unpack_job(frame.body);
        ASSERT_TRUE(copy.ok()) << copy.status().text();
        EXPECT_EQ(copy.value().ranks, job.ranks);
        EXPECT_EQ(copy.value().program_of, job.program_of);
        ASSERT_EQ(copy.value().programs.size(), 2U);
        EXPECT_EQ(copy.value().programs[0].words, job.programs[0].words);
        EXPECT_EQ(copy.value().programs[0].environment, job.programs[0].environment);
        EXPECT_EQ(copy.value().programs[0].folder, job.programs[0].folder);
        EXPECT_EQ(copy.value().binding.to, job.binding.to);
        EXPECT_EQ(copy.value().binding.cores_per_rank, 3);
        EXPECT_TRUE(copy.value().binding.report);
        EXPECT_EQ(copy.value().terminal.use, job.terminal.use);
        EXPECT_EQ(copy.value().terminal.columns, 33);
        EXPECT_EQ(copy.value().environment, job.environment);
        EXPECT_EQ(copy.value().secret, job.secret);
        EXPECT_EQ(copy.value().nodes, job.nodes);
      }
    }
    EXPECT_EQ(seen, (std::vector<Message>{Message::kJob, Message::kExited}));
  }
}

TEST(AgentChannel, ALengthBeyondAllIsAnErrorAtOnce) {
  const uint32_t header[] = {static_cast<uint32_t>(Message::kOutput), 0, 1, 1U << 31};
  AgentFrameReader reader;
  reader.add({reinterpret_cast<const char*>(header), sizeof header});
  AgentFrame frame;
  EXPECT_FALSE(reader.next(frame).ok());
}

TEST(AgentChannel, AJobThatDoesNotFitTogetherIsAnError) {
  HostJob good;
  good.ranks = {2, 4};
  good.nodes = {"a", "b"};
  good.programs = {{{"prog"}, {}, ""}};
  good.program_of = {0, 0};
  EXPECT_TRUE(unpack_job(pack_job(good)).ok());
  const std::vector<void (*)(HostJob&)> damages = {
      [](HostJob& job) { job.ranks.clear(), job.nodes.clear(), job.program_of.clear(); },
      [](HostJob& job) { job.nodes.pop_back(); },
      [](HostJob& job) { job.program_of.pop_back(); },
      [](HostJob& job) { job.program_of.back() = 1; },
      [](HostJob& job) { job.program_of.back() = -1; },
      [](HostJob& job) { job.programs.front().words.clear(); },
      [](HostJob& job) { job.binding.cores_per_rank = 0; }};
  for (size_t i = 0; i < damages.size(); ++i) {
    HostJob damaged = good;
    damages[i](damaged);
    EXPECT_FALSE(unpack_job(pack_job(damaged)).ok()) << i;
  }
}

TEST(AgentChannel, GarbageIsAnError) {
  AgentFrameReader reader;
  reader.add("this is no frame of an agent at all");
  AgentFrame frame;
  EXPECT_FALSE(reader.next(frame).ok());
  for (const char* text : {"", "x", "\x81\xa4host\x01"}) EXPECT_FALSE(unpack_job(text).ok());
}

TEST(RemoteCommand, QuotesForTheOtherShell) {
  EXPECT_EQ(agent_command("docker exec -i", "h1", "/opt/my tools/ibcoll_run"),
            (std::vector<std::string>{"docker", "exec", "-i", "h1", "'/opt/my tools/ibcoll_run'", "--agent"}));
  EXPECT_EQ(agent_command("", "h1", "/bin/ibcoll_run").front(), "ssh");
  EXPECT_EQ(agent_command("rsh", "h1", "/o'neill/ibcoll_run")[2], "'/o'\\''neill/ibcoll_run'");
}

TEST(ProcessScan, StatAndStatus) {
  EXPECT_EQ(parse_stat("17 (a) b) (c) S 4 2115 9 0 -1").group, 2115);
  EXPECT_EQ(parse_stat("17 (a) b) (c) S 4 2115 9 0 -1").state, 'S');
  EXPECT_EQ(parse_stat("17").group, 0);
  EXPECT_TRUE(catches("Name:\tx\nSigCgt:\t0000000000000200\n", SIGUSR1));
  EXPECT_FALSE(catches("Name:\tx\nSigCgt:\t0000000000000400\n", SIGUSR1));
  EXPECT_FALSE(catches("", SIGUSR1));
}

TEST(ProgramPath, AsAShellSays) {
  EXPECT_EQ(find_program("sh", "/nonexistent:/bin").path, "/bin/sh");
  EXPECT_EQ(find_program("no_such_program", "/bin").exit_code, 127);
  EXPECT_EQ(find_program("/no/such/program", "/bin").exit_code, 127);
  EXPECT_EQ(find_program("/etc/passwd", "/bin").exit_code, 126);
  EXPECT_EQ(find_program("/tmp", "/bin").exit_code, 126);
}

TEST(ProgramPath, OneThatMayNotBeExecutedHidesNoOther) {
  char folder[] = "/tmp/ibcoll_path_XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/sh";
  UniqueFd(::open(file.c_str(), O_CREAT | O_WRONLY, 0600)).reset();
  EXPECT_EQ(find_program("sh", std::string(folder) + ":/bin").path, "/bin/sh");
  EXPECT_EQ(find_program("sh", std::string("/no/such/folder:") + folder).exit_code, 126);
  EXPECT_EQ(find_program("sh", "/no/such/folder").exit_code, 127);
  ::unlink(file.c_str());
  ::rmdir(folder);
}

TEST(ProgramPath, BeginsInTheFolder) {
  EXPECT_EQ(find_program("./sh", "/usr", "/bin").path, "/bin/./sh");
  EXPECT_EQ(find_program("/bin/sh", "/usr", "/no/such/folder").path, "/bin/sh");
  EXPECT_EQ(find_program("sh", ":/usr", "/bin").path, "/bin/./sh") << "an empty entry of PATH";
}

TEST(RankEnvironment, TheJobsVariablesWin) {
  ::setenv("IBCOLL_LAUNCHER_TEST", "outer", 1);
  ::setenv("IBCOLL_RUN_RANK", "17", 1);  // a launcher inside of a rank
  HostJob job;
  job.ranks = {4};
  job.size = 5;
  job.environment = {"IBCOLL_LAUNCHER_TEST=of the job"};
  const RankProgram program{{"prog"}, {"IBCOLL_LAUNCHER_TEST=inner"}, "/folder"};
  const auto environment = with_rank(base_environment_of_rank(job, program, {64, "/file"}), job, 0);
  ::unsetenv("IBCOLL_RUN_RANK");
  EXPECT_EQ(std::count(environment.begin(), environment.end(), "IBCOLL_LAUNCHER_TEST=inner"), 1);
  EXPECT_EQ(std::count(environment.begin(), environment.end(), "IBCOLL_LAUNCHER_TEST=outer"), 0);
  EXPECT_EQ(std::count(environment.begin(), environment.end(), "IBCOLL_RUN_RANK=4"), 1);
  EXPECT_EQ(std::count(environment.begin(), environment.end(), "IBCOLL_RUN_RANK=17"), 0);
  EXPECT_EQ(std::count(environment.begin(), environment.end(), "PWD=/folder"), 1);
  EXPECT_EQ(std::count(environment.begin(), environment.end(), "IBCOLL_RUN_SIZE=5"), 1);
  EXPECT_EQ(std::count(environment.begin(), environment.end(), "IBCOLL_RUN_LOCAL_RANKS=1"), 1);
}

TEST(RankRegistry, NobodyIsTooFarAhead) {
  RankRegistry registry(3);
  for (int i = 0; i < RankRegistry::kMostAhead; ++i) {
    EXPECT_EQ(registry.too_far_ahead(2), "") << i;
    EXPECT_EQ(registry.join(2, 7), i);
  }
  EXPECT_EQ(registry.too_far_ahead(2), "rank 2 is 64 contexts ahead of rank 0; do all ranks create the same ones?");
  EXPECT_EQ(registry.join(0, 8), 0);
  EXPECT_NE(registry.too_far_ahead(2), "") << "rank 1 has not come";
  EXPECT_EQ(registry.join(1, 9), 0);
  EXPECT_EQ(registry.too_far_ahead(2), "");
}

TEST(RankRegistry, AProcessHasItsPlaceUntilItsLastConnectionEnds) {
  RankRegistry registry(2);
  EXPECT_FALSE(registry.held_by_other(1, 7));
  registry.join(1, 7);
  registry.join(1, 7);
  EXPECT_FALSE(registry.held_by_other(1, 7));
  EXPECT_TRUE(registry.held_by_other(1, 8));
  registry.leave(1);
  EXPECT_TRUE(registry.held_by_other(1, 8));
  registry.leave(1);
  EXPECT_FALSE(registry.held_by_other(1, 8));
}

TEST(SocketAddress, TextAndBack) {
  for (const char* text : {"127.0.0.1:4711", "[::1]:80", "[fd00::1]:65535"}) {
    const auto address = parse_socket_address(text);
    ASSERT_TRUE(address.ok()) << address.status().text();
    EXPECT_EQ(address.value().text(), text);
  }
  for (const char* text :
       {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:70000", "127.0.0.1:80x", "localhost:80", ":80"}) {
    EXPECT_FALSE(parse_socket_address(text).ok()) << text;
  }
}

TEST(SocketAddress, Private) {
  for (const char* text : {"10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1", "127.0.0.1", "169.254.1.1", "::1",
                           "fd00::1", "fe80::1", "::ffff:10.0.0.1"}) {
    EXPECT_TRUE(numeric_address(text, 1).value().is_private()) << text;
  }
  for (const char* text : {"8.8.8.8", "172.32.0.1", "192.169.0.1", "192.0.2.1", "198.18.0.1", "11.0.0.1", "0.0.0.0",
                           "::", "2a00::1", "::ffff:8.8.8.8"}) {
    EXPECT_FALSE(numeric_address(text, 1).value().is_private()) << text;
  }
}

TEST(RendezvousProtocol, TagsDependOnEverything) {
  rendezvous::Secret secret{};
  rendezvous::Nonce nonce{};
  rendezvous::Claim claim{};
  claim.size = 4;
  const rendezvous::Tag reference = rendezvous::client_tag(secret, nonce, claim).value();
  EXPECT_EQ(rendezvous::client_tag(secret, nonce, claim).value(), reference);
  EXPECT_NE(rendezvous::server_tag(secret, nonce, claim).value(), reference);
  rendezvous::Claim other = claim;
  other.rank = 1;
  EXPECT_NE(rendezvous::client_tag(secret, nonce, other).value(), reference);
  other = claim;
  other.size = 5;
  EXPECT_NE(rendezvous::client_tag(secret, nonce, other).value(), reference);
  other = claim;
  other.process = 1;
  EXPECT_NE(rendezvous::client_tag(secret, nonce, other).value(), reference);
  other = claim;
  other.nonce[31] = std::byte{1};
  EXPECT_NE(rendezvous::client_tag(secret, nonce, other).value(), reference);
  rendezvous::Nonce other_nonce{};
  other_nonce[0] = std::byte{1};
  EXPECT_NE(rendezvous::client_tag(secret, other_nonce, claim).value(), reference);
  rendezvous::Secret other_secret{};
  other_secret[5] = std::byte{1};
  EXPECT_NE(rendezvous::client_tag(other_secret, nonce, claim).value(), reference);
}

// Where the job goes on, the ranks of a host that hears nothing end before the launcher counts them as dead.
TEST(Timeouts, OfALostHost) {
  for (const char* const seconds : {"", "12", "10", "0.5"}) {
    if (*seconds)
      ::setenv("IBCOLL_RUN_TIMEOUTS", seconds, 1);
    else
      ::unsetenv("IBCOLL_RUN_TIMEOUTS");
    const Result<Timeouts> survivors = chosen_timeouts(/*keeps_going=*/true);
    ASSERT_TRUE(survivors.ok());
    EXPECT_LE(survivors.value().launcher_silence, survivors.value().agent_silence * 0.9) << seconds;
  }
  ::unsetenv("IBCOLL_RUN_TIMEOUTS");
}

}  // namespace
}  // namespace ibcoll::run
