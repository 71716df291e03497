// SPDX-License-Identifier: BSD-3-Clause
// The C interface: version, errors, contexts, memory, teams, operations. Argument checks, the context's lock, and
// statuses with their texts. No logic.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "runtime/api/handles.h"
#include "runtime/api/taken.h"
#include "runtime/context/shrink.h"
#include "runtime/context/signal_report.h"
#include "runtime/context/split.h"
#include "runtime/machine/descriptors.h"
#include "runtime/machine/user_memory.h"

using namespace ibcoll;
using namespace ibcoll::api;

namespace ibcoll::api {

// Cut where it is longer. An array, as it has no destructor.
static thread_local char last_error[4096];

ibcoll_status_t report(const Status& status) noexcept {
  if (!status.ok()) hand_out(status.text(), last_error, sizeof last_error);
  return status.code();
}

ibcoll_status_t refuse_closed() {
  if (!ForkWatch::in_child())
    return refuse(IBCOLL_ERR_UNSUPPORTED,
                  "this process is ending, and has ended UCX: destroy contexts before main() returns, in a function of "
                  "atexit(), or in a destructor of a library that was loaded before the first context was created");
  return refuse(
      IBCOLL_ERR_UNSUPPORTED,
      "process {} was forked by one that uses ibcoll, and has no part in the job: let only the parent call, fork "
      "before ibcoll_context_create, or start another program (exec)",
      ::getpid());
}

ibcoll_status_t refuse_in_operation() {
  return refuse(IBCOLL_ERR_UNSUPPORTED,
                "a call inside an operation of the program (ibcoll_op_create), which runs with ibcoll's lock held; let "
                "the operation only combine its operands, and call ibcoll when the collective is complete");
}

size_t hand_out(const std::string& from, char* text, size_t bytes) {
  if (text && bytes > 0) {
    const size_t copied = std::min(from.size(), bytes - 1);
    std::memcpy(text, from.data(), copied);
    text[copied] = '\0';
  }
  return from.size();
}

}  // namespace ibcoll::api

extern "C" {

const char* ibcoll_version_string(void) {
  static const auto& version =
      *new std::string(fmt::format("{}.{}.{}", IBCOLL_VERSION_MAJOR, IBCOLL_VERSION_MINOR, IBCOLL_VERSION_PATCH));
  return version.c_str();
}

const char* ibcoll_status_string(ibcoll_status_t status) {
  switch (status) {
    case IBCOLL_OK:
      return "ok";
    case IBCOLL_IN_PROGRESS:
      return "in progress";
    case IBCOLL_ERR_INVALID_ARGUMENT:
      return "invalid argument";
    case IBCOLL_ERR_NO_MEMORY:
      return "out of memory";
    case IBCOLL_ERR_UNSUPPORTED:
      return "not supported here";
    case IBCOLL_ERR_NOT_APPLICABLE:
      return "the algorithm does not apply";
    case IBCOLL_ERR_MISMATCH:
      return "the ranks' calls do not fit together";
    case IBCOLL_ERR_PEER_FAILED:
      return "a rank failed";
    case IBCOLL_ERR_TIMEOUT:
      return "timed out";
    case IBCOLL_ERR_TRANSPORT:
      return "transport failure";
    case IBCOLL_ERR_BOOTSTRAP:
      return "the ranks could not find each other";
    case IBCOLL_ERR_CONFIG:
      return "malformed setting";
    case IBCOLL_ERR_SYSTEM:
      return "a system call failed";
    case IBCOLL_ERR_BUSY:
      return "in use";
    case IBCOLL_ERR_INTERNAL:
      return "internal fault of ibcoll";
    case IBCOLL_ERR_BUFFERS_HELD:
      return "failed, and the buffers are still in use";
    case IBCOLL_ERR_REVOKED:
      return "a rank revoked the team";
  }
  return "unknown status";
}

const char* ibcoll_last_error(void) { return last_error; }

// ---------------------------------------------------------------- context

ibcoll_status_t ibcoll_context_create(const ibcoll_context_params_t* params, ibcoll_context_t* context) {
  return guarded([&] {
    if (!context) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_context_create: context is NULL");
    *context = nullptr;
    ibcoll_context_params_t known{};
    ibcoll_bootstrap_t callbacks{};
    if (params) {
      const auto all = taken(*params, sizeof(ibcoll_context_params_t), "ibcoll_context_params_t");
      if (!all.ok()) return report(all.status());
      known = all.value();
    }
    if (known.bootstrap) {
      constexpr size_t kFirst = offsetof(ibcoll_bootstrap_t, user) + sizeof callbacks.user;  // the first version ends
      const auto all = taken(*known.bootstrap, kFirst, "ibcoll_bootstrap_t");
      if (!all.ok()) return report(all.status());
      callbacks = all.value();
    }
    const HighDescriptors high;
    auto handle = try_twice([] { return std::make_unique<ibcoll_context>(); });
    Result<std::unique_ptr<Context>> made = Context::create(known.bootstrap ? &callbacks : nullptr);
    if (!made.ok()) return report(made.status());
    handle->context = std::move(*made);
    *context = handle.release();
    if (!(*context)->context->in_host()) report_on_signal(&(*context)->context->progress());
    return IBCOLL_OK;
  });
}

ibcoll_status_t ibcoll_context_destroy(ibcoll_context_t context) {
  return guarded([&] {
    if (!context) return IBCOLL_OK;
    Context& c = *context->context;
    Guard guard = c.enter();
    if (c.teams().count() > 0)
      return refuse(IBCOLL_ERR_BUSY, "ibcoll_context_destroy: {} teams exist; free them first", c.teams().count());
    if (Status status = c.world().may_end("ibcoll_context_destroy"); !status.ok()) return report(status);
    const HighDescriptors high;
    const Status left = c.leave(guard);
    report_on_signal_no_more(&c.progress());
    guard.unlock();
    delete context;
    return report(left);
  });
}

int ibcoll_context_rank(ibcoll_context_t context) { return context ? context->context->rank() : -1; }
int ibcoll_context_size(ibcoll_context_t context) { return context ? context->context->size() : 0; }

ibcoll_status_t ibcoll_progress(ibcoll_context_t context) {
  return guarded([&] {
    if (!context) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_progress: context is NULL");
    const Guard guard = context->context->enter();
    context->context->progress().pass();
    return IBCOLL_OK;
  });
}

ibcoll_status_t ibcoll_progress_events(ibcoll_context_t context, uint64_t* events) {
  return guarded<InOperation::kHarmless>([&] {
    if (!context || !events)
      return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_progress_events: context or events is NULL");
    *events = 0;
    const Guard guard = context->context->lock().try_enter();
    if (guard.owns_lock()) *events = context->context->progress().pass();
    return IBCOLL_OK;
  });
}

size_t ibcoll_context_describe(ibcoll_context_t context, char* text, size_t bytes) {
  if (!context || closed() || UserOperation::runs()) return hand_out("", text, bytes);
  const Guard guard = context->context->enter();
  return hand_out(text_or("out of memory", [&] { return context->context->progress().engine().describe(); }), text,
                  bytes);
}

void* ibcoll_mem_alloc(ibcoll_context_t context, size_t bytes) {
  void* memory = nullptr;
  (void)guarded<InOperation::kHarmless>([&] {
    if (!context) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_mem_alloc: context is NULL");
    if (bytes == 0)
      return refuse(IBCOLL_ERR_INVALID_ARGUMENT,
                    "ibcoll_mem_alloc: 0 bytes; ask for one or more; a buffer of nothing may be NULL");
    const Result<void*> allocated = allocate_memory(bytes);
    if (allocated.ok()) memory = allocated.value();
    return report(allocated.status());
  });
  return memory;
}

ibcoll_status_t ibcoll_mem_free(ibcoll_context_t context, void* memory) {
  return guarded<InOperation::kHarmless>([&] {
    if (!context) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_mem_free: context is NULL");
    return report(free_memory(memory));
  });
}

// ---------------------------------------------------------------- teams

ibcoll_team_t ibcoll_team_world(ibcoll_context_t context) {
  return context ? opaque(&context->context->world()) : nullptr;
}

ibcoll_status_t ibcoll_team_create(ibcoll_team_t parent, const int* ranks, int count, ibcoll_team_t* team) {
  return guarded([&] {
    if (!parent || !team) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_team_create: parent or team is NULL");
    *team = nullptr;
    TeamHandle& from = *handle(parent);
    Guard guard = from.context->enter();
    Result<TeamHandle*> made = create_team(from, ranks, count, guard);
    if (!made.ok()) return report(made.status());
    *team = opaque(*made);
    return IBCOLL_OK;
  });
}

ibcoll_status_t ibcoll_team_create_by_members(ibcoll_context_t context, const ibcoll_members_t* members,
                                              ibcoll_team_t* team) {
  return guarded([&] {
    if (!context || !members || !team)
      return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_team_create_by_members: context, members or team is NULL");
    *team = nullptr;
    const auto all = taken(*members, sizeof(ibcoll_members_t), "ibcoll_members_t");
    if (!all.ok()) return report(all.status());
    Guard guard = context->context->enter();
    Result<TeamHandle*> made = create_team_of(*context->context, all.value(), guard);
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
    Guard guard = from.context->enter();
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
    const Guard guard = t.context->enter();
    if (&t == &t.context->world())
      return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_team_free: the world team belongs to its context");
    if (Status status = t.may_end("ibcoll_team_free"); !status.ok()) return report(status);
    t.context->teams().free(t);
    return IBCOLL_OK;
  });
}

ibcoll_status_t ibcoll_team_abort(ibcoll_team_t team, const char* why) {
  return guarded([&] {
    if (!team || !why) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_team_abort: team or why is NULL");
    TeamHandle& t = *handle(team);
    const Guard guard = t.context->enter();
    TeamHealth& health = t.team->health();
    const uint32_t next_op = t.team->calls().next();  // which others may have begun
    if (health.good()) health.fail(error(IBCOLL_ERR_MISMATCH, "rank {}: {}", t.team->rank(), why), next_op);
    t.context->progress().spread_failure(*t.team);
    return IBCOLL_OK;
  });
}

// Ascending `failed` into the caller's array.
static void hand_out_ranks(const std::vector<int>& failed, int* ranks, int* count) {
  std::copy_n(failed.begin(), std::min(failed.size(), static_cast<size_t>(*count)), ranks);
  *count = static_cast<int>(failed.size());
}

static Status check_room(const char* call, const int* ranks, const int* count) {
  if (count && *count >= 0 && (ranks || *count == 0)) return {};
  if (!count) return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: count is NULL", call);
  return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: room for {} ranks at {}", call, *count,
               static_cast<const void*>(ranks));
}

ibcoll_status_t ibcoll_team_failed_ranks(ibcoll_team_t team, int* ranks, int* count) {
  return guarded([&] {
    if (!team) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_team_failed_ranks: team is NULL");
    if (Status room = check_room("ibcoll_team_failed_ranks", ranks, count); !room.ok()) return report(room);
    TeamHandle& t = *handle(team);
    const Guard guard = t.context->enter();
    t.context->progress().take_reports();
    std::vector<int> failed;
    for (int peer = 0; peer < t.team->size(); ++peer)
      if (t.context->progress().knows_dead(*t.team, peer)) failed.push_back(peer);
    hand_out_ranks(failed, ranks, count);
    return IBCOLL_OK;
  });
}

// It names no call: those before it may wait for a rank that will never come.
ibcoll_status_t ibcoll_team_revoke(ibcoll_team_t team) {
  return guarded([&] {
    if (!team) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_team_revoke: team is NULL");
    TeamHandle& t = *handle(team);
    const Guard guard = t.context->enter();
    TeamHealth& health = t.team->health();
    if (health.good()) {
      health.fail(error(IBCOLL_ERR_REVOKED, "rank {} revoked the team", t.team->rank()));
      (void)health.failure().report();
    }
    t.context->progress().spread_failure(*t.team);
    return IBCOLL_OK;
  });
}

ibcoll_status_t ibcoll_team_agree(ibcoll_team_t team, uint64_t* flags, int* failed, int* count) {
  return guarded([&] {
    if (!team || !flags) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_team_agree: team or flags is NULL");
    if (Status room = check_room("ibcoll_team_agree", failed, count); !room.ok()) return report(room);
    TeamHandle& t = *handle(team);
    Guard guard = t.context->enter();
    const Result<Agreed> agreed = agree_on_failed(t, t.context->agreement(), *flags, guard);
    if (!agreed.ok()) return report(agreed.status());
    *flags = agreed->flags;
    hand_out_ranks(agreed->failed, failed, count);
    return IBCOLL_OK;
  });
}

ibcoll_status_t ibcoll_team_shrink(ibcoll_team_t team, ibcoll_team_t* shrunk) {
  return guarded([&] {
    if (!team || !shrunk) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_team_shrink: team or shrunk is NULL");
    *shrunk = nullptr;
    TeamHandle& from = *handle(team);
    Guard guard = from.context->enter();
    Context& context = *from.context;
    const auto make = [&](const std::vector<int>& jobs, int self, uint64_t epoch, const Teams::Gather& gather) {
      return context.teams().make_by_members(jobs, self, {}, epoch, gather);
    };
    Result<TeamHandle*> made = shrink_team(from, context.agreement(), make, guard);
    if (!made.ok()) return report(made.status());
    *shrunk = opaque(*made);
    return IBCOLL_OK;
  });
}

int ibcoll_team_last_ended(ibcoll_team_t team) {
  if (!team || closed()) return 0;
  TeamHandle& t = *handle(team);
  const Guard guard = t.context->enter();
  return static_cast<int>(t.team->health().last_ended());
}

int ibcoll_team_rank(ibcoll_team_t team) { return team ? handle(team)->team->rank() : -1; }
int ibcoll_team_size(ibcoll_team_t team) { return team ? handle(team)->team->size() : 0; }

// ---------------------------------------------------------------- operations

static ibcoll_op_t user_operation(ibcoll_reduce_fn function, ibcoll_element_reduce_fn element_function, void* user,
                                  int commutative) {
  return new ibcoll_op{"user-defined", commutative != 0, kUserDefined, function, user, element_function};
}

ibcoll_status_t ibcoll_op_create(ibcoll_reduce_fn function, void* user, int commutative, ibcoll_op_t* op) {
  return guarded<InOperation::kHarmless>([&] {
    if (!function || !op) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_op_create: function or op is NULL");
    *op = user_operation(function, nullptr, user, commutative);
    return IBCOLL_OK;
  });
}

ibcoll_status_t ibcoll_op_create_for_elements(ibcoll_element_reduce_fn function, void* user, int commutative,
                                              ibcoll_op_t* op) {
  return guarded<InOperation::kHarmless>([&] {
    if (!function || !op)
      return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_op_create_for_elements: function or op is NULL");
    *op = user_operation(nullptr, function, user, commutative);
    return IBCOLL_OK;
  });
}

ibcoll_status_t ibcoll_op_free(ibcoll_op_t op) {
  if (!op) return IBCOLL_OK;
  if (!op->user_defined()) return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_op_free: {} is predefined", op->name);
  if (const int requests = op->requests.load(std::memory_order_acquire); requests > 0)
    return refuse(IBCOLL_ERR_BUSY, "ibcoll_op_free: {} requests use the operation; free them first", requests);
  delete op;
  return IBCOLL_OK;
}

}  // extern "C"
