// SPDX-License-Identifier: BSD-3-Clause
// The C interface: argument checks, the context's lock, and statuses with their texts. No logic.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/arguments.h"
#include "runtime/collectives/registry.h"
#include "runtime/build_info.h"
#include "runtime/context.h"
#include "runtime/log.h"
#include "runtime/memory.h"
#include "runtime/signal_report.h"
#include "runtime/split.h"

using namespace ibcoll;

struct ibcoll_team : TeamHandle {};  // never made: a handle is a TeamHandle*
struct ibcoll_context {
  std::unique_ptr<Context> context;
};
struct ibcoll_request {
  Context* context;
  std::unique_ptr<Request> request;
};

namespace {

thread_local std::string last_error;

ibcoll_status_t report(const Status& status) {
  if (!status.ok()) last_error = status.text();
  return status.code();
}

template <typename... Values>
ibcoll_status_t refuse(ibcoll_status_t code, fmt::format_string<Values...> format, Values&&... values) {
  return report(error(code, format, std::forward<Values>(values)...));
}

// What comes out of C++ becomes a status: only memory can run out unforeseen.
template <typename Body>
ibcoll_status_t guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return refuse(IBCOLL_ERR_NO_MEMORY, "memory for the call's own data was refused");
  } catch (const std::exception& e) {
    return refuse(IBCOLL_ERR_INTERNAL, "ibcoll itself failed: {}", e.what());
  }
}

using Guard = std::unique_lock<std::mutex>;

TeamHandle* handle(ibcoll_team_t team) { return reinterpret_cast<TeamHandle*>(team); }
ibcoll_team_t opaque(TeamHandle* team) { return reinterpret_cast<ibcoll_team_t>(team); }

size_t hand_out(const std::string& from, char* text, size_t bytes) {
  if (text && bytes > 0) {
    const size_t copied = std::min(from.size(), bytes - 1);
    std::memcpy(text, from.data(), copied);
    text[copied] = '\0';
  }
  return from.size();
}

}  // namespace

extern "C" {

const char* ibcoll_version_string(void) {
  static const std::string version =
      fmt::format("{}.{}.{}", IBCOLL_VERSION_MAJOR, IBCOLL_VERSION_MINOR, IBCOLL_VERSION_PATCH);
  return version.c_str();
}

const char* ibcoll_status_string(ibcoll_status_t status) {
  switch (status) {
    case IBCOLL_OK: return "ok";
    case IBCOLL_IN_PROGRESS: return "in progress";
    case IBCOLL_ERR_INVALID_ARGUMENT: return "invalid argument";
    case IBCOLL_ERR_NO_MEMORY: return "out of memory";
    case IBCOLL_ERR_UNSUPPORTED: return "not supported here";
    case IBCOLL_ERR_NOT_APPLICABLE: return "the algorithm does not apply";
    case IBCOLL_ERR_MISMATCH: return "the ranks' calls do not fit together";
    case IBCOLL_ERR_PEER_FAILED: return "a rank failed";
    case IBCOLL_ERR_TIMEOUT: return "timed out";
    case IBCOLL_ERR_TRANSPORT: return "transport failure";
    case IBCOLL_ERR_BOOTSTRAP: return "the ranks could not find each other";
    case IBCOLL_ERR_CONFIG: return "malformed setting";
    case IBCOLL_ERR_SYSTEM: return "a system call failed";
    case IBCOLL_ERR_BUSY: return "in use";
    case IBCOLL_ERR_INTERNAL: return "internal fault of ibcoll";
  }
  return "unknown status";
}

const char* ibcoll_last_error(void) { return last_error.c_str(); }

// ---------------------------------------------------------------- context

ibcoll_status_t ibcoll_context_create(const ibcoll_context_params_t* params, ibcoll_context_t* context) {
  return guarded([&] {
    if (!context) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_context_create: context is NULL");
    *context = nullptr;
    if (params && params->struct_size < sizeof(ibcoll_context_params_t))
      return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_context_params_t.struct_size is {}: set it to sizeof, {} bytes",
                    params->struct_size, sizeof(ibcoll_context_params_t));
    Result<std::unique_ptr<Context>> made = Context::create(params ? params->bootstrap : nullptr);
    if (!made.ok()) return report(made.status());
    report_on_signal(made->get());
    *context = new ibcoll_context{std::move(*made)};
    return IBCOLL_OK;
  });
}

ibcoll_status_t ibcoll_context_destroy(ibcoll_context_t context) {
  return guarded([&] {
    if (!context) return IBCOLL_OK;
    Context& c = *context->context;
    Guard guard(c.lock());
    if (c.teams() > 0)
      return refuse(IBCOLL_ERR_BUSY, "ibcoll_context_destroy: {} teams exist; free them first", c.teams());
    if (c.world().team->requests() > c.world().shorthand_requests())
      return refuse(IBCOLL_ERR_BUSY, "ibcoll_context_destroy: {} requests exist; free them first",
                    c.world().team->requests() - c.world().shorthand_requests());
    report_on_signal_no_more(&c);
    const Status left = c.leave(guard);
    guard.unlock();
    delete context;
    return report(left);
  });
}

int ibcoll_context_rank(ibcoll_context_t context) { return context ? context->context->rank() : -1; }
int ibcoll_context_size(ibcoll_context_t context) { return context ? context->context->size() : 0; }

ibcoll_status_t ibcoll_progress(ibcoll_context_t context) {
  if (!context) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_progress: context is NULL");
  const Guard guard(context->context->lock());
  context->context->progress();
  return IBCOLL_OK;
}

size_t ibcoll_context_describe(ibcoll_context_t context, char* text, size_t bytes) {
  if (!context) return hand_out("", text, bytes);
  const Guard guard(context->context->lock());
  return hand_out(context->context->describe(), text, bytes);
}

void* ibcoll_mem_alloc(ibcoll_context_t context, size_t bytes) {
  if (!context) {
    (void)refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_mem_alloc: context is NULL");
    return nullptr;
  }
  if (bytes == 0) return nullptr;
  Result<void*> memory = allocate_memory(bytes);
  if (!memory.ok()) {
    (void)report(memory.status());
    return nullptr;
  }
  return *memory;
}

ibcoll_status_t ibcoll_mem_free(ibcoll_context_t context, void* memory) {
  if (!context) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_mem_free: context is NULL");
  return report(free_memory(memory));
}

// ---------------------------------------------------------------- teams

ibcoll_team_t ibcoll_team_world(ibcoll_context_t context) {
  return context ? opaque(&context->context->world()) : nullptr;
}

ibcoll_status_t ibcoll_team_create(ibcoll_team_t parent, const int* ranks, int count, ibcoll_team_t* team) {
  return guarded([&] {
    if (!parent || !team || (count > 0 && !ranks))
      return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_team_create: parent, ranks or team is NULL");
    *team = nullptr;
    TeamHandle& from = *handle(parent);
    Guard guard(from.context->lock());
    Result<std::vector<int>> members = check_ranks(ranks, count, from.team->size());
    if (!members.ok()) return report(members.status());
    Result<TeamHandle*> made = create_team(from, *members, guard);
    if (!made.ok()) return report(made.status());
    *team = opaque(*made);
    return IBCOLL_OK;
  });
}

ibcoll_status_t ibcoll_team_split(ibcoll_team_t parent, int color, int key, ibcoll_team_t* team) {
  return guarded([&] {
    if (!parent || !team) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_team_split: parent or team is NULL");
    *team = nullptr;
    TeamHandle& from = *handle(parent);
    Guard guard(from.context->lock());
    Result<TeamHandle*> made = split_team(from, color, key, guard);
    if (!made.ok()) return report(made.status());
    *team = opaque(*made);
    return IBCOLL_OK;
  });
}

ibcoll_status_t ibcoll_team_free(ibcoll_team_t team) {
  return guarded([&] {
    if (!team) return IBCOLL_OK;
    TeamHandle& t = *handle(team);
    const Guard guard(t.context->lock());
    if (&t == &t.context->world())
      return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_team_free: the world team belongs to its context");
    const int requests = t.team->requests() - t.shorthand_requests();
    if (requests > 0) return refuse(IBCOLL_ERR_BUSY, "ibcoll_team_free: {} requests of the team exist; free them first", requests);
    t.context->free_team(t);
    return IBCOLL_OK;
  });
}

int ibcoll_team_rank(ibcoll_team_t team) { return team ? handle(team)->team->rank() : -1; }
int ibcoll_team_size(ibcoll_team_t team) { return team ? handle(team)->team->size() : 0; }

// ---------------------------------------------------------------- operations

ibcoll_status_t ibcoll_op_create(ibcoll_reduce_fn function, void* user, int commutative, ibcoll_op_t* op) {
  return guarded([&] {
    if (!function || !op) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_op_create: function or op is NULL");
    *op = new ibcoll_op{"user-defined", commutative != 0, -1, function, user};
    return IBCOLL_OK;
  });
}

ibcoll_status_t ibcoll_op_free(ibcoll_op_t op) {
  if (op && op->index >= 0) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_op_free: {} is predefined", op->name);
  delete op;
  return IBCOLL_OK;
}

// ---------------------------------------------------------------- requests

ibcoll_status_t ibcoll_collective_init(ibcoll_team_t team, const ibcoll_collective_args_t* args,
                                       ibcoll_request_t* request) {
  return guarded([&] {
    if (!team || !args || !request)
      return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_collective_init: team, args or request is NULL");
    *request = nullptr;
    if (args->struct_size < sizeof(ibcoll_collective_args_t))
      return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_collective_args_t.struct_size is {}: set it to sizeof, {} bytes",
                    args->struct_size, sizeof(ibcoll_collective_args_t));
    TeamHandle& t = *handle(team);
    const Guard guard(t.context->lock());
    if (!t.team->failure().ok()) return report(t.team->failure());
    Result<Args> checked = check_arguments(*args, t.team->rank(), t.team->size());
    if (!checked.ok()) return report(checked.status());
    Result<std::unique_ptr<Request>> made = t.context->make_request(t, *checked, args->algorithm, args->scheme);
    if (!made.ok()) return report(made.status());
    *request = new ibcoll_request{t.context, std::move(*made)};
    return IBCOLL_OK;
  });
}

ibcoll_status_t ibcoll_start(ibcoll_request_t request) {
  return guarded([&] {
    if (!request) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_start: request is NULL");
    const Guard guard(request->context->lock());
    return report(request->request->start());
  });
}

ibcoll_status_t ibcoll_test(ibcoll_request_t request) {
  return guarded([&] {
    if (!request) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_test: request is NULL");
    const Guard guard(request->context->lock());
    if (request->request->in_flight()) request->context->progress();
    return request->request->in_flight() ? IBCOLL_IN_PROGRESS : report(request->request->status());
  });
}

ibcoll_status_t ibcoll_wait(ibcoll_request_t request) { return ibcoll_wait_timeout(request, INFINITY); }

ibcoll_status_t ibcoll_wait_timeout(ibcoll_request_t request, double seconds) {
  return guarded([&] {
    if (!request) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_wait: request is NULL");
    if (std::isnan(seconds)) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_wait_timeout: seconds is not a number");
    Guard guard(request->context->lock());
    return report(request->context->wait(*request->request, seconds, guard));
  });
}

ibcoll_status_t ibcoll_request_free(ibcoll_request_t request) {
  return guarded([&] {
    if (!request) return IBCOLL_OK;
    const Guard guard(request->context->lock());
    if (request->request->in_flight())
      return refuse(IBCOLL_ERR_BUSY, "ibcoll_request_free: {} is in flight; wait for it first", request->request->call());
    delete request;
    return IBCOLL_OK;
  });
}

const char* ibcoll_request_algorithm(ibcoll_request_t request) {
  return request ? request->request->algorithm().name : "";
}

// ---------------------------------------------------------------- blocking shorthands

static ibcoll_status_t blocking(ibcoll_team_t team, const ibcoll_collective_args_t& args) {
  return guarded([&] {
    if (!team) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "{}: team is NULL", ibcoll_collective_name(args.collective));
    TeamHandle& t = *handle(team);
    Guard guard(t.context->lock());
    return report(t.context->run_blocking(t, args, guard));
  });
}

static ibcoll_collective_args_t args_of(ibcoll_collective_t collective, const void* send, void* recv, uint64_t bytes) {
  ibcoll_collective_args_t args{};
  args.struct_size = sizeof args;
  args.collective = collective;
  args.send = send;
  args.recv = recv;
  args.bytes = bytes;
  return args;
}

ibcoll_status_t ibcoll_barrier(ibcoll_team_t team) {
  return blocking(team, args_of(IBCOLL_BARRIER, nullptr, nullptr, 0));
}

ibcoll_status_t ibcoll_bcast(ibcoll_team_t team, void* buffer, uint64_t bytes, int root) {
  ibcoll_collective_args_t args = args_of(IBCOLL_BCAST, nullptr, buffer, bytes);
  args.root = root;
  return blocking(team, args);
}

ibcoll_status_t ibcoll_allgather(ibcoll_team_t team, const void* send, void* recv, uint64_t bytes) {
  return blocking(team, args_of(IBCOLL_ALLGATHER, send, recv, bytes));
}

ibcoll_status_t ibcoll_allgatherv(ibcoll_team_t team, const void* send, void* recv, const uint64_t* recv_counts,
                                  const uint64_t* recv_displacements) {
  ibcoll_collective_args_t args = args_of(IBCOLL_ALLGATHERV, send, recv, 0);
  args.recv_counts = recv_counts;
  args.recv_displacements = recv_displacements;
  return blocking(team, args);
}

ibcoll_status_t ibcoll_alltoall(ibcoll_team_t team, const void* send, void* recv, uint64_t bytes) {
  return blocking(team, args_of(IBCOLL_ALLTOALL, send, recv, bytes));
}

ibcoll_status_t ibcoll_alltoallv(ibcoll_team_t team, const void* send, const uint64_t* send_counts,
                                 const uint64_t* send_displacements, void* recv, const uint64_t* recv_counts,
                                 const uint64_t* recv_displacements) {
  ibcoll_collective_args_t args = args_of(IBCOLL_ALLTOALLV, send, recv, 0);
  args.send_counts = send_counts;
  args.send_displacements = send_displacements;
  args.recv_counts = recv_counts;
  args.recv_displacements = recv_displacements;
  return blocking(team, args);
}

ibcoll_status_t ibcoll_allreduce(ibcoll_team_t team, const void* send, void* recv, uint64_t count, ibcoll_type_t type,
                                 ibcoll_op_t op) {
  ibcoll_collective_args_t args = args_of(IBCOLL_ALLREDUCE, send, recv, 0);
  args.count = count;
  args.type = type;
  args.op = op;
  return blocking(team, args);
}

// ---------------------------------------------------------------- what there is

const char* ibcoll_collective_name(ibcoll_collective_t collective) {
  static constexpr const char* kNames[] = {"barrier",  "bcast",     "allgather", "allgatherv",
                                           "alltoall", "alltoallv", "allreduce"};
  return collective >= 0 && collective < IBCOLL_COLLECTIVE_COUNT ? kNames[collective] : nullptr;
}

const char* ibcoll_algorithm_name(ibcoll_collective_t collective, int index) {
  for (const Algorithm* const a : algorithms())
    if (a->collective == collective && index-- == 0) return a->name;
  return nullptr;
}

const char* ibcoll_algorithm_about(ibcoll_collective_t collective, const char* algorithm) {
  const Algorithm* const a = algorithm ? find_algorithm(collective, algorithm) : nullptr;
  return a ? a->about : nullptr;
}

ibcoll_status_t ibcoll_explain(ibcoll_team_t team, const ibcoll_collective_args_t* args, char* text, size_t bytes) {
  return guarded([&] {
    if (!team || !args || !text) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_explain: team, args or text is NULL");
    if (!ibcoll_collective_name(args->collective))
      return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_explain: collective is {}", static_cast<int>(args->collective));
    TeamHandle& t = *handle(team);
    const Guard guard(t.context->lock());
    hand_out(t.context->explain(t, *args), text, bytes);
    return IBCOLL_OK;
  });
}

size_t ibcoll_info_json(ibcoll_context_t context, char* text, size_t bytes) {
  if (context) {
    const Guard guard(context->context->lock());
    return hand_out(context->context->info_json(), text, bytes);
  }
  const Result<Config> config = Config::load();
  nlohmann::json state = {{"build", build_json()}};
  if (config.ok())
    state["settings"] = settings_json(config.value());
  else
    state["error"] = config.status().text();
  return hand_out(state.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), text, bytes);
}

}  // extern "C"
