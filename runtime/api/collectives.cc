// SPDX-License-Identifier: BSD-3-Clause
// The C interface: requests and blocking calls.
#include <cmath>

#include "runtime/api/handles.h"
#include "runtime/api/taken.h"
#include "runtime/collectives/framework/arguments.h"

using namespace ibcoll;
using namespace ibcoll::api;

// The result of a wait or test. A request that runs once is freed when it has succeeded.
static ibcoll_status_t ended(RequestHandle& request, const Status& status) {
  if (request.once && status.ok()) request.team->plans.give_back(static_cast<Plan&>(request));
  return report(status);
}

extern "C" {

// ---------------------------------------------------------------- requests

ibcoll_status_t ibcoll_collective_init(ibcoll_team_t team, const ibcoll_collective_args_t* args,
                                       ibcoll_request_t* request) {
  return guarded([&] {
    if (!team || !args || !request)
      return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_collective_init: team, args or request is NULL");
    *request = nullptr;
    const auto known = taken_args(*args);
    if (!known.ok()) return report(known.status());
    args = &known.value();
    TeamHandle& t = *handle(team);
    const Guard guard = t.context->enter();
    Result<std::unique_ptr<Request>> made = t.context->calls().make_persistent(t, *args);
    if (!made.ok()) return report(made.status());
    *request = opaque(new RequestHandle{&t, std::move(*made)});
    return IBCOLL_OK;
  });
}

ibcoll_status_t ibcoll_collective_start(ibcoll_team_t team, const ibcoll_collective_args_t* args,
                                        ibcoll_request_t* request) {
  const void* const returns_to = __builtin_return_address(0);
  return guarded([&] {
    if (!team || !args || !request)
      return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_collective_start: team, args or request is NULL");
    *request = nullptr;
    const auto known = taken_args(*args);
    if (!known.ok()) return report(known.status());
    TeamHandle& t = *handle(team);
    const void* const site = t.context->call_site(returns_to);
    const Guard guard = t.context->enter();
    const Result<Plan*> plan = t.context->calls().start_once(t, known.value(), site);
    if (!plan.ok()) return report(plan.status());
    *request = opaque(plan.value());
    return IBCOLL_OK;
  });
}

ibcoll_status_t ibcoll_start(ibcoll_request_t request) {
  const void* const returns_to = __builtin_return_address(0);
  return guarded([&] {
    if (!request) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_start: request is NULL");
    RequestHandle& r = *handle(request);
    if (r.once)
      return refuse(IBCOLL_ERR_INVALID_ARGUMENT,
                    "ibcoll_start: the request is one of ibcoll_collective_start, which runs once; use "
                    "ibcoll_collective_init for one that is started again");
    Context& context = *r.team->context;
    const void* const site = context.call_site(returns_to);
    const Guard guard = context.enter();
    return report(context.calls().start(*r.request, site));
  });
}

// One look at a request, after a round of progress or without.
static ibcoll_status_t look(ibcoll_request_t request, bool advances, const char* call) {
  return guarded([&] {
    if (!request) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "{}: request is NULL", call);
    RequestHandle& handle = *api::handle(request);
    Context& context = *handle.team->context;
    const Guard guard = context.enter();
    Request& r = *handle.request;
    if (advances && r.in_flight()) context.progress().pass();
    if (!r.in_flight()) {
      context.progress().drain_later();
      return ended(handle, r.status());
    }
    const Status overdue = r.overdue();
    return overdue.ok() ? IBCOLL_IN_PROGRESS : report(overdue);
  });
}

ibcoll_status_t ibcoll_test(ibcoll_request_t request) { return look(request, true, "ibcoll_test"); }

ibcoll_status_t ibcoll_request_status(ibcoll_request_t request) {
  return look(request, false, "ibcoll_request_status");
}

ibcoll_status_t ibcoll_wait(ibcoll_request_t request) { return ibcoll_wait_timeout(request, INFINITY); }

ibcoll_status_t ibcoll_wait_timeout(ibcoll_request_t request, double seconds) {
  return guarded([&] {
    if (!request) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_wait: request is NULL");
    if (std::isnan(seconds)) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_wait_timeout: seconds is not a number");
    RequestHandle& r = *handle(request);
    Context& context = *r.team->context;
    // A trace has the moment of the wait.
    if (!r.once && r.request->done() && !context.progress().needs_polling() && !context.traced()) return IBCOLL_OK;
    Guard guard = context.enter();
    context.calls().begin_wait(*r.request);
    return ended(r, context.waiting().wait(*r.request, seconds, guard));
  });
}

ibcoll_status_t ibcoll_request_free(ibcoll_request_t request) {
  return guarded([&] {
    if (!request) return IBCOLL_OK;
    RequestHandle* const r = handle(request);
    const Guard guard = r->team->context->enter();
    if (r->request->in_flight())
      return refuse(IBCOLL_ERR_BUSY, "ibcoll_request_free: {} is in flight; wait for it first", r->request->call());
    if (r->once)
      r->team->plans.give_back(static_cast<Plan&>(*r));
    else
      delete r;
    return IBCOLL_OK;
  });
}

const char* ibcoll_request_algorithm(ibcoll_request_t request) {
  return request ? handle(request)->request->algorithm_name().c_str() : "";
}

// ---------------------------------------------------------------- blocking calls

// The rest of a blocking call whose short way is not all of it.
[[gnu::noinline]] static ibcoll_status_t run_on(TeamHandle& team, const ibcoll_collective_args_t& args,
                                                const Calls::ShortCall& begun, Guard& guard, const void* site) {
  return guarded([&] { return report(team.context->calls().run_blocking(team, args, begun, guard, site)); });
}

[[gnu::noinline]] static ibcoll_status_t refuse_blocking(ibcoll_team_t team, ibcoll_collective_t collective) {
  if (closed()) return refuse_closed();
  if (!team) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "{}: team is NULL", ibcoll_collective_name(collective));
  return refuse_in_operation();
}

// The call site of a trace is found before the lock is taken.
[[gnu::noinline]] static ibcoll_status_t run_once(ibcoll_team_t team, const ibcoll_collective_args_t& args,
                                                  const void* returns_to) {
  if (!team || closed() || UserOperation::runs()) [[unlikely]]
    return refuse_blocking(team, args.collective);
  TeamHandle& t = *handle(team);
  const void* const site = t.context->call_site(returns_to);
  Guard guard = t.context->enter();
  const Calls::ShortCall call = t.context->calls().try_short(t, args, guard);
  if (call.how == Team::Short::kDone) [[likely]]
    return IBCOLL_OK;
  return run_on(t, args, call, guard, site);
}

// Inlined, so that the return address is that of the public function, for the call site of a trace.
[[gnu::always_inline]] static inline ibcoll_status_t blocking(ibcoll_team_t team,
                                                              const ibcoll_collective_args_t& args) {
  return run_once(team, args, __builtin_return_address(0));
}

[[gnu::always_inline]] static inline ibcoll_status_t rooted(ibcoll_team_t team, ibcoll_collective_args_t args,
                                                            int root) {
  args.root = root;
  return blocking(team, args);
}

static ibcoll_collective_args_t reduction_of(ibcoll_collective_t collective, const void* send, void* recv,
                                             uint64_t count, ibcoll_type_t type, ibcoll_op_t op) {
  ibcoll_collective_args_t args = arguments_of(collective, send, recv, 0);
  args.count = count;
  args.type = type;
  args.op = op;
  return args;
}

ibcoll_status_t ibcoll_collective_run(ibcoll_team_t team, const ibcoll_collective_args_t* args) {
  const void* const returns_to = __builtin_return_address(0);
  if (args && args->struct_size == sizeof *args) [[likely]]
    return run_once(team, *args, returns_to);
  return guarded([&] {
    if (!team || !args) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_collective_run: team or args is NULL");
    const auto known = taken_args(*args);
    return known.ok() ? run_once(team, known.value(), returns_to) : report(known.status());
  });
}

ibcoll_status_t ibcoll_barrier(ibcoll_team_t team) {
  return blocking(team, arguments_of(IBCOLL_BARRIER, nullptr, nullptr, 0));
}

ibcoll_status_t ibcoll_bcast(ibcoll_team_t team, void* buffer, uint64_t bytes, int root) {
  return rooted(team, arguments_of(IBCOLL_BCAST, nullptr, buffer, bytes), root);
}

ibcoll_status_t ibcoll_allgather(ibcoll_team_t team, const void* send, void* recv, uint64_t bytes) {
  return blocking(team, arguments_of(IBCOLL_ALLGATHER, send, recv, bytes));
}

ibcoll_status_t ibcoll_allgatherv(ibcoll_team_t team, const void* send, void* recv, const uint64_t* recv_counts,
                                  const uint64_t* recv_displacements) {
  ibcoll_collective_args_t args = arguments_of(IBCOLL_ALLGATHERV, send, recv, 0);
  args.recv_counts = recv_counts;
  args.recv_displacements = recv_displacements;
  return blocking(team, args);
}

ibcoll_status_t ibcoll_alltoall(ibcoll_team_t team, const void* send, void* recv, uint64_t bytes) {
  return blocking(team, arguments_of(IBCOLL_ALLTOALL, send, recv, bytes));
}

ibcoll_status_t ibcoll_alltoallv(ibcoll_team_t team, const void* send, const uint64_t* send_counts,
                                 const uint64_t* send_displacements, void* recv, const uint64_t* recv_counts,
                                 const uint64_t* recv_displacements) {
  ibcoll_collective_args_t args = arguments_of(IBCOLL_ALLTOALLV, send, recv, 0);
  args.send_counts = send_counts;
  args.send_displacements = send_displacements;
  args.recv_counts = recv_counts;
  args.recv_displacements = recv_displacements;
  return blocking(team, args);
}

ibcoll_status_t ibcoll_allreduce(ibcoll_team_t team, const void* send, void* recv, uint64_t count, ibcoll_type_t type,
                                 ibcoll_op_t op) {
  return blocking(team, reduction_of(IBCOLL_ALLREDUCE, send, recv, count, type, op));
}

ibcoll_status_t ibcoll_gather(ibcoll_team_t team, const void* send, void* recv, uint64_t bytes, int root) {
  return rooted(team, arguments_of(IBCOLL_GATHER, send, recv, bytes), root);
}

ibcoll_status_t ibcoll_gatherv(ibcoll_team_t team, const void* send, uint64_t bytes, void* recv,
                               const uint64_t* recv_counts, const uint64_t* recv_displacements, int root) {
  ibcoll_collective_args_t args = arguments_of(IBCOLL_GATHERV, send, recv, bytes);
  args.recv_counts = recv_counts;
  args.recv_displacements = recv_displacements;
  return rooted(team, args, root);
}

ibcoll_status_t ibcoll_scatter(ibcoll_team_t team, const void* send, void* recv, uint64_t bytes, int root) {
  return rooted(team, arguments_of(IBCOLL_SCATTER, send, recv, bytes), root);
}

ibcoll_status_t ibcoll_scatterv(ibcoll_team_t team, const void* send, const uint64_t* send_counts,
                                const uint64_t* send_displacements, void* recv, uint64_t bytes, int root) {
  ibcoll_collective_args_t args = arguments_of(IBCOLL_SCATTERV, send, recv, bytes);
  args.send_counts = send_counts;
  args.send_displacements = send_displacements;
  return rooted(team, args, root);
}

ibcoll_status_t ibcoll_reduce(ibcoll_team_t team, const void* send, void* recv, uint64_t count, ibcoll_type_t type,
                              ibcoll_op_t op, int root) {
  return rooted(team, reduction_of(IBCOLL_REDUCE, send, recv, count, type, op), root);
}

ibcoll_status_t ibcoll_reduce_scatter(ibcoll_team_t team, const void* send, void* recv, const uint64_t* recv_counts,
                                      ibcoll_type_t type, ibcoll_op_t op) {
  ibcoll_collective_args_t args = reduction_of(IBCOLL_REDUCE_SCATTER, send, recv, 0, type, op);
  args.recv_counts = recv_counts;
  return blocking(team, args);
}

ibcoll_status_t ibcoll_reduce_scatter_block(ibcoll_team_t team, const void* send, void* recv, uint64_t count,
                                            ibcoll_type_t type, ibcoll_op_t op) {
  return blocking(team, reduction_of(IBCOLL_REDUCE_SCATTER_BLOCK, send, recv, count, type, op));
}

ibcoll_status_t ibcoll_scan(ibcoll_team_t team, const void* send, void* recv, uint64_t count, ibcoll_type_t type,
                            ibcoll_op_t op) {
  return blocking(team, reduction_of(IBCOLL_SCAN, send, recv, count, type, op));
}

ibcoll_status_t ibcoll_exscan(ibcoll_team_t team, const void* send, void* recv, uint64_t count, ibcoll_type_t type,
                              ibcoll_op_t op) {
  return blocking(team, reduction_of(IBCOLL_EXSCAN, send, recv, count, type, op));
}

}  // extern "C"
