/* SPDX-License-Identifier: Apache-2.0
 * Where libweir meets MPI: the only public header that includes mpi.h. */
#ifndef WEIR_MPI_H
#define WEIR_MPI_H

#include <mpi.h>

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* [collective over world] Begin. config: path of a TOML file or of a Fortran namelist; null or "":
 * the file named by WEIR_OUTPUT_CONFIG, or, when that is not set, defaults (mode serial).
 * after: on ranks of the model *model_comm is the communicator to compute with (a duplicate of
 *   world when the mode has no servers) and *context is set; the caller frees neither,
 *   weir_finalize does.
 *   On servers the call returns when the model has called weir_finalize and all is written, with
 *   *model_comm MPI_COMM_NULL and *context null: such a rank goes on to MPI_Finalize. Its result
 *   is WEIR_OK, or why it could not serve to the end (WEIR_E_LOST, WEIR_E_ORDER); what became of
 *   single frames and files is reported to the model alone.
 * fails: WEIR_E_CONFIG, with the same message on every rank, before anything is written;
 *   WEIR_E_ORDER a rank of world serves another context that has not been finalized.
 * A program that comes to MPI_Finalize without weir_finalize ends: its servers are let go, files
 * keep their temporary names, stderr says so. */
WEIR_OUTPUT_API int weir_init(MPI_Comm world, const char *config, MPI_Comm *model_comm,
                              weir_context **context, weir_error *err);

/* The same for Fortran's handles (MPI_Fint), which the module weir calls. */
WEIR_OUTPUT_API int weir_init_f(MPI_Fint world, const char *config, MPI_Fint *model_comm,
                                weir_context **context, weir_error *err);

/* [collective over world, with the others' weir_init] This rank says what it is, for jobs of
 * several executables (MPMD): a server executable calls weir_serve, which is weir_init for a rank
 * that is nothing but a server. The others' weir_init takes such ranks as the servers, whatever
 * number the configuration has; the mode is one with servers. Returns when the model has finalized
 * and all is written. */
WEIR_OUTPUT_API int weir_serve(MPI_Comm world, const char *config, weir_error *err);
WEIR_OUTPUT_API int weir_serve_f(MPI_Fint world, const char *config, weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
