// SPDX-License-Identifier: BSD-3-Clause
// The bootstrap of ranks that ibcoll_run started: a connection to the launcher, which gathers and distributes.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

#include "bootstrap/bootstrap.h"
#include "bootstrap/rendezvous_protocol.h"
#include "runtime/base/unique_fd.h"

namespace ibcoll {

class TcpBootstrap : public Bootstrap, private Arbiter {
 public:
  using Clock = std::chrono::steady_clock;

  // True when ibcoll_run's environment is there.
  static bool available();
  // Connects and proves to the launcher, and has it prove, that both know the job's secret. Each exchange ends after
  // `exchange_seconds` (infinity: never) when not all ranks have come. May be called again later in the process: the
  // n-th bootstrap of one rank meets the n-th of the others. Joining takes 30 s at most, and no longer than an exchange
  // may; a connection that is dropped is tried again. BOOTSTRAP: the environment is damaged, the launcher has ended or
  // is not that of this job. TIMEOUT: it does not answer.
  static Result<std::unique_ptr<TcpBootstrap>> join(double exchange_seconds);

  // Notifies the launcher that this rank leaves in order.
  ~TcpBootstrap() override;

  std::string name() const override { return "ibcoll_run"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string node() const override { return node_; }
  bool local_job() const override { return local_job_; }
  Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  std::vector<Ended> ended() override;
  Arbiter* arbiter() override { return this; }

 private:
  bool keeps_going() const override { return keeps_going_; }
  Status vote(const Vote& vote) override;
  Status accuse(int rank) override;
  Status withdraw(const Key& key) override;
  Result<std::optional<Verdict>> verdict() override;
  void wait(double seconds) override;

  TcpBootstrap() = default;
  Status read_environment();
  std::string own_name() const;  // for errors
  Status connect(Clock::time_point deadline);
  Status prove(const rendezvous::Secret& secret, Clock::time_point deadline, bool& dropped);
  Status receive_admission(Clock::time_point deadline);
  Status receive_gathered(std::span<std::byte> all, Clock::time_point deadline);
  Status receive_answer(rendezvous::FrameHeader& header, Clock::time_point deadline);
  static bool is_news(rendezvous::Kind kind) {
    return kind == rendezvous::Kind::kRankEnded || kind == rendezvous::Kind::kVerdict;
  }
  bool take_news();
  void note(rendezvous::Kind kind, std::string_view body);
  Status send_frame(rendezvous::Kind kind, std::string_view body);
  Status ask_for_missing_ranks();
  Result<std::string> receive_text(uint32_t length, Clock::time_point deadline, uint64_t most = rendezvous::kMaxText);
  Status send(std::span<const std::byte> bytes, Clock::time_point deadline);
  Status receive(std::span<std::byte> bytes, Clock::time_point deadline);
  Status wait(short events, Clock::time_point deadline);
  Status lost(std::string_view call, int reason) const;

  int rank_ = -1;
  int size_ = 0;
  std::string host_;
  std::string node_;
  bool local_job_ = false;
  std::string address_;
  double exchange_seconds_ = 0;
  UniqueFd socket_;
  bool keeps_going_ = false;
  std::string unread_;  // taken from the socket by take_news(), for the next receive()
  std::vector<Ended> ended_;
  std::deque<Verdict> verdicts_;
};

}  // namespace ibcoll
