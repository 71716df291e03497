// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/job.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <vector>

#include "runtime/under_mpi/core/counters.h"
#include "runtime/under_mpi/core/registry.h"
#include "runtime/under_mpi/core/requests.h"
#include "runtime/under_mpi/core/route.h"
#include "runtime/under_mpi/core/settings.h"
#include "runtime/under_mpi/core/vote.h"

namespace ibcoll::under_mpi {

namespace {

std::mutex starting;
std::atomic<ibcoll_context_t> the_context{nullptr};
std::atomic<Reason> state{Reason::kNotRunning};
std::atomic<uint32_t> listed_by_all{0};
std::atomic<bool> known_to_all{false};
bool started = false;

// The version of the library that is loaded, for comparison: ranks of unlike versions do not start.
int64_t version_number() {
  int64_t number = 0, part = 0;
  for (const char* at = ibcoll_version_string(); *at != '\0'; ++at) {
    if (*at == '.') {
      number = (number + part) * 1000;
      part = 0;
    } else {
      part = 10 * part + (*at - '0');
    }
  }
  return number + part;
}

std::string version_text(int64_t number) {
  return fmt::format("{}.{}.{}", number / 1000000, number / 1000 % 1000, number % 1000);
}

std::string no_job(const Communicator& world, std::string_view why) {
  return fmt::format("ibcoll under MPI: rank {} of {} cannot use ibcoll: {}; all ranks use the MPI's own collectives",
                     world.rank(), route().name, why);
}

// Whether all ranks want ibcoll, and for which collectives.
Reason agree_on_settings(const Communicator& world) {
  const Settings& own = settings();
  std::vector<int64_t> least = {own.on ? 1 : 0, version_number(), -version_number()};
  for (int i = 0; i < kCollectives; ++i) least.push_back(own.collectives >> i & 1);
  const bool fine = own.error.empty();
  if (!agree(world, fine, fine ? "" : no_job(world, own.error), &least)) return Reason::kNoContext;
  if (least[0] == 0) return Reason::kOff;
  if (least[1] != -least[2]) {
    if (world.rank() == 0) {
      const std::string why = fmt::format("the ranks have libibcoll.so of different versions, {} to {}",
                                          version_text(least[1]), version_text(-least[2]));
      std::fprintf(stderr, "%s\n", no_job(world, why).c_str());
    }
    return Reason::kNoContext;
  }
  uint32_t collectives = 0;
  for (int i = 0; i < kCollectives; ++i) collectives |= static_cast<uint32_t>(least[3 + i]) << i;
  listed_by_all = collectives;
  return Reason::kNone;
}

ibcoll_status_t create(Communicator& world, ibcoll_context_t* context) {
  ibcoll_bootstrap_t bootstrap = {};
  bootstrap.struct_size = sizeof bootstrap;
  bootstrap.rank = world.rank();
  bootstrap.size = world.size();
  bootstrap.user = &world;
  bootstrap.allgather = [](void* user, const void* send, void* recv, size_t bytes) {
    return route().allgather(*static_cast<const Communicator*>(user), send, recv, bytes) == MPI_SUCCESS ? 0 : 1;
  };
  bootstrap.progress = [](void*) { return route().progress(); };
  const ibcoll_context_params_t params = {sizeof params, &bootstrap};
  return ibcoll_context_create(&params, context);
}

Reason start(Communicator& world) {
  if (const Reason reason = agree_on_settings(world); reason != Reason::kNone) return reason;
  ibcoll_context_t context = nullptr;
  const bool fine = create(world, &context) == IBCOLL_OK;
  // Where only some ranks have a context it stays unused: to end it takes all of them.
  if (!agree(world, fine, fine ? "" : no_job(world, ibcoll_last_error()))) return Reason::kNoContext;
  the_context = context;
  if (settings().verbose > 0 && world.rank() == 0) {
    std::fprintf(stderr, "ibcoll under MPI: %d ranks use ibcoll %s through %s\n", world.size(), ibcoll_version_string(),
                 route().name);
  }
  return Reason::kNone;
}

void write_counters(int rank) {
  if (settings().verbose == 0 || (settings().verbose == 1 && rank != 0)) return;
  std::fputs(report(rank).c_str(), stderr);
}

}  // namespace

void start_job(Communicator& world) noexcept {
  const std::lock_guard guard(starting);
  if (started) return;
  started = true;
  try {
    if (!world.look()) return;
    // Alone there is nothing to run.
    state = world.size() == 1 ? Reason::kOneProcess : start(world);
  } catch (...) {
    state = Reason::kNoContext;
  }
  if (state == Reason::kNone) world.team_ = ibcoll_team_world(the_context);
  world.decided(state);
}

void everybody_knows_the_job() noexcept { known_to_all = true; }

bool everybody_knows() noexcept { return known_to_all; }

void end_job(Communicator& world) noexcept {
  const std::lock_guard guard(starting);
  started = true;
  const ibcoll_context_t context = the_context;
  state = Reason::kNotRunning;
  if (context != nullptr) {
    const bool left = leave_all(Reason::kNotRunning);
    const bool idle = left && !persistent_requests_exist() && requests_in_flight() == 0;
    // A context in use cannot end, and to end it takes all ranks.
    if (agree(world, idle, "")) ibcoll_context_destroy(context);
    the_context = nullptr;
  }
  write_counters(world.rank());
}

ibcoll_context_t context() noexcept { return the_context; }

Reason job_state() noexcept { return state; }

bool listed(Collective collective) noexcept {
  return (listed_by_all.load(std::memory_order_relaxed) >> static_cast<unsigned>(collective) & 1) != 0;
}

int progress() noexcept {
  if (requests_in_flight() == 0) return 0;
  uint64_t events = 0;
  if (const ibcoll_context_t context = the_context) ibcoll_progress_events(context, &events);
  return static_cast<int>(events) + complete_requests();
}

}  // namespace ibcoll::under_mpi
