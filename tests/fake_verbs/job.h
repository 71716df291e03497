// SPDX-License-Identifier: BSD-3-Clause
// Collectives of p ranks, each on a node of its own, over the device within the process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/engine.h"
#include "runtime/engine/request.h"
#include "runtime/engine/team.h"
#include "tests/fake_verbs/group.h"
#include "tests/simulated/collective_case.h"

namespace ibcoll::fake_verbs {

class EngineJob {
 public:
  EngineJob(int p, uint64_t seed, std::vector<const char*> settings = {});
  // Makes the call `times` times on all ranks, which make progress in random order; what is wrong with one of the
  // results, or what a rank waits for after 60 s without an end; empty: nothing.
  std::string run(const CallParams& params, const char* algorithm, int times = 1);
  struct End {
    Status status;
    int order = 0;             // 0: it ended first
    std::string written_late;  // what has changed in the rank's buffers after its call had ended; empty: nothing
  };
  // One call, which need not end well. No element: it did not end in 60 s.
  std::vector<End> run_to_its_end(const CallParams& params, const char* algorithm);
  // Until nothing is under way any more: late acknowledgements and credits.
  void drain();
  // The requests of all ranks to their devices so far.
  std::vector<Counts> counts() const;

 private:
  std::unique_ptr<Request> request(int rank, CollectiveCase& buffers, const Algorithm& algorithm);
  std::vector<std::unique_ptr<Request>> make_requests(CollectiveCase& buffers, const char* algorithm);
  std::string wait(const std::vector<std::unique_ptr<Request>>& requests);
  void progress() { engines_[random_.below(engines_.size())]->progress(); }

  sim::Random random_;
  std::unique_ptr<conformance::Group> ranks_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<std::unique_ptr<Team>> teams_;
};

}  // namespace ibcoll::fake_verbs
