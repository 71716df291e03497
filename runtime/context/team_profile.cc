// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/team_profile.h"

#include <algorithm>

#include "runtime/transport/cost_constants.h"

namespace ibcoll {
namespace {

CostModel model_of(const JoinedJob& job, const EngineLimits& limits, const Shape& team, bool steady) {
  CostModel m;
  m.eager_bytes = static_cast<double>(limits.eager_bytes);
  m.spill_bytes = static_cast<double>(limits.spill_bytes);
  const MemoryModel memory = steady ? MemoryModel{} : job.memory_model;
  if (memory.copy_us_per_byte > 0) m.copy_us = memory.copy_us_per_byte;
  m.cached_copy_us = std::min(m.cached_copy_us, m.copy_us);
  m.combine_us = steady ? m.cached_copy_us : std::max(m.cached_copy_us, job.combine_us_per_byte);
  m.streamed_copy_us = memory.streamed_copy_us_per_byte > 0 ? memory.streamed_copy_us_per_byte : m.copy_us;
  m.own_cache_bytes = job.own_cache_bytes;
  if (memory.read_us_per_byte > 0) m.read_us = memory.read_us, m.read_us_per_byte = memory.read_us_per_byte;
  m.cache_bytes = job.cache_bytes;
  if (team.nodes > 1 || job.shm) {
    const LinkModel link = team.nodes == 1 ? job.shm->model() : steady ? job.steady_net_model : job.net_model;
    m.alpha_us = link.alpha_us;
    m.cpu_us = link.cpu_us;
    m.by_ranks = link.by_ranks;
    m.moves_meanwhile = team.nodes > 1 && !link.by_ranks;
    double beta = link.beta_us_per_byte;
    if (team.nodes == 1) beta = 2 * m.copy_us;
    if (team.single_copy) {
      // A message beyond the eager limit is a single-copy write, which is no cheaper per byte than two copies: the
      // lines that its receiver has read must be taken from the other core first. (Small messages do not decide on a
      // node.)
      m.cpu_us += m.read_us / 2;
      beta = std::max(beta, m.read_us_per_byte);
    }
    // Ranks that share a core also share the time that it has for moving bytes.
    m.beta_us = beta * job.ranks_per_core;
  }
  m.sharing = job.ranks_per_core;
  m.yield_us = cost::kSliceUs * (job.ranks_per_core - 1);
  return m;
}

}  // namespace

void TeamProfile::fill_models(const JoinedJob& job, const EngineLimits& limits) {
  model = model_of(job, limits, shape, false);
  steady_model = model_of(job, limits, shape, true);
}

}  // namespace ibcoll
