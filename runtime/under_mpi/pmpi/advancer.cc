// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/pmpi/advancer.h"

#include <ibcoll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "runtime/under_mpi/core/job.h"
#include "runtime/under_mpi/core/requests.h"

namespace ibcoll::under_mpi {

namespace {

// Between two looks of the thread. The program's own waits look all the time.
constexpr timespec kPause = {0, 100'000};

std::atomic<bool> in_use{false}, needed{false}, stopping{false};
std::mutex starting;
bool started = false;
pthread_t thread;

// Calls nothing of the MPI, which may know of no threads.
void* advance(void*) {
  while (!stopping) {
    needed.wait(false);
    if (requests_in_flight() == 0) {
      needed = false;
      // One may have started in between.
      if (requests_in_flight() == 0) continue;
      needed = true;
    }
    uint64_t events = 0;
    if (const ibcoll_context_t of_job = context()) ibcoll_progress_events(of_job, &events);
    nanosleep(&kPause, nullptr);
  }
  return nullptr;
}

void start() noexcept {
  const std::lock_guard guard(starting);
  if (started) return;
  // The program's signals are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // Without memory for a thread, the waits alone advance.
  started = pthread_create(&thread, nullptr, advance, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void use_advancer() noexcept { in_use = true; }

bool advancer_in_use() noexcept { return in_use.load(std::memory_order_relaxed); }

void wake_advancer() noexcept {
  if (!advancer_in_use() || needed.exchange(true)) return;
  needed.notify_one();
  start();
}

void stop_advancer() noexcept {
  const std::lock_guard guard(starting);
  if (!started) return;
  stopping = true;
  needed = true;
  needed.notify_one();
  pthread_join(thread, nullptr);
  started = false;
}

}  // namespace ibcoll::under_mpi
