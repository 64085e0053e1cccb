/* SPDX-License-Identifier: Apache-2.0
 * Ranks whose I/O has one cause: advised KIND ARGUMENT... Times are those of sleeps and of the file
 * system, which a busy machine can only make longer. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks;

static void need(int is_right, const char *what) {
  if (is_right) return;
  perror(what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void put(const char *path, size_t size, off_t at) {
  char *bytes = calloc(1, size);
  const int file = open(path, O_CREAT | O_WRONLY, 0644);
  need(file >= 0, path);
  need(pwrite(file, bytes, size, at) == (ssize_t)size, path);
  close(file);
  free(bytes);
}

/* FORMAT: the path of a rank's file. All ranks create theirs at the same moment. */
static void creates(char **argv) {
  char path[4096];
  snprintf(path, sizeof path, argv[0], rank, rank);
  MPI_Barrier(MPI_COMM_WORLD);
  put(path, 100, 0);
}

/* FILE BYTES KEY=VALUE...: all ranks write so many bytes each by one collective call. */
static void collective(char **argv) {
  MPI_File file;
  MPI_Info info;
  const int size = atoi(argv[1]);
  char *bytes = calloc(1, size);
  MPI_Info_create(&info);
  for (char **hint = argv + 2; *hint != NULL; hint++) {
    char *value = strchr(*hint, '=');
    *value = 0;
    MPI_Info_set(info, *hint, value + 1);
  }
  need(MPI_File_open(MPI_COMM_WORLD, argv[0], MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file) ==
           MPI_SUCCESS, argv[0]);
  MPI_File_write_at_all(file, (MPI_Offset)rank * size, bytes, size, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

/* FILE FACTOR AT: opens a shared file with a striping factor, and writes a MiB behind offset AT. */
static void striped(char **argv) {
  MPI_File file;
  MPI_Info info;
  static char bytes[1 << 20];
  MPI_Info_create(&info);
  MPI_Info_set(info, "striping_factor", argv[1]);
  MPI_Info_set(info, "striping_unit", "1048576");
  need(MPI_File_open(MPI_COMM_WORLD, argv[0], MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file) ==
           MPI_SUCCESS, argv[0]);
  MPI_File_write_at(file, atoll(argv[2]) + rank * (MPI_Offset)sizeof bytes, bytes, sizeof bytes,
                    MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

/* FILE REQUESTS BYTES TURN: each rank reads its part of the file in order, all at once or in turn.
 */
static void streams(char **argv) {
  const int count = atoi(argv[1]), size = atoi(argv[2]), in_turn = atoi(argv[3]);
  char *bytes = malloc(size);
  const int file = open(argv[0], O_RDONLY);
  need(file >= 0, argv[0]);
  for (int turn = 0; turn < (in_turn ? ranks : 1); turn++) {
    for (int i = 0; i < count && (!in_turn || turn == rank); i++)
      need(pread(file, bytes, size, ((off_t)rank * count + i) * size) == size, argv[0]);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  close(file);
}

/* FORMAT SERVERS FRAMES COMPUTE_MS: the last ranks write, in turn, the frames that the others
 * compute and send them. */
static void quilt(char **argv) {
  const int servers = atoi(argv[1]), frames = atoi(argv[2]), first = ranks - servers;
  static char sent[1 << 10], got[64 << 10];
  char path[4096];
  for (int frame = 0; frame < frames; frame++) {
    const int server = first + frame % servers;
    if (rank < first) {
      usleep(atoi(argv[3]) * 1000);
      MPI_Ssend(sent, sizeof sent, MPI_BYTE, server, frame, MPI_COMM_WORLD);
    } else if (rank == server) {
      for (int from = 0; from < first; from++)
        MPI_Recv(got + from * sizeof sent, sizeof sent, MPI_BYTE, from, frame, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
      snprintf(path, sizeof path, argv[0], frame);
      put(path, sizeof got, 0);
    }
  }
}

/* FILE MS: each rank computes so long; rank 0 writes. */
static void work(char **argv) {
  usleep(atoi(argv[1]) * 1000);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) put(argv[0], 1 << 16, 0);
}

int main(int argc, char **argv) {
  const struct {
    const char *name;
    void (*run)(char **);
  } kinds[] = {{"creates", creates}, {"collective", collective}, {"striped", striped},
               {"streams", streams}, {"quilt", quilt}, {"work", work}};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (argc > 2 && strcmp(argv[1], kinds[i].name) == 0) kinds[i].run(argv + 2);
  MPI_Finalize();
  return 0;
}
