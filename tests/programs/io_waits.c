// SPDX-License-Identifier: Apache-2.0
// Programs in which ranks wait for I/O in known ways: io_waits KIND FRAMES COMPUTE_MS [GROUPS].
// Computing is sleeping, so that it takes the same time on a busy machine. Files are named slow.*:
// a rule makes their writes (one of 64 bytes each) or reads take as long as wanted, and without it
// they take next to nothing. Rank 0 prints how many seconds the part between two barriers took.
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kPiece = 4 << 20, kText = 64 };

static int rank, ranks, frames, compute_ms, groups = 1;
static MPI_Comm world = MPI_COMM_WORLD;
static char *piece, *whole;

static void compute(int ms) {
  const struct timespec length = {ms / 1000, ms % 1000 * 1000000L};
  nanosleep(&length, NULL);
}

static int slow_file(const char *what, int number, int flags) {
  char path[64];
  snprintf(path, sizeof path, "slow.%s%d", what, number);
  const int fd = open(path, flags | O_CREAT, 0644);
  if (fd < 0) abort();
  return fd;
}

static void put(int fd) {
  char text[kText] = "record";
  if (write(fd, text, sizeof text) != sizeof text) abort();
}

// Of each group the last rank writes what the others send: WRF's quilt servers.
static void quilt(void) {
  const int size = ranks / groups, group = rank / size, server = size - 1;
  MPI_Comm comm;
  MPI_Comm_split(world, group, rank, &comm);
  int counts[64], places[64], sum = 0, own;
  MPI_Comm_rank(comm, &own);
  for (int i = 0; i < size; i++)
    counts[i] = i == server ? 0 : kPiece / server, places[i] = i * (kPiece / server);
  const int fd = own == server ? slow_file("out", group, O_WRONLY | O_TRUNC) : -1;
  MPI_Barrier(world);
  for (int frame = 0; frame < frames; frame++) {
    if (own != server) compute(compute_ms);
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, server, comm);
    MPI_Gatherv(piece, counts[own], MPI_CHAR, whole, counts, places, MPI_CHAR, server, comm);
    if (own == server) put(fd);
  }
  if (fd >= 0) close(fd);
}

// Each rank hands on what it got from the one before it; the first one writes.
static void chain(void) {
  const int fd = rank == 0 ? slow_file("log", 0, O_WRONLY | O_TRUNC) : -1;
  MPI_Barrier(world);
  for (int frame = 0; frame < frames; frame++) {
    if (rank > 0) MPI_Recv(piece, 1000, MPI_CHAR, rank - 1, 1, world, MPI_STATUS_IGNORE);
    if (rank == 0) put(fd);
    compute(compute_ms);
    if (rank < ranks - 1) MPI_Send(piece, 1000, MPI_CHAR, rank + 1, 1, world);
  }
  if (fd >= 0) close(fd);
}

// All exchange with their neighbours without blocking; rank 0 writes in each frame.
static void halo(void) {
  const int fd = rank == 0 ? slow_file("log", 0, O_WRONLY | O_TRUNC) : -1,
            left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
  MPI_Barrier(world);
  for (int frame = 0; frame < frames; frame++) {
    MPI_Request all[4];
    compute(compute_ms);
    MPI_Irecv(whole, 1000, MPI_CHAR, left, 1, world, &all[0]);
    MPI_Irecv(whole + 1000, 1000, MPI_CHAR, right, 2, world, &all[1]);
    MPI_Isend(piece, 1000, MPI_CHAR, right, 1, world, &all[2]);
    MPI_Isend(piece, 1000, MPI_CHAR, left, 2, world, &all[3]);
    MPI_Waitall(4, all, MPI_STATUSES_IGNORE);
    if (rank == 0) put(fd);
  }
  if (fd >= 0) close(fd);
}

// The same in one direction, by calls that block: MPI_Sendrecv, or MPI_Send before the wait for
// what comes.
static void ring(int is_one_call) {
  const int fd = rank == 0 ? slow_file("log", 0, O_WRONLY | O_TRUNC) : -1,
            left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
  MPI_Barrier(world);
  for (int frame = 0; frame < frames; frame++) {
    MPI_Request one;
    compute(compute_ms);
    if (is_one_call) {
      MPI_Sendrecv(piece, 1000, MPI_CHAR, right, 1, whole, 1000, MPI_CHAR, left, 1, world,
                   MPI_STATUS_IGNORE);
    } else {
      MPI_Irecv(whole, 1000, MPI_CHAR, left, 1, world, &one);
      MPI_Send(piece, 1000, MPI_CHAR, right, 1, world);
      MPI_Wait(&one, MPI_STATUS_IGNORE);
    }
    if (rank == 0) put(fd);
  }
  if (fd >= 0) close(fd);
}

// Workers ask rank 0 for work and send what they made of it; rank 0 writes each result.
static void farm(void) {
  const int fd = rank == 0 ? slow_file("results", 0, O_WRONLY | O_TRUNC) : -1;
  int work = 0, result = 0;
  MPI_Barrier(world);
  if (rank == 0) {
    MPI_Status status;
    for (int worker = 1; worker < ranks; worker++) MPI_Send(&work, 1, MPI_INT, worker, 1, world);
    for (int done = 0, given = ranks - 1, all = frames * (ranks - 1); done < all; done++) {
      MPI_Recv(&result, 1, MPI_INT, MPI_ANY_SOURCE, 2, world, &status);
      work = given++ < all ? 0 : -1;
      MPI_Send(&work, 1, MPI_INT, status.MPI_SOURCE, 1, world);
      put(fd);
    }
    close(fd);
    return;
  }
  while (MPI_Recv(&work, 1, MPI_INT, 0, 1, world, MPI_STATUS_IGNORE), work >= 0) {
    compute(compute_ms);
    MPI_Send(&result, 1, MPI_INT, 0, 2, world);
  }
}

// Rank 0 sends a frame to the last rank and goes on; it waits for the frame before to be taken. The
// others wait for rank 0.
static void server(void) {
  const int last = ranks - 1, fd = rank == last ? slow_file("out", 0, O_WRONLY | O_TRUNC) : -1;
  MPI_Request sent = MPI_REQUEST_NULL;
  MPI_Comm models;
  MPI_Comm_split(world, rank == last, rank, &models);
  MPI_Barrier(world);
  for (int frame = 0; frame < frames; frame++) {
    if (rank == last) {
      MPI_Status status;
      MPI_Probe(0, 3, world, &status);
      MPI_Recv(whole, kPiece, MPI_CHAR, 0, 3, world, &status);
      put(fd);
      continue;
    }
    compute(compute_ms);
    MPI_Barrier(models);
    if (rank == 0) MPI_Wait(&sent, MPI_STATUS_IGNORE);
    if (rank == 0) MPI_Isend(piece, kPiece, MPI_CHAR, last, 3, world, &sent);
  }
  if (rank == 0) MPI_Wait(&sent, MPI_STATUS_IGNORE);
  if (fd >= 0) close(fd);
}

// Rank 0 reads what all then get.
static void input(void) {
  char text[kText];
  const int fd = rank == 0 ? slow_file("in", 0, O_RDWR) : -1;
  if (fd >= 0 && ftruncate(fd, kText) != 0) abort();
  MPI_Barrier(world);
  for (int frame = 0; frame < frames; frame++) {
    if (rank == 0 && pread(fd, text, sizeof text, 0) != sizeof text) abort();
    MPI_Bcast(text, sizeof text, MPI_CHAR, 0, world);
    compute(compute_ms + 10 * rank);
  }
  if (fd >= 0) close(fd);
}

// All write files of their own, then meet; or each in turn.
static void files(int is_in_turn) {
  const int fd = slow_file("own", rank, O_WRONLY | O_TRUNC);
  int sum;
  MPI_Barrier(world);
  for (int frame = 0; frame < frames; frame++) {
    compute(compute_ms);
    if (!is_in_turn || frame % ranks == rank) put(fd);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, world);
  }
  close(fd);
}

static void *put_beside(void *fd) {
  put(*(int *)fd);
  return NULL;
}

// A thread of rank 0 writes while the rank computes; it is joined before the next frame.
static void threads(void) {
  int fd = rank == 0 ? slow_file("beside", 0, O_WRONLY | O_TRUNC) : -1, sum;
  MPI_Barrier(world);
  for (int frame = 0; frame < frames; frame++) {
    pthread_t writer;
    if (rank == 0) pthread_create(&writer, NULL, put_beside, &fd);
    compute(compute_ms);
    if (rank == 0) pthread_join(writer, NULL);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, world);
  }
  if (fd >= 0) close(fd);
}

// MPI-IO: one rank writes for all, which come at different times.
static void together(void) {
  MPI_Info info;
  MPI_File file;
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_nodes", "1");
  MPI_Info_set(info, "romio_cb_write", "enable");
  MPI_File_open(world, "slow.all0", MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file);
  MPI_Barrier(world);
  for (int frame = 0; frame < frames; frame++) {
    compute(compute_ms + 20 * ((frame + rank) % ranks));
    MPI_File_write_at_all(file, (MPI_Offset)kText * (frame * ranks + rank), piece, kText, MPI_CHAR,
                          MPI_STATUS_IGNORE);
  }
  MPI_Barrier(world);
  MPI_File_close(&file);
  MPI_Info_free(&info);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &ranks);
  if (argc < 4) return 2;
  const char *kind = argv[1];
  frames = atoi(argv[2]), compute_ms = atoi(argv[3]);
  if (argc > 4) groups = atoi(argv[4]);
  piece = malloc(kPiece), whole = malloc(kPiece + kText);
  memset(piece, 1, kPiece), memset(whole, 1, kPiece + kText);
  MPI_Barrier(world);
  const double begun = MPI_Wtime();
  if (!strcmp(kind, "quilt")) quilt();
  else if (!strcmp(kind, "chain")) chain();
  else if (!strcmp(kind, "halo")) halo();
  else if (!strcmp(kind, "shift")) ring(1);
  else if (!strcmp(kind, "push")) ring(0);
  else if (!strcmp(kind, "farm")) farm();
  else if (!strcmp(kind, "server")) server();
  else if (!strcmp(kind, "input")) input();
  else if (!strcmp(kind, "files")) files(0);
  else if (!strcmp(kind, "turns")) files(1);
  else if (!strcmp(kind, "threads")) threads();
  else if (!strcmp(kind, "together")) together();
  else return 2;
  MPI_Barrier(world);
  if (rank == 0) printf("seconds %.6f\n", MPI_Wtime() - begun);
  free(piece), free(whole);
  MPI_Finalize();
  return 0;
}
