// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/openmpi/request.h"

#include "runtime/under_mpi/core/collectives.h"
#include "runtime/under_mpi/core/counters.h"
#include "runtime/under_mpi/core/datatype.h"

namespace ibcoll::open_mpi {
namespace {

// The MPI layer stores after the request which types and operations it has retained, which is why it is one of this
// kind.
struct OmpiRequest {
  ompi_coll_base_nbc_request_t super;
  under_mpi::HostRequest* prepared;  // persistent
};

OBJ_CLASS_INSTANCE(OmpiRequest, ompi_coll_base_nbc_request_t, nullptr, nullptr);

// Memory of requests is not returned before the end: the MPI layer still reads a request that it has freed.
opal_free_list_t idle;

OmpiRequest& request_of(ompi_request_t* request) { return *reinterpret_cast<OmpiRequest*>(request); }

void completed(void* user, int code) {
  ompi_request_t* const request = static_cast<ompi_request_t*>(user);
  request->req_status.MPI_ERROR = code;
  // For a failed request of the kind COLL, Open MPI 4.1 calls the error handler of MPI_COMM_WORLD.
  if (code != MPI_SUCCESS) request->req_type = OMPI_REQUEST_PML;
  ompi_request_complete(request, true);
}

void give_back(OmpiRequest& request) {
  ompi_request_t* const base = &request.super.super;
  ompi_communicator_t* comm = base->req_mpi_object.comm;
  OMPI_REQUEST_FINI(base);
  opal_free_list_return(&idle, &base->super);
  OBJ_RELEASE(comm);
}

int free_request(ompi_request_t** handle) {
  OmpiRequest& request = request_of(*handle);
  if (request.prepared != nullptr) under_mpi::release(request.prepared);
  request.prepared = nullptr;
  give_back(request);
  *handle = MPI_REQUEST_NULL;
  return OMPI_SUCCESS;
}

int start_requests(size_t count, ompi_request_t** requests) {
  for (size_t i = 0; i < count; ++i) {
    ompi_request_t* const request = requests[i];
    request->req_status.MPI_ERROR = MPI_SUCCESS;
    request->req_type = OMPI_REQUEST_COLL;
    request->req_complete = REQUEST_PENDING;
    request->req_state = OMPI_REQUEST_ACTIVE;
    if (const int code = under_mpi::start(request_of(request).prepared); code != MPI_SUCCESS) {
      request->req_complete = REQUEST_COMPLETED;
      request->req_state = OMPI_REQUEST_INACTIVE;
      return code;
    }
  }
  return OMPI_SUCCESS;
}

OmpiRequest* take_idle(Module& module, bool persistent) {
  auto* const request = reinterpret_cast<OmpiRequest*>(opal_free_list_get(&idle));
  if (request == nullptr) return nullptr;
  ompi_request_t& base = request->super.super;
  OMPI_REQUEST_INIT(&base, persistent);
  base.req_type = OMPI_REQUEST_COLL;
  base.req_state = persistent ? OMPI_REQUEST_INACTIVE : OMPI_REQUEST_ACTIVE;
  base.req_status = {
      .MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG, .MPI_ERROR = MPI_SUCCESS, ._cancelled = 0, ._ucount = 0};
  base.req_start = start_requests;
  base.req_free = free_request;
  base.req_cancel = nullptr;
  base.req_mpi_object.comm = module.comm;
  // The MPI layer sets only what it retains, and releases all that is set.
  request->super.data.objs.objs[0] = request->super.data.objs.objs[1] = nullptr;
  request->prepared = nullptr;
  OBJ_RETAIN(module.comm);  // the program may free it before the collective is complete
  return request;
}

// To find the context id of a new communicator Open MPI reduces one int after the other on its parent: for
// MPI_Comm_idup from inside of its progress, that is, on each rank at another point between the program's calls.
bool maybe_open_mpis_own(const under_mpi::Call& call) {
  if (call.collective != under_mpi::Collective::kAllreduce || call.recv.count != 1) return false;
  if (call.op != MPI_MIN && call.op != MPI_MAX) return false;
  const under_mpi::Type* const type = under_mpi::find_type(call.recv.type);
  return type != nullptr && type->element == IBCOLL_INT32;
}

}  // namespace

int open_requests() {
  OBJ_CONSTRUCT(&idle, opal_free_list_t);
  const int status = opal_free_list_init(&idle, sizeof(OmpiRequest), 8, OBJ_CLASS(OmpiRequest), 0, 0, 0, -1, 16,
                                         nullptr, 0, nullptr, nullptr, nullptr);
  return status;
}

int close_requests() {
  OBJ_DESTRUCT(&idle);
  return OMPI_SUCCESS;
}

int start_nonblocking(Module& module, const under_mpi::Call& call, ompi_request_t** handle) {
  if (maybe_open_mpis_own(call)) {
    under_mpi::count_fell(call.collective, under_mpi::Reason::kMaybeMpis);
    return under_mpi::kFallsThrough;
  }
  OmpiRequest* const request = take_idle(module, false);
  if (request == nullptr) return MPI_ERR_NO_MEM;
  ompi_request_t* const base = &request->super.super;
  const int code = under_mpi::run_nonblocking(module.communicator(), call, {completed, base});
  if (code == MPI_SUCCESS) {
    *handle = base;
  } else {
    give_back(*request);
  }
  return code;
}

int make_persistent(Module& module, const under_mpi::Call& call, ompi_request_t** handle) {
  OmpiRequest* const request = take_idle(module, true);
  if (request == nullptr) return MPI_ERR_NO_MEM;
  ompi_request_t* const base = &request->super.super;
  const int code = under_mpi::prepare(module.communicator(), call, {completed, base}, &request->prepared);
  if (code == MPI_SUCCESS) {
    *handle = base;
  } else {
    give_back(*request);
  }
  return code;
}

}  // namespace ibcoll::open_mpi
