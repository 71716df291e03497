// SPDX-License-Identifier: BSD-3-Clause
// pmix_exchange MODULE: one rank of a job under a PMIx launcher. Loads libibcoll_pmix.so as libibcoll.so does, runs
// exchanges of several sizes and checks every byte. Rank 0 prints what it saw.
#include <dlfcn.h>

#include <cstdio>
#include <vector>

#include "bootstrap/bootstrap.h"

namespace {

using Factory = ibcoll::Bootstrap* (*)(double, ibcoll::Status*);

std::byte pattern(int rank, size_t index, size_t round) {
  return static_cast<std::byte>(static_cast<size_t>(rank) * 31 + index * 7 + round);
}

// The number of wrong bytes, or -1 on an error.
long exchange(ibcoll::Bootstrap& bootstrap, size_t bytes, size_t round) {
  const auto size = static_cast<size_t>(bootstrap.size());
  std::vector<std::byte> mine(bytes);
  std::vector<std::byte> all(bytes * size);
  for (size_t i = 0; i < bytes; ++i) mine[i] = pattern(bootstrap.rank(), i, round);
  const ibcoll::Status status = bootstrap.allgather(mine, all);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.text().c_str());
    return -1;
  }
  long wrong = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    wrong += all[i] != pattern(static_cast<int>(i / bytes), i % bytes, round);
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void* symbol = module == nullptr ? nullptr : dlsym(module, "ibcoll_pmix_bootstrap");
  void* end = module == nullptr ? nullptr : dlsym(module, "ibcoll_pmix_end");
  if (symbol == nullptr || end == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  ibcoll::Status status;
  const std::unique_ptr<ibcoll::Bootstrap> bootstrap(reinterpret_cast<Factory>(symbol)(60, &status));
  if (!bootstrap) {
    std::fprintf(stderr, "%s\n", status.text().c_str());
    return 1;
  }
  long wrong = 0;
  size_t round = 0;
  for (const size_t bytes : {1, 7, 256, 40000, 3}) {
    const long found = exchange(*bootstrap, bytes, round++);
    if (found < 0) return 1;
    wrong += found;
  }
  if (bootstrap->rank() == 0) {
    std::printf("%s size %d local %d\n", bootstrap->name().c_str(), bootstrap->size(), bootstrap->local_job());
  }
  if (wrong != 0) std::fprintf(stderr, "rank %d: %ld wrong bytes\n", bootstrap->rank(), wrong);
  reinterpret_cast<void (*)()>(end)();
  return wrong == 0 ? 0 : 1;
}
