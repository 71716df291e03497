// SPDX-License-Identifier: BSD-3-Clause
// The data that a thread keeps from one call to the next.
#pragma once

#include <pthread.h>

#include <new>

namespace ibcoll::under_mpi {

// One T for each thread. It is deleted when its thread ends, but not when the process does, unlike what is
// thread_local: functions of atexit() and destructors of libraries run later than those of a thread's objects, and may
// call MPI.
template <typename T>
class PerThread {
 public:
  PerThread() noexcept : usable_(pthread_key_create(&key_, [](void* kept) { delete static_cast<T*>(kept); }) == 0) {}

  // nullptr where there is no memory for one.
  T* get() const noexcept {
    if (!usable_) return nullptr;
    if (void* const kept = pthread_getspecific(key_)) return static_cast<T*>(kept);
    T* const fresh = new (std::nothrow) T;
    if (fresh != nullptr && pthread_setspecific(key_, fresh) == 0) return fresh;
    delete fresh;
    return nullptr;
  }

 private:
  pthread_key_t key_;
  bool usable_;
};

}  // namespace ibcoll::under_mpi
