// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/pmpi/lifetimes.h"

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "runtime/under_mpi/core/handle.h"
#include "runtime/under_mpi/pmpi/next.h"

namespace ibcoll::under_mpi {

namespace {

// Handles in use by collectives in flight, of one kind.
class InUse {
 public:
  void retain(uint64_t key) {
    const std::lock_guard guard(lock_);
    ++uses_[key].number;
  }
  // True: the program has freed it meanwhile, and nothing uses it any more.
  bool release(uint64_t key) {
    const std::lock_guard guard(lock_);
    const auto use = uses_.find(key);
    if (use == uses_.end() || --use->second.number > 0) return false;
    const bool freed = use->second.freed;
    uses_.erase(use);
    return freed;
  }
  // The program frees it. True: it is in use, and release() will say when it is not.
  bool defer(uint64_t key) {
    const std::lock_guard guard(lock_);
    const auto use = uses_.find(key);
    if (use == uses_.end()) return false;
    use->second.freed = true;
    return true;
  }

 private:
  struct Use {
    int number = 0;
    bool freed = false;
  };
  std::mutex lock_;
  std::unordered_map<uint64_t, Use> uses_;
};

InUse& types() {
  static auto* const one = new InUse;
  return *one;
}

InUse& ops() {
  static auto* const one = new InUse;
  return *one;
}

}  // namespace

void retain_type(MPI_Datatype type) { types().retain(key_of(type)); }

void release_type(MPI_Datatype type) {
  if (types().release(key_of(type))) IBCOLL_NEXT(Type_free)(&type);
}

void retain_op(MPI_Op op) { ops().retain(key_of(op)); }

void release_op(MPI_Op op) {
  if (ops().release(key_of(op))) IBCOLL_NEXT(Op_free)(&op);
}

IBCOLL_BOTH_NAMES(Type_free)
extern "C" int PMPI_Type_free(MPI_Datatype* type) {
  if (type == nullptr || !types().defer(key_of(*type))) return IBCOLL_NEXT(Type_free)(type);
  *type = MPI_DATATYPE_NULL;
  return MPI_SUCCESS;
}

IBCOLL_BOTH_NAMES(Op_free)
extern "C" int PMPI_Op_free(MPI_Op* op) {
  if (op == nullptr || !ops().defer(key_of(*op))) return IBCOLL_NEXT(Op_free)(op);
  *op = MPI_OP_NULL;
  return MPI_SUCCESS;
}

}  // namespace ibcoll::under_mpi
