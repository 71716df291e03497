/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ibcoll: collectives over RDMA Write, shared memory and UCX. The public C interface.
 *
 * Life of a program:
 *   ibcoll_context_create   once per process; exchanges addresses with the other ranks of the job
 *   ibcoll_team_*           groups of ranks (MPI: communicators); ibcoll_team_world is the whole job
 *   ibcoll_collective_init  checks the arguments, selects an algorithm -> a persistent request
 *   ibcoll_start/test/wait  any number of times; buffers and counts stay as given at init
 *   ibcoll_request_free
 * or a blocking shorthand (ibcoll_alltoall, ...), which keeps its request for the next call.
 *
 * Conventions
 *   - Sizes, counts and displacements are in bytes unless a name says `count` (elements).
 *   - All ranks of a team call collectives on it in the same order, as in MPI (MPI 4.0, section 6.1). Persistent
 *     requests are *started* in the same order. Several may be in flight at a time.
 *   - Every function that can fail returns an ibcoll_status_t; ibcoll_last_error() tells who, where, why and what to try.
 *   - A failed argument check leaves everything as it was. A collective that fails once started fails on every rank
 *     of the team that is alive; one whose own part was complete, or could be completed, is told in its next call on the
 *     team. The team accepts no further collective: free it.
 *   - Structs carry their size, so that they can grow at their end: set struct_size to sizeof. A shorter struct, of an older
 *     header, counts as filled with zeros; a longer one is taken as long as what this version does not know is zero.
 *   - Any thread may call any function; calls on one context exclude each other by one lock.
 *   - A child that fork() makes while there is a context has no part in the job: there every call is UNSUPPORTED.
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
#define IBCOLL_VERSION_MINOR 1
#define IBCOLL_VERSION_PATCH 0

typedef enum ibcoll_status {
  IBCOLL_OK = 0,
  IBCOLL_IN_PROGRESS = 1,           /* ibcoll_test: not complete yet */
  IBCOLL_ERR_INVALID_ARGUMENT = -1, /* an argument is wrong; nothing was done */
  IBCOLL_ERR_NO_MEMORY = -2,        /* an allocation was refused */
  IBCOLL_ERR_UNSUPPORTED = -3,      /* not possible on this machine or in this build */
  IBCOLL_ERR_NOT_APPLICABLE = -4,   /* the forced algorithm does not apply to this call */
  IBCOLL_ERR_MISMATCH = -5,         /* ranks called with arguments that do not fit together */
  IBCOLL_ERR_PEER_FAILED = -6,      /* a rank died or cannot be reached */
  IBCOLL_ERR_TIMEOUT = -7,          /* a deadline passed */
  IBCOLL_ERR_TRANSPORT = -8,        /* a transport failed on this rank */
  IBCOLL_ERR_BOOTSTRAP = -9,        /* the ranks of the job could not find each other */
  IBCOLL_ERR_CONFIG = -10,          /* a setting has a malformed value */
  IBCOLL_ERR_SYSTEM = -11,          /* a system call failed */
  IBCOLL_ERR_BUSY = -12,            /* the object is in use: a request in flight, a team with requests */
  IBCOLL_ERR_INTERNAL = -13,        /* a fault of ibcoll itself */
  IBCOLL_ERR_BUFFERS_HELD = -14     /* the collective failed, and others still have its buffers (ibcoll_wait) */
} ibcoll_status_t;

typedef struct ibcoll_context* ibcoll_context_t;
typedef struct ibcoll_team* ibcoll_team_t;
typedef struct ibcoll_request* ibcoll_request_t;
typedef struct ibcoll_op* ibcoll_op_t;

/* As send buffer: the data is in the receive buffer already (MPI_IN_PLACE).
 *   allgather(v)       this rank's own block.
 *   gather(v)          at the root: its own block.
 *   alltoall(v)        the whole buffer, which the result replaces. In alltoallv block i, where and as long as recv_displacements
 *                      and recv_counts say, goes to rank i, and as much comes back from it.
 *   allreduce, scan, exscan, and reduce at the root: the operand, which the result replaces.
 *   reduce_scatter(_block)  the p blocks of the operand; this rank's result replaces the beginning of them.
 * As receive buffer, at the root of scatter(v): its own block stays where it is in the send buffer. */
#define IBCOLL_IN_PLACE ((const void*)-1)

/* ---------------------------------------------------------------- version and errors */

/* "0.1.0" */
IBCOLL_EXPORT const char* ibcoll_version_string(void);
/* A short constant text for a status; never NULL. */
IBCOLL_EXPORT const char* ibcoll_status_string(ibcoll_status_t status);
/* The whole story of the last error that a call of this thread returned: rank, peer, device, what to try.
 * Valid until the next failing call of the same thread; "" when none failed. */
IBCOLL_EXPORT const char* ibcoll_last_error(void);

/* ---------------------------------------------------------------- context */

/* How ranks find each other when the host program has its own means. `allgather` gathers `bytes` bytes from each rank
 * into `recv` (size x bytes, rank order), blocks until done and returns 0 on success; anything else becomes BOOTSTRAP. It is
 * called by all ranks in the same order, during context creation and destruction only. The struct is copied; what `user`
 * points to must stay until the context is gone. */
typedef struct ibcoll_bootstrap {
  size_t struct_size; /* sizeof(ibcoll_bootstrap_t) */
  int rank;
  int size;
  int (*allgather)(void* user, const void* send, void* recv, size_t bytes);
  void* user;
} ibcoll_bootstrap_t;

typedef struct ibcoll_context_params {
  size_t struct_size;                  /* sizeof(ibcoll_context_params_t) */
  const ibcoll_bootstrap_t* bootstrap; /* NULL: ibcoll_run, PMIx or a single process, whichever is found */
} ibcoll_context_params_t;

/* Collective over all ranks of the job. `params` may be NULL. Settings come from IBCOLL_* variables and the
 * configuration file (ibcoll_info -c lists them). A process's first context takes SIGUSR1, where that has its default action,
 * to print what collectives wait for.
 * Errors: INVALID_ARGUMENT (params), CONFIG (names variable, value and what is allowed), BOOTSTRAP, UNSUPPORTED (a network that
 * this machine or build does not have), TRANSPORT, NO_MEMORY, SYSTEM, TIMEOUT. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_context_create(const ibcoll_context_params_t* params, ibcoll_context_t* context);
/* Collective. BUSY while teams other than the world or requests exist: then the context stays as it was. After any other result
 * it is gone, also after an error, and the handle must not be used again. NULL is allowed. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_context_destroy(ibcoll_context_t context);
IBCOLL_EXPORT int ibcoll_context_rank(ibcoll_context_t context);
IBCOLL_EXPORT int ibcoll_context_size(ibcoll_context_t context);
/* Moves everything in flight forward without blocking. For host programs that have a progress loop of their own;
 * ibcoll_test and ibcoll_wait do it too. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_progress(ibcoll_context_t context);
/* Writes to `text` (at most `bytes` bytes, always terminated) one line for each collective in flight: what it waits for.
 * Returns the length the whole text has. */
IBCOLL_EXPORT size_t ibcoll_context_describe(ibcoll_context_t context, char* text, size_t bytes);

/* Memory that every transport handles best (page aligned, huge pages where there are any). NULL when `bytes` is 0 or
 * memory is short (ibcoll_last_error tells). The caller's until it is freed by ibcoll_mem_free, with this or another context of
 * the process, so before the last one is destroyed. */
IBCOLL_EXPORT void* ibcoll_mem_alloc(ibcoll_context_t context, size_t bytes);
/* INVALID_ARGUMENT: not the begin of such memory, or freed already. `memory` may be NULL. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_mem_free(ibcoll_context_t context, void* memory);

/* ---------------------------------------------------------------- teams */

/* All ranks of the job. Belongs to the context: not to be freed. */
IBCOLL_EXPORT ibcoll_team_t ibcoll_team_world(ibcoll_context_t context);
/* Collective over `parent`: ranks[i] (a rank of parent, no duplicates) becomes rank i. All ranks of parent call with the
 * same list; a rank not in it gets *team = NULL. A list that cannot be a team is INVALID_ARGUMENT on the rank that gives it
 * and MISMATCH on all others; lists that differ are MISMATCH on all ranks of parent. Other errors are those of a collective on
 * parent, and NO_MEMORY (of the node's shared memory, too). A NULL parent or team is refused on this rank alone: the others
 * wait for it. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_team_create(ibcoll_team_t parent, const int* ranks, int count,
                                                 ibcoll_team_t* team);
/* Collective over `parent`: one team per color, ordered by key, then by rank in parent. A negative color: no team
 * (*team = NULL). Errors as above. Source: MPI_Comm_split. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_team_split(ibcoll_team_t parent, int color, int key, ibcoll_team_t* team);
/* Local. BUSY while requests of the team exist; INVALID_ARGUMENT for the world. NULL is allowed. Whether the last collective of the
 * team fitted together, a rank whose own part was complete no longer learns: a barrier before tells. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_team_free(ibcoll_team_t team);
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
  IBCOLL_FLOAT16,       /* IEEE 754 binary16; each operation is done in float, and its result rounded (to even) */
  IBCOLL_BFLOAT16,      /* the upper half of a float; in the same way */
  IBCOLL_COMPLEX_FLOAT, /* C: float _Complex; C++: std::complex<float>; products are (ac - bd) + (ad + bc)i */
  IBCOLL_COMPLEX_DOUBLE,
  IBCOLL_COMPLEX_LONG_DOUBLE,
  IBCOLL_BOOL,      /* one byte; anything but 0 is true */
  IBCOLL_FLOAT_INT, /* struct { float value; int index; }, as C lays it out (MPI_FLOAT_INT); so are the next five */
  IBCOLL_DOUBLE_INT,
  IBCOLL_LONG_DOUBLE_INT,
  IBCOLL_SHORT_INT,
  IBCOLL_INT_INT, /* MPI_2INT */
  IBCOLL_LONG_INT,
  IBCOLL_OPAQUE, /* args.element_bytes bytes, for operations of the program; of the predefined ones REPLACE */

  /* C's own names for the integers above */
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
 *   MIN, MAX          real numbers. NaN wins: the result is NaN where an operand is (which NaN is not specified), and
 *                     -0 is less than 0 (IEEE 754-2019, minimum and maximum).
 *   MINLOC, MAXLOC    pairs: the one whose value MIN or MAX takes, of equal values the one with the lowest index
 *   BAND, BOR, BXOR   integers
 *   LAND, LOR, LXOR   real numbers and BOOL. The result is 0 or 1, on a team of one rank, too.
 *   REPLACE           all types: the operand of the highest rank. The only one that is not commutative.
 * These rules hold for every algorithm, number of ranks and length. */
IBCOLL_EXPORT extern const ibcoll_op_t IBCOLL_SUM, IBCOLL_PROD, IBCOLL_MIN, IBCOLL_MAX, IBCOLL_BAND, IBCOLL_BOR,
    IBCOLL_BXOR, IBCOLL_LAND, IBCOLL_LOR, IBCOLL_LXOR, IBCOLL_MINLOC, IBCOLL_MAXLOC, IBCOLL_REPLACE;

/* inout[i] = in[i] op inout[i] for i in [0, count), which is never empty: `in` comes from the lower ranks
 * (MPI_User_function). `count` is that of whole elements of `type`: a long message is cut between them only. What an
 * operation has to see together is one element: a structure is IBCOLL_OPAQUE. Must be associative; called inside ibcoll
 * with its lock held, so it must not call ibcoll. */
typedef void (*ibcoll_reduce_fn)(const void* in, void* inout, uint64_t count, ibcoll_type_t type, void* user);
IBCOLL_EXPORT ibcoll_status_t ibcoll_op_create(ibcoll_reduce_fn function, void* user, int commutative, ibcoll_op_t* op);
/* Local. BUSY while requests with it exist, or a blocking call with it is in flight, or given up (ibcoll_wait) and its team not
 * freed. NULL is allowed. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_op_free(ibcoll_op_t op);

typedef enum ibcoll_scheme {
  IBCOLL_SCHEME_AUTO = 0, /* by size: copy below the transport's switch-over, zero-copy above */
  IBCOLL_SCHEME_COPY,     /* through landing slots: no network writes into user memory */
  IBCOLL_SCHEME_ZERO_COPY /* straight into the advertised receive buffer */
} ibcoll_scheme_t;

/* Arguments of a collective. Set struct_size and collective, and the fields that the collective uses (all others 0):
 *   BARRIER     -
 *   BCAST       recv: the buffer on all ranks; bytes; root
 *   ALLGATHER   send: `bytes` bytes; recv: size blocks of `bytes`, rank order
 *   ALLGATHERV  recv: recv_counts[i] bytes at recv_displacements[i] for each rank i (the same counts on all ranks);
 *               send: recv_counts[rank] bytes
 *   ALLTOALL    send, recv: size blocks of `bytes`; block i of send goes to rank i
 *   ALLTOALLV   send_counts, send_displacements, recv_counts, recv_displacements: size entries each, in bytes
 *   GATHER      send: `bytes` bytes; root; recv (root): size blocks of `bytes`, rank order
 *   GATHERV     send: `bytes` bytes, which may differ from rank to rank; root; at the root recv_counts, recv_displacements: size
 *               entries each, in bytes, and recv. recv_counts[root] and the root's `bytes` agree, unless it is in place
 *   SCATTER     root; send (root): size blocks of `bytes`, rank order; recv: `bytes` bytes
 *   SCATTERV    recv: `bytes` bytes, which may differ; root; at the root send_counts, send_displacements and send
 *   ALLREDUCE   send, recv: `count` elements of `type`, reduced by `op` in rank order; aligned only where a user's operation asks
 *               for it
 *   REDUCE      the same; root; recv is significant at the root only
 *   REDUCE_SCATTER_BLOCK  send: size blocks of `count` elements; recv: block `rank` of the reduced vector, `count` elements
 *   REDUCE_SCATTER  recv_counts: size entries, in bytes, whole elements, the same on all ranks; send: blocks of these sizes, one
 *               after the other; recv: recv_counts[rank] bytes
 *   SCAN        send, recv: `count` elements; at rank r the reduction over ranks 0 to r
 *   EXSCAN      the same over ranks 0 to r - 1; at rank 0 recv is not written
 * What reduces takes element_bytes, too: of one element, for IBCOLL_OPAQUE; else 0.
 * What is significant at the root only is ignored on the other ranks.
 * Arrays given here are copied; data buffers belong to the caller and must stay valid and (send) unchanged, (recv)
 * untouched from start to completion. Receive blocks must not overlap each other or the send buffer. */
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
  const char*
      algorithm; /* as IBCOLL_<COLLECTIVE>: "ring", "knomial:4", "ring:64K..,shm"; NULL: what that variable says; "auto":
                             the lowest predicted cost */
} ibcoll_collective_args_t;

/* Local. Errors: INVALID_ARGUMENT, NOT_APPLICABLE (says which algorithms would apply), NO_MEMORY, PEER_FAILED,... */
IBCOLL_EXPORT ibcoll_status_t ibcoll_collective_init(ibcoll_team_t team, const ibcoll_collective_args_t* args,
                                                     ibcoll_request_t* request);
/* Local: returns at once. BUSY when it is already in flight; once the team has failed, that failure. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_start(ibcoll_request_t request);
/* OK: complete. IN_PROGRESS: not yet. Anything else: the collective failed; its request is complete, but for the one case that
 * ibcoll_wait names. An idle request tells again how its last run ended; one that was never started is OK. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_test(ibcoll_request_t request);
/* Blocks until complete or until IBCOLL_TIMEOUT seconds passed without completion (then the team fails). A failed request is
 * complete, and its buffers are the caller's again. But for one case: a process that was stopped (SIGSTOP) in the middle of a
 * write to the buffers could still finish it. After 10 seconds more the call gives up with BUFFERS_HELD, and the request stays in
 * flight until that process goes on or ends. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_wait(ibcoll_request_t request);
/* As ibcoll_wait, but gives up after `seconds` (0 or less: after one look; not a number: INVALID_ARGUMENT) with TIMEOUT; the
 * request stays in flight and can be waited for again. A collective that IBCOLL_TIMEOUT has ended returns TIMEOUT too, and is
 * complete: ibcoll_last_error tells which, and ibcoll_test says IN_PROGRESS after the former only. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_wait_timeout(ibcoll_request_t request, double seconds);
/* BUSY while in flight. NULL is allowed. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_request_free(ibcoll_request_t request);
/* The algorithm that runs, with its parameter, e.g. "pap_direct" or "ring_pipelined:65536"; valid as long as the request. */
IBCOLL_EXPORT const char* ibcoll_request_algorithm(ibcoll_request_t request);

/* Blocking shorthands: init, start and wait in one, with the errors of these. After the BUFFERS_HELD with which ibcoll_wait gives up
 * on a stopped process the buffers stay in use, and ending the team or the context is BUSY, until that process goes on or ends. */
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
/* `bytes`: of this rank's block. recv, recv_counts, recv_displacements: at the root only. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_gatherv(ibcoll_team_t team, const void* send, uint64_t bytes, void* recv,
                                             const uint64_t* recv_counts, const uint64_t* recv_displacements, int root);
IBCOLL_EXPORT ibcoll_status_t ibcoll_scatter(ibcoll_team_t team, const void* send, void* recv, uint64_t bytes,
                                             int root);
/* send, send_counts, send_displacements: at the root only. `bytes`: of this rank's block. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_scatterv(ibcoll_team_t team, const void* send, const uint64_t* send_counts,
                                              const uint64_t* send_displacements, void* recv, uint64_t bytes, int root);
IBCOLL_EXPORT ibcoll_status_t ibcoll_reduce(ibcoll_team_t team, const void* send, void* recv, uint64_t count,
                                            ibcoll_type_t type, ibcoll_op_t op, int root);
/* recv_counts: bytes, whole elements, the same on all ranks. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_reduce_scatter(ibcoll_team_t team, const void* send, void* recv,
                                                    const uint64_t* recv_counts, ibcoll_type_t type, ibcoll_op_t op);
/* `count`: elements of one block. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_reduce_scatter_block(ibcoll_team_t team, const void* send, void* recv,
                                                          uint64_t count, ibcoll_type_t type, ibcoll_op_t op);
IBCOLL_EXPORT ibcoll_status_t ibcoll_scan(ibcoll_team_t team, const void* send, void* recv, uint64_t count,
                                          ibcoll_type_t type, ibcoll_op_t op);
IBCOLL_EXPORT ibcoll_status_t ibcoll_exscan(ibcoll_team_t team, const void* send, void* recv, uint64_t count,
                                            ibcoll_type_t type, ibcoll_op_t op);

/* ---------------------------------------------------------------- asking what there is */

/* The name as used in variables and tools, e.g. "alltoallv"; NULL outside the enumeration. Collectives are numbered from 0
 * without gaps; later versions have more. */
IBCOLL_EXPORT const char* ibcoll_collective_name(ibcoll_collective_t collective);
/* Name of the index-th algorithm of a collective; NULL when index is past the last. */
IBCOLL_EXPORT const char* ibcoll_algorithm_name(ibcoll_collective_t collective, int index);
/* One line about it: source and cost. NULL when there is no such algorithm. */
IBCOLL_EXPORT const char* ibcoll_algorithm_about(ibcoll_collective_t collective, const char* algorithm);
/* As ibcoll_collective_init would decide, without buffers. Writes JSON to `text`, as ibcoll_context_describe does:
 *   {"algorithm": "shm", "reason": "lowest predicted cost",
 *    "candidates": [{"algorithm": "shm", "cost_us": 3.1}, ...],
 *    "not_applicable": [{"algorithm": "ring", "why": "..."}, ...]}
 * A forced algorithm has the reason "demanded by IBCOLL_ALLTOALL" or "demanded by the call". Counts may be NULL for
 * v-collectives: `bytes` each.
 * Errors: those of ibcoll_collective_init, but for what concerns buffers and displacements. */
IBCOLL_EXPORT ibcoll_status_t ibcoll_explain(ibcoll_team_t team, const ibcoll_collective_args_t* args, char* text,
                                             size_t bytes);
/* JSON of the whole state: bootstrap, topology, transports with the reason why one is not used, settings with default,
 * value, origin and meaning; transports and topology with their counters. Same contract as ibcoll_context_describe. `context`
 * may be NULL: build and settings alone, or, where these are malformed, "error" in their place. */
IBCOLL_EXPORT size_t ibcoll_info_json(ibcoll_context_t context, char* text, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
