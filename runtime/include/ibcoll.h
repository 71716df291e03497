/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ibcoll: collectives over RDMA Write, shared memory and UCX. The public C interface.
 *
 * Life of a program:
 *   ibcoll_context_create   once per process; exchanges addresses with the other ranks of the job
 *   ibcoll_team_*           groups of ranks (MPI: communicators); ibcoll_team_world is the whole job
 *   ibcoll_collective_init  checks the arguments, selects algorithms -> a persistent request
 *   ibcoll_start/test/wait  any number of times, with the buffers and counts given at init
 *   ibcoll_request_free
 * Calls that run once: ibcoll_alltoall, ... and ibcoll_collective_run block; ibcoll_collective_start returns a request
 * that ends with its wait.
 *
 * Conventions
 *   - `bytes`, *_counts and *_displacements are in bytes, in reductions too. `count` is in elements of `type`.
 *   - Cost. A "collective" function waits for other ranks. A "local" one does not, and sends at most what fits into the
 *     queues; it takes the context's lock. Once a shape (collective, sizes, root, type) has been called, starting,
 *     testing and waiting allocate nothing, as do blocking calls. Functions without a word about cost take constant
 *     time.
 *   - All ranks of a team call collectives on it in the same order, as in MPI (MPI 4.0, section 6.1). Persistent
 *     requests are *started* in the same order. Several may be in flight at a time.
 *   - Every function that can fail returns an ibcoll_status_t. ibcoll_last_error() says which rank failed, where, why,
 *     and what to try.
 *   - A call with wrong arguments changes nothing.
 *   - A collective that fails after its start fails on every living rank of the team. A rank that had finished its own
 *     part gets the error from its next call on the team. The team then accepts no further collective: free it.
 *   - Where memory runs out, a call returns NO_MEMORY. A collective that has no memory to start on a rank has failed,
 *     as above. One that makes a context or a team returns NO_MEMORY on all ranks. (If there is no memory for the very
 *     exchange that tells the others, ibcoll_context_create and ibcoll_team_create_by_members return it on this rank
 *     alone.)
 *   - Structs carry their size, so that they can grow at their end. Set struct_size to sizeof. A shorter struct, from
 *     an older header, is read as if zeros followed. A longer one is accepted while the fields that this version does
 *     not know are zero.
 *   - Any thread with 64 KB of stack may call any function. Each context has one lock, so calls on one context run one
 *     at a time. No function may be called in a signal handler.
 *   - A child process made by fork() while a context exists is not part of the job: every call returns UNSUPPORTED
 *     there.
 */
#ifndef IBCOLL_H
#define IBCOLL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define IBCOLL_EXPORT __attribute__((visibility("default")))
#else
#define IBCOLL_EXPORT
#endif

#define IBCOLL_VERSION_MAJOR 0
#define IBCOLL_VERSION_MINOR 2
#define IBCOLL_VERSION_PATCH 0

typedef enum ibcoll_status {
  IBCOLL_OK = 0,
  IBCOLL_IN_PROGRESS = 1,           /* ibcoll_test: not complete yet */
  IBCOLL_ERR_INVALID_ARGUMENT = -1, /* an argument is wrong; nothing was done */
  IBCOLL_ERR_NO_MEMORY = -2,        /* an allocation was refused */
  IBCOLL_ERR_UNSUPPORTED = -3,      /* not possible on this machine or in this build */
  IBCOLL_ERR_NOT_APPLICABLE = -4,   /* the forced algorithm does not apply to this call */
  IBCOLL_ERR_MISMATCH = -5,         /* the ranks' arguments do not match */
  IBCOLL_ERR_PEER_FAILED = -6,      /* a rank died or cannot be reached */
  IBCOLL_ERR_TIMEOUT = -7,          /* a deadline passed */
  IBCOLL_ERR_TRANSPORT = -8,        /* a transport failed on this rank */
  IBCOLL_ERR_BOOTSTRAP = -9,        /* the ranks of the job did not find each other */
  IBCOLL_ERR_CONFIG = -10,          /* a setting has a malformed value */
  IBCOLL_ERR_SYSTEM = -11,          /* a system call failed */
  IBCOLL_ERR_BUSY = -12,            /* the object is in use: a request in flight, a team with requests */
  IBCOLL_ERR_INTERNAL = -13,        /* a fault of ibcoll itself */
  IBCOLL_ERR_BUFFERS_HELD = -14,    /* the collective failed; its buffers are still in use (see ibcoll_wait) */
  IBCOLL_ERR_REVOKED = -15          /* a rank has ended the team by ibcoll_team_revoke */
} ibcoll_status_t;

typedef struct ibcoll_context* ibcoll_context_t;
typedef struct ibcoll_team* ibcoll_team_t;
typedef struct ibcoll_request* ibcoll_request_t;
typedef struct ibcoll_op* ibcoll_op_t;

/* Passed as send buffer: the input is already in the receive buffer (MPI_IN_PLACE). The input is
 *   allgather(v)            this rank's own block
 *   gather(v)               at the root: its own block
 *   alltoall(v)             all p blocks; the result replaces them. For alltoallv, recv_counts and recv_displacements
 *                           describe both the block sent to rank i and the block received from it.
 *   allreduce, scan, exscan; reduce at the root
 *                           the operand; the result replaces it
 *   reduce_scatter(_block)  the p blocks of the operand; this rank's result replaces the first bytes
 * Passed as receive buffer, at the root of scatter(v): the root's own block stays in the send buffer. */
#ifdef __cplusplus
#define IBCOLL_IN_PLACE (reinterpret_cast<void*>(static_cast<intptr_t>(-1)))
#else
#define IBCOLL_IN_PLACE ((void*)(intptr_t)-1)
#endif

/* ---------------------------------------------------------------- version and errors */

/* "MAJOR.MINOR.PATCH" */
IBCOLL_EXPORT const char* ibcoll_version_string(void);
/* A short constant text for a status; never NULL. */
IBCOLL_EXPORT const char* ibcoll_status_string(ibcoll_status_t status);
/* Describes the last error that a call of this thread returned: rank, peer, device, what to try.
 * Valid until the next call of this thread that fails; 4095 bytes at most. "" when none has failed. */
IBCOLL_EXPORT const char* ibcoll_last_error(void);

/* ---------------------------------------------------------------- context */

/* Lets the host program connect the ranks by its own means. `allgather` gathers `bytes` bytes from each rank into
 * `recv` (size x bytes, rank order), blocks until done, and returns 0 on success. Any other result becomes BOOTSTRAP.
 * All ranks call it in the same order, during ibcoll_context_create and ibcoll_context_destroy only. ibcoll holds no
 * lock meanwhile. The struct is copied. What `user` points to must stay valid until the context is destroyed.
 *
 * `progress` that is not NULL switches on host mode, for a runtime such as an MPI that ibcoll serves from inside:
 *   - Every call that waits calls progress(user) again and again, without ibcoll's lock, on each thread that waits. The
 *     callback advances the host and may call ibcoll_progress. It does not block, does not throw, and returns how much
 *     it moved (0: nothing).
 *   - A collective has no deadline but IBCOLL_TIMEOUT where that is set, else `timeout_seconds`.
 *   - ibcoll leaves alone what belongs to the whole process: no handler for SIGUSR1, no log level of UCX, no functions
 *     of UCX or libc replaced. docs/guide.md ("Inside of a host") says which protection is lost with that. */
typedef struct ibcoll_bootstrap {
  size_t struct_size; /* sizeof(ibcoll_bootstrap_t) */
  int rank;
  int size;
  int (*allgather)(void* user, const void* send, void* recv, size_t bytes);
  void* user;
  int (*progress)(void* user);
  double timeout_seconds; /* host mode: of a collective, where IBCOLL_TIMEOUT is not set; 0: none */
} ibcoll_bootstrap_t;

typedef struct ibcoll_context_params {
  size_t struct_size;                  /* sizeof(ibcoll_context_params_t) */
  const ibcoll_bootstrap_t* bootstrap; /* NULL: ibcoll_run, PMI or PMIx if present, else a single process */
} ibcoll_context_params_t;

/* Collective over all ranks of the job. `params` may be NULL. Settings come from IBCOLL_* variables and the
 * configuration file (ibcoll_info -c lists them). Except in host mode, the first context of a process installs a
 * handler for SIGUSR1, if that signal has its default action: it prints what the collectives in flight wait for.
 * Cost: a few exchanges of some hundred bytes per rank, and about 5 ms to time the links. Most connections between
 * nodes are made when they are first used.
 * Errors: INVALID_ARGUMENT (params), CONFIG (names the variable, its value and what is allowed), BOOTSTRAP, UNSUPPORTED
 * (this machine or build lacks the network), TRANSPORT, PEER_FAILED, NO_MEMORY, SYSTEM, TIMEOUT. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_context_create(const ibcoll_context_params_t* params, ibcoll_context_t* context);
/* Collective, three barriers; under ibcoll_run --keep-going it waits for the ranks that live, and a death is no error.
 * BUSY while requests, or teams other than the world, exist: the context then stays as it was. After any other result,
 * errors included, the context no longer exists and the handle is invalid. NULL is allowed. A function of atexit() may
 * call it, and the destructor of a library that was loaded before the first context was created. In destructors of
 * libraries that were loaded later, calls may be UNSUPPORTED: UCX has ended before. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_context_destroy(ibcoll_context_t context);
IBCOLL_EXPORT int ibcoll_context_rank(ibcoll_context_t context);
IBCOLL_EXPORT int ibcoll_context_size(ibcoll_context_t context);
/* Local: advances all collectives in flight without blocking. Cost: one look at each transport. For host programs with
 * their own progress loop; ibcoll_test and ibcoll_wait call it too. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_progress(ibcoll_context_t context);
/* The same for the progress loop of a host: `events` becomes the number of events that were handled. It never waits for
 * the lock: when another thread has it, that one advances the collectives, and `events` is 0. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_progress_events(ibcoll_context_t context, uint64_t* events);
/* Local; allocates. Writes one line for each collective in flight, which says what it waits for. At most `bytes` bytes
 * go to `text`, with the terminating zero. Returns the length of the whole text, as snprintf does. */
IBCOLL_EXPORT size_t ibcoll_context_describe(ibcoll_context_t context, char* text, size_t bytes);

/* Local; system calls. Allocates memory that suits every transport: page aligned, on huge pages where there are any.
 * NULL when `bytes` is 0 or there is no memory (see ibcoll_last_error). The caller owns it and frees it by
 * ibcoll_mem_free, with any context of the process, before the last context is destroyed. */
IBCOLL_EXPORT void* ibcoll_mem_alloc(ibcoll_context_t context, size_t bytes);
/* Local; system calls. INVALID_ARGUMENT: `memory` did not come from ibcoll_mem_alloc, or is already freed. NULL is
 * allowed. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_mem_free(ibcoll_context_t context, void* memory);

/* ---------------------------------------------------------------- teams */

/* All ranks of the job. The context owns it: do not free it. */
IBCOLL_EXPORT ibcoll_team_t ibcoll_team_world(ibcoll_context_t context);
/* Collective over `parent`, one allgather of some 50 bytes per rank; memory grows with the ranks of the team. ranks[i],
 * a rank of parent, becomes rank i of the team. All ranks of parent pass the same list, without duplicates. A rank that
 * is not in it gets *team = NULL.
 * Errors: an invalid list is INVALID_ARGUMENT on the rank that passes it and MISMATCH on all others. Lists that differ
 * are MISMATCH on all ranks. NO_MEMORY, also of the node's shared memory; and the errors of a collective on parent.
 * When `parent` or `team` is NULL this rank alone returns INVALID_ARGUMENT, and the others wait for it. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_team_create(ibcoll_team_t parent, const int* ranks, int count,
                                                 ibcoll_team_t* team);
/* Collective over `parent`, two allgathers: one team per color, its ranks ordered by key, then by rank in parent. A
 * rank with a negative color joins no team (*team = NULL). Errors as above. Source: MPI_Comm_split. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_team_split(ibcoll_team_t parent, int color, int key, ibcoll_team_t* team);
/* How the members alone make a team, whatever other ranks do (MPI_Comm_create_group). ranks[i], a rank of the job,
 * becomes rank i of the team. `id` is the same on all members, and differs from the id of every other team that any of
 * them has been in, freed ones included. `allgather` works as that of ibcoll_bootstrap_t, among the members, in the
 * order of `ranks`; it is called once, during ibcoll_team_create_by_members only, without ibcoll's lock. */
typedef struct ibcoll_members {
  size_t struct_size; /* sizeof(ibcoll_members_t) */
  const int* ranks;
  int count;
  uint64_t id;
  int (*allgather)(void* user, const void* send, void* recv, size_t bytes);
  void* user;
} ibcoll_members_t;

/* Collective over the members. Errors: those of ibcoll_team_create, and BOOTSTRAP when the allgather fails. Where this
 * rank is not in the list it alone returns INVALID_ARGUMENT. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_team_create_by_members(ibcoll_context_t context, const ibcoll_members_t* members,
                                                            ibcoll_team_t* team);
/* Local. BUSY while requests of the team exist; INVALID_ARGUMENT for the world. NULL is allowed. A rank that has
 * finished may never learn that the last collective mismatched. Call a barrier before freeing the team. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_team_free(ibcoll_team_t team);
/* Local. For a host that refuses the arguments of this rank's next call, which the other ranks may make: ends what is
 * in flight on the team, on all its ranks, with MISMATCH and `why`. The team accepts no call any more. INVALID_ARGUMENT
 * when team or why is NULL. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_team_abort(ibcoll_team_t team, const char* why);
/* Local. After a call on the team has ended with MISMATCH, what this rank knows of the last one that did:
 * 0: it may be the call that did not match; 1: an earlier one did not, and this one had begun: what it writes to may
 * have been overwritten; 2: the same, and this one was not begun. */
IBCOLL_EXPORT int ibcoll_team_last_ended(ibcoll_team_t team);
/* ---- after a failure (docs/survivors.md). A death ends every team with the dead rank in it, and no other team. */

/* Local: the ranks of `team` that this rank knows to have died, or to have left the job, ascending. `*count` is the
 * room in `ranks`, and becomes the number of these ranks; where that is more, the first ones are written. `ranks` may
 * be NULL where there is no room. After PEER_FAILED it names one rank or more, as a rule; another rank may know others
 * (ibcoll_team_agree). Errors: INVALID_ARGUMENT. Source: MPI_Comm_get_failed, as the MPI Forum has voted it. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_team_failed_ranks(ibcoll_team_t team, int* ranks, int* count);
/* Local. Ends what is in flight on the team, on all its living ranks, and its later calls, with REVOKED, as soon as a
 * death would: for a rank that has seen an error which others have not, and will not make the calls that they wait in.
 * Does nothing if the team has failed. Errors: INVALID_ARGUMENT. Source: MPI_Comm_revoke, likewise. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_team_revoke(ibcoll_team_t team);
/* Collective over the living ranks of the team, whatever its state: ibcoll_run decides. `*flags` becomes the AND of the
 * flags of all ranks that are not in `failed`, which has room for `*count` ranks and gets the dead ones, as in
 * ibcoll_team_failed_ranks. All ranks that return OK get the same. A rank that another one, which waits here, cannot
 * reach any more is killed: no rank that is listed runs. Cost: one message to ibcoll_run and one back.
 * Errors: INVALID_ARGUMENT. UNSUPPORTED: ibcoll_run has not started the ranks (a team of one rank needs none). BUSY:
 * requests of the team are in flight that have not failed, or another thread is in such a call on this context.
 * TIMEOUT, on all ranks: one has waited for IBCOLL_TIMEOUT. MISMATCH, on all ranks: they call different functions, or
 * wait for each other in such calls on different teams. BOOTSTRAP: ibcoll_run has ended.
 * Source: MPIX_Comm_agree (ULFM). */
IBCOLL_EXPORT ibcoll_status_t ibcoll_team_agree(ibcoll_team_t team, uint64_t* flags, int* failed, int* count);
/* Collective over the living ranks of the team, whatever its state: a team of them, in the same order. `team` stays as
 * it is; free both. A rank that dies meanwhile is left out, or the new team fails for it. Errors: those of
 * ibcoll_team_agree, and NO_MEMORY, on all ranks. Source: MPIX_Comm_shrink (ULFM). */
IBCOLL_EXPORT ibcoll_status_t ibcoll_team_shrink(ibcoll_team_t team, ibcoll_team_t* shrunk);
IBCOLL_EXPORT int ibcoll_team_rank(ibcoll_team_t team);
IBCOLL_EXPORT int ibcoll_team_size(ibcoll_team_t team);

/* ---------------------------------------------------------------- collectives */

typedef enum ibcoll_collective {
  IBCOLL_BARRIER = 0,
  IBCOLL_BCAST,
  IBCOLL_ALLGATHER,
  IBCOLL_ALLGATHERV,
  IBCOLL_ALLTOALL,
  IBCOLL_ALLTOALLV,
  IBCOLL_ALLREDUCE,
  IBCOLL_GATHER,
  IBCOLL_GATHERV,
  IBCOLL_SCATTER,
  IBCOLL_SCATTERV,
  IBCOLL_REDUCE,
  IBCOLL_REDUCE_SCATTER,
  IBCOLL_REDUCE_SCATTER_BLOCK,
  IBCOLL_SCAN,
  IBCOLL_EXSCAN
} ibcoll_collective_t;

/* Types of the elements of a reduction. None needs to be aligned. */
typedef enum ibcoll_type {
  IBCOLL_INT8 = 0,
  IBCOLL_UINT8,
  IBCOLL_INT16,
  IBCOLL_UINT16,
  IBCOLL_INT32,
  IBCOLL_UINT32,
  IBCOLL_INT64,
  IBCOLL_UINT64,
  IBCOLL_FLOAT,
  IBCOLL_DOUBLE,
  IBCOLL_LONG_DOUBLE,
  IBCOLL_FLOAT16,       /* IEEE 754 binary16; operations are done in float and rounded to nearest, ties to even */
  IBCOLL_BFLOAT16,      /* the upper half of a float; rounded likewise */
  IBCOLL_COMPLEX_FLOAT, /* C: float _Complex; C++: std::complex<float>; products are (ac - bd) + (ad + bc)i */
  IBCOLL_COMPLEX_DOUBLE,
  IBCOLL_COMPLEX_LONG_DOUBLE,
  IBCOLL_BOOL,      /* one byte; every value but 0 is true */
  IBCOLL_FLOAT_INT, /* struct { float value; int index; }, in C layout (MPI_FLOAT_INT); the next five likewise */
  IBCOLL_DOUBLE_INT,
  IBCOLL_LONG_DOUBLE_INT,
  IBCOLL_SHORT_INT,
  IBCOLL_INT_INT, /* MPI_2INT */
  IBCOLL_LONG_INT,
  IBCOLL_OPAQUE, /* args.element_bytes bytes; for operations of the program, and REPLACE */

  /* C's names for the integers above */
  IBCOLL_CHAR = '\xff' < 0 ? IBCOLL_INT8 : IBCOLL_UINT8,
  IBCOLL_SHORT = IBCOLL_INT16,
  IBCOLL_UNSIGNED_SHORT = IBCOLL_UINT16,
  IBCOLL_INT = IBCOLL_INT32,
  IBCOLL_UNSIGNED = IBCOLL_UINT32,
  IBCOLL_LONG = sizeof(long) == 8 ? IBCOLL_INT64 : IBCOLL_INT32,
  IBCOLL_UNSIGNED_LONG = sizeof(long) == 8 ? IBCOLL_UINT64 : IBCOLL_UINT32,
  IBCOLL_LONG_LONG = IBCOLL_INT64,
  IBCOLL_UNSIGNED_LONG_LONG = IBCOLL_UINT64
} ibcoll_type_t;

/* Predefined operations.
 *   SUM, PROD         numbers. Integers wrap.
 *   MIN, MAX          real numbers. If an operand is NaN, the result is a NaN (which one is not specified). -0 is less
 *                     than 0, and a quiet NaN raises no floating-point exception (IEEE 754-2019, minimum and maximum).
 *   MINLOC, MAXLOC    pairs: the pair whose value is the result of MIN or MAX; of equal values, that with the lowest
 *                     index
 *   BAND, BOR, BXOR   integers
 *   LAND, LOR, LXOR   real numbers and BOOL. The result is 0 or 1, also on a team of one rank.
 *   REPLACE           all types: the operand of the highest rank. It is the only one that is not commutative.
 * These rules hold for every algorithm, number of ranks and length. Numbers are rounded, and subnormal ones flushed to
 * zero, as the calling thread has set its processor. */
IBCOLL_EXPORT extern const ibcoll_op_t IBCOLL_SUM, IBCOLL_PROD, IBCOLL_MIN, IBCOLL_MAX, IBCOLL_BAND, IBCOLL_BOR,
    IBCOLL_BXOR, IBCOLL_LAND, IBCOLL_LOR, IBCOLL_LXOR, IBCOLL_MINLOC, IBCOLL_MAXLOC, IBCOLL_REPLACE;

/* Computes inout[i] = in[i] op inout[i] for i in [0, count), count > 0. `in` comes from lower ranks than `inout`
 * (MPI_User_function). `count` counts whole elements of `type`: long messages are cut between elements only. Use
 * IBCOLL_OPAQUE for a structure, so that it stays one element. The operation must be associative. It runs with ibcoll's
 * lock held, so ibcoll's functions that return a status return UNSUPPORTED inside it; only those for memory and
 * operations work, and ibcoll_progress_events does nothing. It must not throw: an exception that leaves it ends the
 * process (std::terminate). */
typedef void (*ibcoll_reduce_fn)(const void* in, void* inout, uint64_t count, ibcoll_type_t type, void* user);
IBCOLL_EXPORT ibcoll_status_t ibcoll_op_create(ibcoll_reduce_fn function, void* user, int commutative, ibcoll_op_t* op);
/* An operation that serves elements of many kinds, as an MPI_Op does. It learns how long an element is, and gets the
 * pointer `call` of the collective's arguments (op_call), which stays valid until the collective is complete. */
typedef void (*ibcoll_element_reduce_fn)(const void* in, void* inout, uint64_t count, uint64_t element_bytes,
                                         ibcoll_type_t type, void* user, void* call);
IBCOLL_EXPORT ibcoll_status_t ibcoll_op_create_for_elements(ibcoll_element_reduce_fn function, void* user,
                                                            int commutative, ibcoll_op_t* op);
/* Local. BUSY while a request with this operation exists, while a blocking call uses it, and after such a call returned
 * BUFFERS_HELD until its team is freed. NULL is allowed. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_op_free(ibcoll_op_t op);

typedef enum ibcoll_scheme {
  IBCOLL_SCHEME_AUTO = 0, /* by size: copy below the transport's switch-over, zero-copy from there on */
  IBCOLL_SCHEME_COPY,     /* through landing slots; the network never writes to user memory */
  IBCOLL_SCHEME_ZERO_COPY /* written straight to the advertised receive buffer */
} ibcoll_scheme_t;

/* Arguments of a collective. Set struct_size, collective, and the fields listed for it; all others are 0. size: ranks
 * of the team. Blocks are in rank order.
 *   BARRIER     -
 *   BCAST       recv: the buffer on all ranks; bytes; root
 *   ALLGATHER   send: `bytes` bytes; recv: size blocks of `bytes`
 *   ALLGATHERV  send: recv_counts[rank] bytes; recv: recv_counts[i] bytes at recv_displacements[i] from each rank i.
 *               The counts are the same on all ranks.
 *   ALLTOALL    send, recv: size blocks of `bytes`; block i of send goes to rank i
 *   ALLTOALLV   send_counts, send_displacements, recv_counts, recv_displacements: size entries each, in bytes
 *   GATHER      send: `bytes` bytes; root; at the root recv: size blocks of `bytes`
 *   GATHERV     send: `bytes` bytes, which may differ between ranks; root; at the root recv, recv_counts and
 *               recv_displacements: size entries each, in bytes. recv_counts[root] equals the root's `bytes`, unless it
 *               is in place.
 *   SCATTER     root; at the root send: size blocks of `bytes`; recv: `bytes` bytes
 *   SCATTERV    recv: `bytes` bytes, which may differ between ranks; root; at the root send, send_counts and
 *               send_displacements
 *   ALLREDUCE   send, recv: `count` elements of `type`; op. Operands are combined in rank order, unless op commutes.
 *   REDUCE      as ALLREDUCE; root; recv is significant at the root only
 *   REDUCE_SCATTER_BLOCK  send: size blocks of `count` elements; recv: block `rank` of the result, `count` elements
 *   REDUCE_SCATTER  recv_counts: size entries, in bytes, multiples of the element, the same on all ranks; send: blocks
 *               of these sizes, one after the other; recv: recv_counts[rank] bytes
 *   SCAN        send, recv: `count` elements; rank r gets the reduction over ranks 0 to r
 *   EXSCAN      the same over ranks 0 to r - 1; recv of rank 0 is not written
 * Reductions of IBCOLL_OPAQUE also need element_bytes, the bytes of one element. Predefined operations need no
 * alignment. Arguments that are significant at the root only are ignored on the other ranks.
 * Arrays are copied. Data buffers belong to the caller. From start to completion they stay valid, the send buffer is
 * not changed, and the receive buffer is not touched. Receive blocks do not overlap the send buffer. They overlap each
 * other only where all ranks send the same bytes to the place; what is there is undefined otherwise.
 * IBCOLL_CHECK_OVERLAP makes calls look for both. */
typedef struct ibcoll_collective_args {
  size_t struct_size;
  ibcoll_collective_t collective;
  const void* send;
  void* recv;
  uint64_t bytes;
  const uint64_t* send_counts;
  const uint64_t* send_displacements;
  const uint64_t* recv_counts;
  const uint64_t* recv_displacements;
  uint64_t count;
  ibcoll_type_t type;
  ibcoll_op_t op;
  uint64_t element_bytes;
  int root;
  ibcoll_scheme_t scheme; /* AUTO: IBCOLL_SCHEME, else by size */
  /* As the value of IBCOLL_<COLLECTIVE>: "ring", "knomial:4", "ring:64K..,shm", or "auto" for the lowest predicted
   * cost. NULL: that variable decides. */
  const char* algorithm;
  void* op_call; /* reductions: for an operation of ibcoll_op_create_for_elements */
} ibcoll_collective_args_t;

/* Local; allocates, and looks at each entry of counts and displacements. The buffers belong to the request until it is
 * freed: over verbs a peer may keep the right to write into them. Errors: INVALID_ARGUMENT, NOT_APPLICABLE (names the
 * algorithms that apply), NO_MEMORY; if the team has failed, that failure. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_collective_init(ibcoll_team_t team, const ibcoll_collective_args_t* args,
                                                     ibcoll_request_t* request);
/* Init and start in one call, for a collective that runs once: a nonblocking one. ibcoll keeps what it has prepared for
 * calls of the same shape, whatever their buffers. The wait or test that returns OK frees the request. After any other
 * status it stays valid: free it by ibcoll_request_free when it is complete. It cannot be started again
 * (INVALID_ARGUMENT). Local; the first call of a shape costs what ibcoll_collective_init does. Errors: those of
 * ibcoll_collective_init. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_collective_start(ibcoll_team_t team, const ibcoll_collective_args_t* args,
                                                      ibcoll_request_t* request);
/* Local: returns at once. BUSY while the request is in flight. If the team has failed: that failure. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_start(ibcoll_request_t request);
/* Local; advances all collectives, as ibcoll_progress. OK: complete. IN_PROGRESS: not yet. Any other status: the
 * collective failed, and the request is complete, except in the case of BUFFERS_HELD (ibcoll_wait). An idle request
 * returns the status of its last run; OK if it was never started. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_test(ibcoll_request_t request);
/* As ibcoll_test, but advances nothing: for a program that looks at many requests after one ibcoll_progress for all of
 * them. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_request_status(ibcoll_request_t request);
/* Collective: blocks until the request is complete. After IBCOLL_TIMEOUT seconds the team fails with TIMEOUT. A failed
 * request is complete, and the caller may reuse its buffers, with one exception: a process that was stopped (SIGSTOP)
 * in the middle of a write to them may still finish that write, or UCX still uses them. The call then returns
 * BUFFERS_HELD 10 seconds after the failure, and the request stays in flight until that process continues or ends, or
 * UCX returns the buffers. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_wait(ibcoll_request_t request);
/* As ibcoll_wait, but returns TIMEOUT after `seconds`; the request then stays in flight and can be waited for again. 0
 * or less: looks once. NaN: INVALID_ARGUMENT. A collective that IBCOLL_TIMEOUT has ended also returns TIMEOUT, but is
 * complete: ibcoll_test returns IN_PROGRESS in the first case only. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_wait_timeout(ibcoll_request_t request, double seconds);
/* Local. BUSY while in flight. NULL is allowed. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_request_free(ibcoll_request_t request);
/* The algorithm of the request, with its parameter: "pap_direct", "ring_pipelined:65536". Valid until the request is
 * freed. */
IBCOLL_EXPORT const char* ibcoll_request_algorithm(ibcoll_request_t request);

/* Blocking calls, collective: ibcoll_collective_start and ibcoll_wait in one, with their errors. After BUFFERS_HELD the
 * buffers stay in use until the stopped process continues or ends, and freeing the team or the context returns BUSY.
 * ibcoll_collective_run makes any of these calls. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_collective_run(ibcoll_team_t team, const ibcoll_collective_args_t* args);
IBCOLL_EXPORT ibcoll_status_t ibcoll_barrier(ibcoll_team_t team);
IBCOLL_EXPORT ibcoll_status_t ibcoll_bcast(ibcoll_team_t team, void* buffer, uint64_t bytes, int root);
IBCOLL_EXPORT ibcoll_status_t ibcoll_allgather(ibcoll_team_t team, const void* send, void* recv, uint64_t bytes);
IBCOLL_EXPORT ibcoll_status_t ibcoll_allgatherv(ibcoll_team_t team, const void* send, void* recv,
                                                const uint64_t* recv_counts, const uint64_t* recv_displacements);
IBCOLL_EXPORT ibcoll_status_t ibcoll_alltoall(ibcoll_team_t team, const void* send, void* recv, uint64_t bytes);
IBCOLL_EXPORT ibcoll_status_t ibcoll_alltoallv(ibcoll_team_t team, const void* send, const uint64_t* send_counts,
                                               const uint64_t* send_displacements, void* recv,
                                               const uint64_t* recv_counts, const uint64_t* recv_displacements);
IBCOLL_EXPORT ibcoll_status_t ibcoll_allreduce(ibcoll_team_t team, const void* send, void* recv, uint64_t count,
                                               ibcoll_type_t type, ibcoll_op_t op);
IBCOLL_EXPORT ibcoll_status_t ibcoll_gather(ibcoll_team_t team, const void* send, void* recv, uint64_t bytes, int root);
/* `bytes`: bytes of this rank's block. recv, recv_counts and recv_displacements are significant at the root only. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_gatherv(ibcoll_team_t team, const void* send, uint64_t bytes, void* recv,
                                             const uint64_t* recv_counts, const uint64_t* recv_displacements, int root);
IBCOLL_EXPORT ibcoll_status_t ibcoll_scatter(ibcoll_team_t team, const void* send, void* recv, uint64_t bytes,
                                             int root);
/* `bytes`: bytes of this rank's block. send, send_counts and send_displacements are significant at the root only. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_scatterv(ibcoll_team_t team, const void* send, const uint64_t* send_counts,
                                              const uint64_t* send_displacements, void* recv, uint64_t bytes, int root);
IBCOLL_EXPORT ibcoll_status_t ibcoll_reduce(ibcoll_team_t team, const void* send, void* recv, uint64_t count,
                                            ibcoll_type_t type, ibcoll_op_t op, int root);
/* recv_counts: in bytes, multiples of the element, the same on all ranks. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_reduce_scatter(ibcoll_team_t team, const void* send, void* recv,
                                                    const uint64_t* recv_counts, ibcoll_type_t type, ibcoll_op_t op);
/* `count`: elements of one block. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_reduce_scatter_block(ibcoll_team_t team, const void* send, void* recv,
                                                          uint64_t count, ibcoll_type_t type, ibcoll_op_t op);
IBCOLL_EXPORT ibcoll_status_t ibcoll_scan(ibcoll_team_t team, const void* send, void* recv, uint64_t count,
                                          ibcoll_type_t type, ibcoll_op_t op);
IBCOLL_EXPORT ibcoll_status_t ibcoll_exscan(ibcoll_team_t team, const void* send, void* recv, uint64_t count,
                                            ibcoll_type_t type, ibcoll_op_t op);

/* ---------------------------------------------------------------- introspection */

/* The name used in variables and tools, such as "alltoallv". NULL if there is no such collective. Collectives are
 * numbered from 0 without gaps; later versions have more. */
IBCOLL_EXPORT const char* ibcoll_collective_name(ibcoll_collective_t collective);
/* Name of the index-th algorithm of a collective; NULL when index is past the last. */
IBCOLL_EXPORT const char* ibcoll_algorithm_name(ibcoll_collective_t collective, int index);
/* Its source and cost in one line. NULL when there is no such algorithm. */
IBCOLL_EXPORT const char* ibcoll_algorithm_about(ibcoll_collective_t collective, const char* algorithm);
/* Which algorithm the next call gets, and why; buffers are not needed. Writes JSON to `text`, by the rules of
 * ibcoll_context_describe:
 *   {"algorithm": "shm", "predicted": "shm", "reason": "lowest predicted cost, with and without a late rank",
 *    "candidates": [{"algorithm": "shm", "cost_us": 3.1, "late_us": 2.5}, ...],
 *    "not_applicable": [{"algorithm": "ring", "why": "..."}, ...]}
 * "cost_us" is of ranks that arrive together, "late_us" from the arrival of a late rank on; "predicted" is the best by
 * both (IBCOLL_ARRIVAL). A forced algorithm has the reason "demanded by IBCOLL_ALLTOALL" or "demanded by the call"; one from the tuning file
 * (IBCOLL_TUNING) "read from the tuning file, timed in 33 calls". "class" is how that file names the call. For
 * v-collectives, NULL counts stand for blocks of `bytes`.
 * Errors: those of ibcoll_collective_init, except those that concern buffers and displacements. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_explain(ibcoll_team_t team, const ibcoll_collective_args_t* args, char* text,
                                             size_t bytes);
/* Local; allocates. The whole state as JSON, by the rules of ibcoll_context_describe: bootstrap, topology, transports
 * with counters and the reason why one is not used, settings with default, value, origin and meaning. If `context` is
 * NULL: build and settings only; malformed settings give "error" in their place. */
IBCOLL_EXPORT size_t ibcoll_info_json(ibcoll_context_t context, char* text, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
