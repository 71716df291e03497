// SPDX-License-Identifier: BSD-3-Clause
// The wire protocol of PMI-1: a process asks the launcher that started it, one line each way, over the socket PMI_FD.
//
//   cmd=get kvsname=STORE key=KEY   ->   cmd=get_result rc=0 value=VALUE
//
// Spoken by Hydra (mpirun of MPICH and Intel MPI), by srun --mpi=pmi2 (Slurm's plugin serves clients of PMI-1 and of
// PMI-2) and by Flux. It is no standard; RFC 13 of Flux, Simple Process Manager Interface v1, describes it. Balaji et
// al., PMI: A Scalable Parallel Process-Management Interface for Extreme-Scale Systems, EuroMPI 2010.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace ibcoll {

class PmiConnection {
 public:
  using Clock = std::chrono::steady_clock;

  // True when PMI_RANK and PMI_SIZE are set and PMI_FD names an open socket. Variables alone may be left over from a
  // launcher further out: its socket does not reach the processes of another one.
  static bool offered();
  // The number of ranks by PMI_SIZE; 0 if that is not a number.
  static int offered_size();

  // Greets the server. The connection then belongs to this process: programs that it starts do not inherit PMI_FD.
  // BOOTSTRAP: what is in the environment, or what the server answers, is not PMI-1. TIMEOUT: no answer by `deadline`.
  static Result<std::unique_ptr<PmiConnection>> open(Clock::time_point deadline);
  // Says goodbye: a launcher ends the job when a rank's connection closes without it.
  ~PmiConnection();
  PmiConnection(const PmiConnection&) = delete;
  PmiConnection& operator=(const PmiConnection&) = delete;

  // False in a process that was forked from the one that opened it.
  bool of_this_process() const { return ::getpid() == process_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  // The longest value that put() takes.
  size_t value_room() const;

  // Stores a value without blanks and line ends. Others get it after the next barrier. Keys are written once.
  Status put(const std::string& key, std::string_view value, Clock::time_point deadline);
  Result<std::string> get(const std::string& key, Clock::time_point deadline);
  // TIMEOUT: some rank has not come.
  Status barrier(Clock::time_point deadline);

  // Held for a whole exchange: barriers have no names.
  std::mutex& exchanging() { return exchanging_; }
  // The number of the next exchange of this process, for its keys.
  size_t next_exchange() { return exchanges_++; }

 private:
  PmiConnection(UniqueFd socket, int rank, int size) : socket_(std::move(socket)), rank_(rank), size_(size) {}
  Status greet(Clock::time_point deadline);
  Result<std::string> ask(std::string_view question, std::string_view answer, Clock::time_point deadline);
  Status send(std::string_view text, Clock::time_point deadline);
  Result<std::string> receive_line(Clock::time_point deadline);
  Status wait(short events, Clock::time_point deadline);
  Status lost(std::string_view call, int reason) const;

  UniqueFd socket_;
  const int rank_;
  const int size_;
  const pid_t process_ = ::getpid();
  std::string store_;
  size_t longest_value_ = 0;
  std::string unread_;
  bool out_of_step_ = false;  // an answer has not come: it would be taken for that to the next question
  std::mutex exchanging_;
  size_t exchanges_ = 0;
};

}  // namespace ibcoll
