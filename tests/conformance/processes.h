// SPDX-License-Identifier: BSD-3-Clause
// Ranks of one transport as processes of their own (ibcoll_conformance_rank), which can die. Each has a socket to the
// test, for words of one line.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace ibcoll::conformance {

class Processes {
 public:
  // transport: ucx_tcp, ucx_shared_memory, shm, shm_copy; scenario: see rank.cc. Connected when it returns; a failed
  // assertion otherwise. No process survives this object.
  Processes(const std::string& transport, int size, const std::string& scenario);
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  bool started() const { return started_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  void tell(int rank, const std::string& word);
  // The next word of a rank; nothing: it said none in time, or is gone.
  std::optional<std::string> hear(int rank, std::chrono::milliseconds timeout);
  // Waits for `word`, which must be the next one. False with a failed assertion: another one, or none.
  bool expect(int rank, const std::string& word, std::chrono::milliseconds timeout);
  void kill(int rank);
  // Exit status as of waitpid(); -1: it did not end in time.
  int wait(int rank, std::chrono::milliseconds timeout);

 private:
  struct Rank {
    pid_t pid = -1;
    int socket = -1;
  };
  void spawn(const std::string& program, const std::string& transport, int rank, int size, const std::string& scenario,
             const std::string& job);
  bool exchange();

  std::vector<Rank> ranks_;
  bool started_ = false;
};

}  // namespace ibcoll::conformance
