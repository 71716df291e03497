// SPDX-License-Identifier: BSD-3-Clause
// Bootstrap by PMI-1: under mpirun of MPICH and srun --mpi=pmi2, without MPI in the program.
#pragma once

#include <cstdint>
#include <memory>

#include "bootstrap/bootstrap.h"
#include "bootstrap/pmi/pmi_connection.h"

namespace ibcoll {

class PmiBootstrap : public Bootstrap {
 public:
  // Meets the PMI server that started this process. BOOTSTRAP when there is none, or when an MPI of this process uses
  // the connection already; TIMEOUT when it does not answer within `seconds`. An exchange waits as long for ranks that
  // do not come. A process with several contexts creates and destroys them in the same order on all ranks.
  static Result<std::unique_ptr<PmiBootstrap>> create(double seconds);

  std::string name() const override { return "pmi"; }
  int rank() const override { return connection_->rank(); }
  int size() const override { return connection_->size(); }
  bool local_job() const override { return local_job_; }
  Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) override;

 private:
  PmiBootstrap(std::shared_ptr<PmiConnection> connection, bool local_job, double seconds)
      : connection_(std::move(connection)), local_job_(local_job), seconds_(seconds) {}

  std::shared_ptr<PmiConnection> connection_;
  bool local_job_;
  double seconds_;
};

// Whether PMI_process_mapping, as in "(vector,(0,1,4))", puts all ranks on one node: blocks of (first node, nodes,
// ranks on each), which are repeated until all ranks have a place.
bool on_one_node(const std::string& mapping);

}  // namespace ibcoll
