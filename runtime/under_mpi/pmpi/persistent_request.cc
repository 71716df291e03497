// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/pmpi/persistent_request.h"

#include <algorithm>
#include <new>

#include "runtime/under_mpi/core/collectives.h"
#include "runtime/under_mpi/core/route.h"
#include "runtime/under_mpi/pmpi/advancer.h"
#include "runtime/under_mpi/pmpi/handle_map.h"
#include "runtime/under_mpi/pmpi/next.h"
#include "runtime/under_mpi/pmpi/process.h"

namespace ibcoll::under_mpi {

namespace {

// The MPI sees a receive of nothing from this process itself, with a tag of its own. Once ibcoll has completed the
// collective, this library sends that message.
MPI_Comm messages = MPI_COMM_NULL;

struct Persistent {
  explicit Persistent(Communicator& of) : comm(of) { hold(comm); }
  ~Persistent() { drop(comm); }
  Persistent(const Persistent&) = delete;
  Persistent& operator=(const Persistent&) = delete;

  Communicator& comm;
  HostRequest* prepared = nullptr;
  MPI_Request receive = MPI_REQUEST_NULL;
  int tag = -1;
};

HandleMap<Persistent>& table() {
  static auto* const one = new HandleMap<Persistent>;
  return *one;
}

// With the receive the persistent call is freed.
void destroy(Persistent* persistent) noexcept {
  if (persistent->receive != MPI_REQUEST_NULL) table().erase(persistent->receive);
  if (persistent->prepared != nullptr) release(persistent->prepared);
  if (persistent->tag >= 0) table().give_back_tag(persistent->tag);
  delete persistent;
}

void send(int tag, int bytes) {
  static const char byte = 0;
  MPI_Request sent = MPI_REQUEST_NULL;
  PMPI_Isend(&byte, bytes, MPI_BYTE, 0, tag, messages, &sent);
  IBCOLL_NEXT(Request_free)(&sent);
}

// The receive has no room for a byte: what waits for it returns an error, through the error handler of the collective's
// communicator.
void fail(Persistent* persistent) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  PMPI_Comm_get_errhandler(handle_of(persistent->comm), &handler);
  PMPI_Comm_set_errhandler(messages, handler);
  PMPI_Errhandler_free(&handler);
  const int tag = persistent->tag;
#ifdef OPEN_MPI
  destroy(persistent);  // Open MPI frees requests that end in an error
#endif
  send(tag, 1);
}

void completed(void* user, int code) {
  auto* const persistent = static_cast<Persistent*>(user);
  if (code == MPI_SUCCESS) {
    send(persistent->tag, 0);
  } else {
    fail(persistent);
  }
}

int start_one(MPI_Request* request) {
  const int code = IBCOLL_NEXT(Start)(request);
  Persistent* const persistent = code == MPI_SUCCESS ? table().find(*request) : nullptr;
  if (persistent == nullptr) return code;
  const int started = start(persistent->prepared);
  if (started == MPI_SUCCESS) {
    wake_advancer();
    return started;
  }
  send(persistent->tag, 0);  // inactive again
  IBCOLL_NEXT(Wait)(request, MPI_STATUS_IGNORE);
  return started;
}

}  // namespace

// Not a duplicate: that would call what the program has attached to MPI_COMM_SELF.
void open_persistent_requests() noexcept { PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &messages); }

void close_persistent_requests() noexcept {
  if (messages != MPI_COMM_NULL) PMPI_Comm_free(&messages);
}

int make_persistent(Communicator& comm, const Call& call, MPI_Request* request) noexcept {
  Persistent* persistent = nullptr;
  MPI_Request receive = MPI_REQUEST_NULL;
  int code = MPI_SUCCESS;
  try {
    persistent = new Persistent(comm);
    persistent->tag = table().take_tag();
    code = PMPI_Recv_init(nullptr, 0, MPI_BYTE, 0, persistent->tag, messages, &receive);
    if (code == MPI_SUCCESS) {
      table().insert(receive, persistent);
      persistent->receive = receive;
      code = prepare(comm, call, {completed, persistent}, &persistent->prepared);
    } else {
      code = route().raise(comm, code);
    }
  } catch (const std::bad_alloc&) {
    code = route().raise(comm, MPI_ERR_NO_MEM);
  }
  if (code == MPI_SUCCESS) {
    *request = receive;
    return code;
  }
  if (persistent != nullptr) destroy(persistent);
  if (receive != MPI_REQUEST_NULL) IBCOLL_NEXT(Request_free)(&receive);
  return code;
}

IBCOLL_BOTH_NAMES(Start)
extern "C" int PMPI_Start(MPI_Request* request) { return start_one(request); }

IBCOLL_BOTH_NAMES(Startall)
extern "C" int PMPI_Startall(int count, MPI_Request requests[]) {
  const bool any = std::any_of(requests, requests + std::max(count, 0),
                               [](MPI_Request request) { return table().find(request) != nullptr; });
  if (!any) return IBCOLL_NEXT(Startall)(count, requests);
  for (int i = 0; i < count; ++i) {
    if (const int code = start_one(&requests[i]); code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

IBCOLL_BOTH_NAMES(Request_free)
extern "C" int PMPI_Request_free(MPI_Request* request) {
  Persistent* const persistent = request != nullptr ? table().find(*request) : nullptr;
  if (persistent == nullptr) return IBCOLL_NEXT(Request_free)(request);
  destroy(persistent);
  return IBCOLL_NEXT(Request_free)(request);
}

}  // namespace ibcoll::under_mpi
