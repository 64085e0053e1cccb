/* SPDX-License-Identifier: Apache-2.0
 * MPI functions that fail when libweir calls them, and windows of two copies: for tests, linked
 * into the program (mpi_faults.c). */
#pragma once

/* The k-th of libweir's calls from now on fails, and with `later` all after it. Those count that
 * begin something, and those of MPI_Test and the like that find something ended. k 0: none fails.
 */
void mpi_fault_arm(long k, int later);
/* How many calls were counted since, and the one that failed first. */
long mpi_fault_calls(void);
const char *mpi_fault_failed(void);
/* The last of them that waits for all ranks without a time limit: MPI_Comm_split or MPI_Win_create.
 */
long mpi_fault_blocking(void);
/* How often libweir has called MPI_Win_sync. */
long mpi_fault_syncs(void);
/* [collective over MPI_COMM_WORLD] How many communicators libweir has freed (they are kept), and
 * the messages that lie on them. */
int mpi_fault_freed(int *messages);
