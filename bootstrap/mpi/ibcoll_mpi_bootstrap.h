/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ibcoll in an MPI program: MPI only introduces the ranks of a communicator to each other. Link the library that was
 * built for the MPI of the program: -libcoll_mpi_bootstrap_openmpi or -libcoll_mpi_bootstrap_mpich.
 *
 *   ibcoll_bootstrap_t bootstrap;
 *   ibcoll_context_params_t params = {sizeof(params), &bootstrap};
 *   if (ibcoll_mpi_bootstrap(MPI_COMM_WORLD, &bootstrap) != IBCOLL_OK) ... ibcoll_mpi_last_error()
 *   ibcoll_context_create(&params, &context); ... ibcoll_context_destroy(context);
 *   ibcoll_mpi_bootstrap_free(&bootstrap);   before MPI_Finalize
 */
#ifndef IBCOLL_MPI_BOOTSTRAP_H
#define IBCOLL_MPI_BOOTSTRAP_H

#include <ibcoll.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Collective over `comm`, an intracommunicator, of which it takes a duplicate; fills all of *bootstrap. An exchange
 * waits for ranks that do not come for as many seconds as the environment's IBCOLL_TIMEOUT says (default 600). It calls
 * MPI from the thread that creates or destroys the context.
 * Errors: INVALID_ARGUMENT (a NULL, MPI not running, an intercommunicator), NO_MEMORY, BOOTSTRAP (MPI failed). */
IBCOLL_EXPORT ibcoll_status_t ibcoll_mpi_bootstrap(MPI_Comm comm, ibcoll_bootstrap_t* bootstrap);
/* Collective as MPI_Comm_free is; after the context was destroyed, before MPI_Finalize. NULL and a bootstrap that is
 * free already are allowed. Errors: BOOTSTRAP (MPI has ended, or an exchange that timed out still holds the
 * communicator). */
IBCOLL_EXPORT ibcoll_status_t ibcoll_mpi_bootstrap_free(ibcoll_bootstrap_t* bootstrap);
/* Why the last call or exchange on this thread failed; "" when none did. Valid until the next failure. */
IBCOLL_EXPORT const char* ibcoll_mpi_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
