// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/lone_rank.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace ibcoll {
namespace {

struct Launcher {
  const char* size_variable;  // not one that the shell of an allocation has as well, such as SLURM_NTASKS
  const char* rank_variable;
  const char* advice;
};

constexpr Launcher kLaunchers[] = {
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "start it by srun --mpi=pmix or srun --mpi=pmi2"},
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "leave it the variables PMIX_* that mpirun sets"},
    {"PMI_SIZE", "PMI_RANK",
     "leave it the socket PMI_FD (PALS gives none; a rank's own child processes have none once ibcoll has used it)"},
    {"FLUX_JOB_SIZE", "FLUX_TASK_RANK", "leave it the socket PMI_FD that flux run gives"},
};

const char* variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

bool above_one(const char* text) {
  long number = 0;
  std::from_chars(text, text + std::strlen(text), number);
  return number > 1;
}

}  // namespace

Status check_that_rank_is_alone() {
  constexpr const char* kElse =
      "or start it by ibcoll_run -n N PROGRAM; IBCOLL_SINGLETON=yes makes each process a job of its own";
  for (const Launcher& launcher : kLaunchers) {
    const char* const size = variable(launcher.size_variable);
    if (!above_one(size)) continue;
    return error(
        IBCOLL_ERR_BOOTSTRAP,
        "rank {}: a launcher started this process as one of {} ranks ({}), but offers neither PMIx (PMIX_RANK) "
        "nor PMI (PMI_FD) to find the others; {}, {}",
        variable(launcher.rank_variable), size, launcher.size_variable, launcher.advice, kElse);
  }
  if (std::getenv("PMI_PORT") == nullptr) return {};
  return error(
      IBCOLL_ERR_BOOTSTRAP,
      "rank {}: a launcher started this process as a rank of a job and offers PMI by PMI_PORT, which ibcoll does "
      "not use; leave out mpirun's option -pmi-port, {}",
      variable("PMI_ID"), kElse);
}

}  // namespace ibcoll
