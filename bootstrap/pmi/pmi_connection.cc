// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/pmi/pmi_connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace ibcoll {
namespace {

using namespace std::chrono_literals;

constexpr auto kGoodbyePatience = 2s;
// Servers and clients of MPICH and its relatives read lines of 1024 bytes.
constexpr size_t kLongestLine = 1023;
// "cmd=put kvsname= key= value=" and its end, beside the store and a key of 64 bytes, the most that servers take.
constexpr size_t kPutWords = 32 + 64;
constexpr size_t kLongestAnswer = 1 << 16;

// -1: not a number of at least 0.
int number_in(std::string_view text) {
  int number = -1;
  const auto [rest, reason] = std::from_chars(text.data(), text.data() + text.size(), number);
  return reason == std::errc() && rest == text.data() + text.size() ? std::max(number, -1) : -1;
}

int number_from(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? -1 : number_in(text);
}

// Returns the text after "NAME=", up to the next blank, of a line like "cmd=C rc=0 value=V".
std::string_view word_of(std::string_view line, std::string_view name) {
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=')
      return word.substr(name.size() + 1);
    line.remove_prefix(std::min(line.size(), word.size() + 1));
  }
  return {};
}

}  // namespace

bool PmiConnection::offered() {
  int type = 0;
  socklen_t length = sizeof type;
  return std::getenv("PMI_RANK") != nullptr && std::getenv("PMI_SIZE") != nullptr &&
         ::getsockopt(number_from("PMI_FD"), SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

int PmiConnection::offered_size() { return std::max(number_from("PMI_SIZE"), 0); }

Result<std::unique_ptr<PmiConnection>> PmiConnection::open(Clock::time_point deadline) {
  const int rank = number_from("PMI_RANK"), size = offered_size(), given = number_from("PMI_FD");
  if (rank < 0 || rank >= size) {
    return error(IBCOLL_ERR_BOOTSTRAP, "PMI_RANK={} and PMI_SIZE={}: not a rank of a job; the launcher sets them",
                 std::getenv("PMI_RANK"), std::getenv("PMI_SIZE"));
  }
  // An MPI that starts later in this process closes PMI_FD at its end.
  UniqueFd own(::fcntl(given, F_DUPFD_CLOEXEC, 3));
  if (!own) return error(IBCOLL_ERR_SYSTEM, "rank {}: PMI_FD={}: dup: {}", rank, given, std::strerror(errno));
  std::unique_ptr<PmiConnection> connection(new PmiConnection(std::move(own), rank, size));
  if (Status status = connection->greet(deadline); !status.ok()) return status;
  ::fcntl(given, F_SETFD, FD_CLOEXEC);
  return connection;
}

PmiConnection::~PmiConnection() {
  if (!of_this_process()) return;
  const Clock::time_point deadline = Clock::now() + kGoodbyePatience;
  constexpr std::string_view kGoodbye = "cmd=finalize\n";
  if (out_of_step_) {
    static_cast<void>(send(kGoodbye, deadline));
  } else {
    static_cast<void>(ask(kGoodbye, "finalize_ack", deadline));
  }
}

Status PmiConnection::greet(Clock::time_point deadline) {
  Result<std::string> answer = ask("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", deadline);
  if (answer.ok()) answer = ask("cmd=get_maxes\n", "maxes", deadline);
  if (!answer.ok()) return answer.status();
  longest_value_ = static_cast<size_t>(std::max(number_in(word_of(*answer, "vallen_max")), 0));
  answer = ask("cmd=get_my_kvsname\n", "my_kvsname", deadline);
  if (!answer.ok()) return answer.status();
  store_ = word_of(*answer, "kvsname");
  if (store_.empty() || value_room() < 16) {
    return error(IBCOLL_ERR_BOOTSTRAP,
                 "rank {}: the launcher's PMI server offers the store '{}' for values of {} bytes", rank_, store_,
                 longest_value_);
  }
  return {};
}

size_t PmiConnection::value_room() const {
  const size_t taken = kPutWords + store_.size();
  return taken >= kLongestLine ? 0 : std::min(kLongestLine - taken, std::max(longest_value_, size_t{1}) - 1);
}

Status PmiConnection::put(const std::string& key, std::string_view value, Clock::time_point deadline) {
  return ask(fmt::format("cmd=put kvsname={} key={} value={}\n", store_, key, value), "put_result", deadline).status();
}

Result<std::string> PmiConnection::get(const std::string& key, Clock::time_point deadline) {
  const Result<std::string> answer =
      ask(fmt::format("cmd=get kvsname={} key={}\n", store_, key), "get_result", deadline);
  if (!answer.ok()) return answer.status();
  return std::string(word_of(answer.value(), "value"));
}

Status PmiConnection::barrier(Clock::time_point deadline) {
  return ask("cmd=barrier_in\n", "barrier_out", deadline).status();
}

// The answer to `question`, which has to be one that begins with cmd=`answer`. BOOTSTRAP also where the server refuses.
Result<std::string> PmiConnection::ask(std::string_view question, std::string_view answer, Clock::time_point deadline) {
  const std::string_view asked = question.substr(0, std::min(question.size() - 1, question.find(" value=")));
  if (out_of_step_) {
    return error(IBCOLL_ERR_BOOTSTRAP, "rank {}: an earlier question to the launcher's PMI server has no answer",
                 rank_);
  }
  out_of_step_ = true;
  if (Status status = send(question, deadline); !status.ok()) return status;
  Result<std::string> line = receive_line(deadline);
  if (!line.ok()) return line.status();
  if (word_of(*line, "cmd") != answer) {
    return error(IBCOLL_ERR_BOOTSTRAP, "rank {}: the launcher's PMI server answers '{}' to '{}'; does it speak PMI-1?",
                 rank_, *line, asked);
  }
  out_of_step_ = false;
  if (const std::string_view refusal = word_of(*line, "rc"); !refusal.empty() && refusal != "0") {
    return error(IBCOLL_ERR_BOOTSTRAP, "rank {}: the launcher's PMI server refuses '{}': '{}'", rank_, asked, *line);
  }
  return line;
}

Status PmiConnection::send(std::string_view text, Clock::time_point deadline) {
  while (!text.empty()) {
    // The flags of the socket are left alone: an MPI in this process has the same one.
    const ssize_t sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      text.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (Status status = wait(POLLOUT, deadline); !status.ok()) return status;
    } else if (errno != EINTR) {
      return lost("send", errno);
    }
  }
  return {};
}

Result<std::string> PmiConnection::receive_line(Clock::time_point deadline) {
  for (;;) {
    if (const size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    if (unread_.size() > kLongestAnswer) {
      return error(IBCOLL_ERR_BOOTSTRAP, "rank {}: the launcher's PMI server sends a line that does not end", rank_);
    }
    std::array<char, 2048> bytes;
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) {
      unread_.append(bytes.data(), static_cast<size_t>(got));
    } else if (got == 0) {
      return lost("recv", 0);
    } else if (errno == EAGAIN) {
      if (Status status = wait(POLLIN, deadline); !status.ok()) return status;
    } else if (errno != EINTR) {
      return lost("recv", errno);
    }
  }
}

Status PmiConnection::wait(short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left <= 0ms) {
      return error(IBCOLL_ERR_TIMEOUT,
                   "rank {}: the launcher's PMI server did not answer in time (IBCOLL_TIMEOUT); does the launcher "
                   "still run, or is it stopped?",
                   rank_);
    }
    pollfd entry{socket_.get(), events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min<int64_t>(left.count(), 60'000)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return error(IBCOLL_ERR_SYSTEM, "rank {}: poll: {}", rank_, std::strerror(errno));
  }
}

Status PmiConnection::lost(std::string_view call, int reason) const {
  return error(IBCOLL_ERR_BOOTSTRAP,
               "rank {}: the launcher's PMI server (PMI_FD): {}: {}; is the launcher still running, and did this rank "
               "run another program before? The server serves the first one only",
               rank_, call, reason == 0 ? "closed the connection" : std::strerror(reason));
}

}  // namespace ibcoll
