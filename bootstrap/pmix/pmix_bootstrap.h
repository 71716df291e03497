// SPDX-License-Identifier: BSD-3-Clause
// Bootstrap by PMIx: under mpirun of Open MPI, prterun, and srun --mpi=pmix, without MPI in the program.
#pragma once

#include <cstdint>

#include "bootstrap/bootstrap.h"

namespace ibcoll {

class PmixBootstrap : public Bootstrap {
 public:
  // Connects to the PMIx server that started this process. BOOTSTRAP when there is none; TIMEOUT when it does not
  // answer within `seconds`. An exchange waits as long for ranks that do not come.
  static Result<std::unique_ptr<PmixBootstrap>> create(double seconds);

  std::string name() const override { return "pmix"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool local_job() const override { return local_job_; }
  Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) override;

 private:
  PmixBootstrap(std::string job, int rank, double seconds) : job_(std::move(job)), rank_(rank), seconds_(seconds) {}
  Result<uint32_t> job_number(const char* key) const;
  Status publish(const std::string& key, std::span<const std::byte> mine) const;
  Status fence() const;
  Status collect(const std::string& key, size_t bytes, std::span<std::byte> all) const;

  std::string job_;  // PMIx namespace
  int rank_ = 0;
  int size_ = 0;
  bool local_job_ = false;
  const double seconds_;
};

}  // namespace ibcoll

// libibcoll.so looks these functions up after it has loaded this module.
// A new bootstrap, owned by the caller, or nullptr with the reason in *status.
extern "C" IBCOLL_MODULE_API ibcoll::Bootstrap* ibcoll_pmix_bootstrap(double seconds, ibcoll::Status* status);
// The process ends: takes leave of its PMIx server. No bootstrap works after that.
extern "C" IBCOLL_MODULE_API void ibcoll_pmix_end();
