/* SPDX-License-Identifier: Apache-2.0
 * Collectives, communicators, messages and waits whose records tests/test_mpi_sync.py knows. Four
 * ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define W MPI_COMM_WORLD
static int rank, a[256], b[256];

static void collectives(void) {
  int one[4] = {1, 1, 1, 1}, at[4] = {0, 1, 2, 3}, varied[4] = {1, 2, 3, 4},
      places[4] = {0, 1, 3, 6};
  MPI_Barrier(W);
  MPI_Bcast(a, 3, MPI_INT, 1, W);
  MPI_Allreduce(a, b, 2, MPI_DOUBLE, MPI_SUM, W);
  MPI_Reduce(a, b, 5, MPI_INT, MPI_SUM, 3, W);
  MPI_Gather(rank == 2 ? MPI_IN_PLACE : a, rank == 2 ? 0 : 6,
             rank == 2 ? MPI_DATATYPE_NULL : MPI_INT, b, 6, MPI_INT, 2, W);
  MPI_Gatherv(a, varied[rank], MPI_INT, b, varied, places, MPI_INT, 0, W);
  MPI_Scatter(a, 2, MPI_INT, b, 2, MPI_INT, 1, W);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 7, MPI_INT, W);
  MPI_Allgatherv(a, varied[rank], MPI_INT, b, varied, places, MPI_INT, W);
  MPI_Alltoall(a, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, W);
  MPI_Alltoallv(a, one, at, MPI_INT, b, one, at, MPI_INT, W);
  MPI_Reduce_scatter(a, b, varied, MPI_INT, MPI_SUM, W);
  MPI_Scan(a, b, 1, MPI_INT, MPI_SUM, W);
}

static void communicators(void) {
  MPI_Comm copy, half, some, grid, pair, own, node;
  MPI_Group world, odd, even;
  int size = 4, wrap = 0, odds[2] = {3, 1}, evens[2] = {0, 2};
  MPI_Comm_dup(W, &copy);
  MPI_Comm_split(W, rank % 2, 0, &half);
  MPI_Comm_split(W, rank == 0 ? MPI_UNDEFINED : 5, 0, &some);
  MPI_Cart_create(W, 1, &size, &wrap, 0, &grid);
  MPI_Comm_group(W, &world);
  MPI_Group_incl(world, 2, odds, &odd);
  MPI_Group_incl(world, 2, evens, &even);
  MPI_Comm_create(W, odd, &pair);
  MPI_Comm_split_type(W, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Barrier(half);
  if (some != MPI_COMM_NULL) MPI_Barrier(some);
  MPI_Barrier(grid);
  MPI_Barrier(copy);
  MPI_Barrier(node);
  if (rank % 2 == 1) MPI_Barrier(pair);
  for (int i = 0; i < 2 && rank % 2 == 0; ++i) {
    MPI_Comm_create_group(W, even, 7, &own);
    MPI_Barrier(own);
    MPI_Comm_free(&own);
  }
  MPI_Comm_free(&half);
  MPI_Comm_dup(copy, &half);
  MPI_Barrier(half);
  MPI_Comm_free(&half);
  MPI_Barrier(MPI_COMM_SELF);
}

static void windows(void) {
  MPI_Win window;
  MPI_Win_create(a, sizeof a, 1, MPI_INFO_NULL, W, &window);
  MPI_Win_fence(0, window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
}

/* Rank 0 gets from the others, on a communicator in which ranks are reversed. */
static void messages(void) {
  MPI_Comm back;
  MPI_Status status;
  MPI_Message message;
  MPI_Comm_split(W, 0, -rank, &back);
  const int last = 3;
  if (rank == 0) {
    MPI_Recv(b, 100, MPI_INT, 2, 1, back, MPI_STATUS_IGNORE);
    MPI_Recv(b, 100, MPI_INT, MPI_ANY_SOURCE, 2, back, &status);
    MPI_Probe(MPI_ANY_SOURCE, 3, back, &status);
    MPI_Recv(b, 100, MPI_INT, status.MPI_SOURCE, 3, back, MPI_STATUS_IGNORE);
    MPI_Mprobe(MPI_ANY_SOURCE, 4, back, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(b, 100, MPI_INT, &message, MPI_STATUS_IGNORE);
    MPI_Recv(b, 0, MPI_INT, MPI_PROC_NULL, 1, back, &status);
  }
  if (rank == 1) MPI_Send(a, 11, MPI_INT, last, 1, back);
  if (rank == 2) MPI_Ssend(a, 12, MPI_INT, last, 2, back);
  if (rank == 3) MPI_Send(a, 13, MPI_INT, last, 3, back);
  if (rank == 3) MPI_Send(a, 14, MPI_INT, last, 4, back);
  MPI_Sendrecv(a, 1, MPI_INT, (rank + 1) % 4, 5, b, 4, MPI_INT, (rank + 3) % 4, 5, W,
               MPI_STATUS_IGNORE);
}

/* Rank 0 waits for receives from each of the others, in every way. */
static void waits(void) {
  MPI_Request requests[9], one;
  MPI_Status statuses[9];
  int done, index, indices[9];
  if (rank == 0) {
    for (int i = 0; i < 8; ++i)
      MPI_Irecv(a + 8 * i, 8, MPI_INT, i % 2 ? MPI_ANY_SOURCE : 1 + i % 3, 10 + i, W, &requests[i]);
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; ++i) MPI_Irecv(a, 8, MPI_INT, 1 + i, 20, W, &requests[i]);
    requests[3] = MPI_REQUEST_NULL;
    for (int i = 0; i < 3; ++i) MPI_Waitany(4, requests, &index, i ? MPI_STATUS_IGNORE : statuses);
    for (int i = 0; i < 3; ++i) MPI_Irecv(a, 8, MPI_INT, 1 + i, 21, W, &requests[i]);
    for (int left = 3; left > 0; left -= done)
      MPI_Waitsome(3, requests, &done, indices, left == 3 ? MPI_STATUSES_IGNORE : statuses);
    MPI_Recv_init(a, 8, MPI_INT, MPI_ANY_SOURCE, 22, W, &one);
    for (int i = 0; i < 3; ++i) {
      MPI_Start(&one);
      MPI_Wait(&one, &statuses[0]);
    }
    MPI_Wait(&one, MPI_STATUS_IGNORE);
    MPI_Request_free(&one);
    MPI_Irecv(a, 8, MPI_INT, 1, 23, W, &one);
    for (done = 0; !done;) MPI_Test(&one, &done, MPI_STATUS_IGNORE);
    MPI_Irecv(a, 8, MPI_INT, MPI_PROC_NULL, 24, W, &one);
    MPI_Wait(&one, MPI_STATUS_IGNORE);
  } else {
    for (int i = 0; i < 8; ++i) {
      if (1 + i % 3 == rank) MPI_Ssend(a, i, MPI_INT, 0, 10 + i, W);
    }
    MPI_Send(a, rank, MPI_INT, 0, 20, W);
    MPI_Isend(a, rank, MPI_INT, 0, 21, W, &one);
    MPI_Wait(&one, MPI_STATUS_IGNORE);
    MPI_Send(a, rank, MPI_INT, 0, 22, W);
    if (rank == 1) MPI_Send(a, 1, MPI_INT, 0, 23, W);
  }
  MPI_Ibarrier(W, &one);
  MPI_Wait(&one, MPI_STATUS_IGNORE);
  MPI_Iallreduce(a, b, 3, MPI_INT, MPI_SUM, W, &requests[0]);
  MPI_Ibcast(a, 2, MPI_INT, 0, W, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* What is followed without a record, and communicators in other ways. */
static void others(void) {
  MPI_Comm later, two, across, merged, row;
  MPI_Group world, half;
  MPI_Request requests[4], one;
  MPI_Message message;
  MPI_Status status;
  MPI_Win window;
  int done, index, indices[4], sizes[2] = {2, 2}, wraps[2] = {0, 0}, remain[2] = {0, 1}, mine[2],
                               sources[1];
  void *memory;
  MPI_Comm_idup(W, &later, &one);
  MPI_Wait(&one, MPI_STATUS_IGNORE);
  MPI_Barrier(later);
  MPI_Comm_group(W, &world);
  for (int i = 0; i < 2; ++i) mine[i] = 2 * (rank / 2) + i;
  MPI_Group_incl(world, 2, mine, &half);
  MPI_Comm_create(W, half, &two); /* each half its own */
  MPI_Barrier(two);
  MPI_Intercomm_create(two, 0, W, rank < 2 ? 2 : 0, 9, &across);
  MPI_Barrier(across);
  if (rank == 1) MPI_Send(a, 1, MPI_INT, 0, 0, across);
  if (rank == 2) MPI_Recv(b, 1, MPI_INT, 1, 0, across, &status);
  MPI_Intercomm_merge(across, rank >= 2, &merged);
  MPI_Barrier(merged);
  MPI_Cart_create(W, 2, sizes, wraps, 0, &across);
  MPI_Cart_sub(across, remain, &row);
  MPI_Barrier(row);
  /* One half after the other: Open MPI gives the windows of both the same file. */
  if (rank == 2) MPI_Recv(b, 1, MPI_INT, 0, 0, W, &status);
  MPI_Win_allocate(64, 1, MPI_INFO_NULL, two, &memory, &window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
  if (rank == 0) MPI_Send(a, 1, MPI_INT, 2, 0, W);
  /* Handles that a test took from the program may be given anew: what waits next waits for the new
   * ones. */
  const int next = (rank + 1) % 4, before = (rank + 3) % 4;
  for (int i = 0; i < 4; ++i) MPI_Irecv(b + i, 1, MPI_INT, before, i, W, &requests[i]);
  for (int i = 0; i < 4; ++i) MPI_Send(a, 1, MPI_INT, next, i, W);
  for (done = 0; !done;) MPI_Testany(4, requests, &index, &done, MPI_STATUS_IGNORE);
  for (done = 0; !done;) MPI_Testsome(4, requests, &done, indices, MPI_STATUSES_IGNORE);
  for (done = 0; !done;) MPI_Testall(4, requests, &done, MPI_STATUSES_IGNORE);
  MPI_Send_init(a, 2, MPI_INT, next, 5, W, &requests[0]);
  MPI_Recv_init(b, 2, MPI_INT, before, 5, W, &requests[1]);
  MPI_Startall(2, requests);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  MPI_Isend(a, 3, MPI_INT, next, 6, W, &one);
  for (done = 0; !done;) MPI_Improbe(MPI_ANY_SOURCE, 6, W, &done, &message, &status);
  MPI_Imrecv(b, 3, MPI_INT, &message, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Wait(&one, MPI_STATUS_IGNORE);
  sources[0] = before;
  MPI_Dist_graph_create_adjacent(W, 1, sources, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &later);
  MPI_Barrier(later);
}

/* What cannot go well, with errors returned: the program's own affair, and its records say so. */
static void errors(void) {
  MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
  printf("%d", MPI_Bcast(a, -1, MPI_INT, 0, W) != MPI_SUCCESS);
  printf("%d\n", MPI_Send(a, 1, MPI_INT, 99, 0, W) != MPI_SUCCESS);
  MPI_Barrier(W);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(W, &rank);
  for (const char *part = argc > 1 ? argv[1] : ""; *part; ++part) {
    switch (*part) {
      case 'c': collectives(); break;
      case 'g': communicators(); break;
      case 'w': windows(); break;
      case 'm': messages(); break;
      case 'r': waits(); break;
      case 'x': others(); break;
      case 'e': errors(); break;
    }
  }
  return MPI_Finalize();
}
