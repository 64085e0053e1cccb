// SPDX-License-Identifier: Apache-2.0
// Ranks on several nodes read the same files; every byte is compared. share_apart WHAT FILE
// DIRECTORY NUMBER... Ranks tell each other how far they are by files in DIRECTORY, so that a rank
// can be outside of MPI meanwhile.
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, ranks;
static const char* directory;
static unsigned char byte_at(long offset) {
  return (unsigned char)(offset * 7 + offset / 251 + offset / 65537);
}
static void fail(const char* what, long where) {
  fprintf(stderr, "rank %d: %s at %ld: %s\n", rank, what, where, strerror(errno));
  fflush(stderr);
  _exit(3);
}
static void mark(const char* what, long number) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.%d", directory, what, rank);
  FILE* f = fopen(path, "w");
  if (f == NULL || fprintf(f, "%ld", number) < 0 || fclose(f) != 0) fail(path, 0);
}
static long marked(const char* what, int by) {
  char path[4096];
  long number = -1;
  snprintf(path, sizeof path, "%s/%s.%d", directory, what, by);
  for (int tries = 0; tries < 6000; ++tries, usleep(10000)) {
    FILE* f = fopen(path, "r");
    if (f == NULL) continue;
    const int got = fscanf(f, "%ld", &number);
    fclose(f);
    if (got == 1) return number;
  }
  fail(path, 0);
  return -1;
}

static long read_range(int fd, long from, long until, long request) {
  unsigned char* data = malloc(request);
  for (long at = from; at < until;) {
    const long n = until - at < request ? until - at : request, got = pread(fd, data, n, at);
    if (got <= 0) fail("pread", at);
    for (long i = 0; i < got; ++i) {
      if (data[i] != byte_at(at + i)) fail("another byte", at + i);
    }
    at += got;
  }
  free(data);
  return until - from;
}
static int open_file(const char* path, long* size) {
  struct stat about;
  const int fd = open(path, O_RDONLY);
  if (fd < 0 || fstat(fd, &about) != 0) fail(path, 0);
  *size = about.st_size;
  return fd;
}

// Rank 0, which serves its node, is outside of MPI until all others have read everything.
static void computing(const char* path, long request) {
  long size;
  const int fd = open_file(path, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    for (int other = 1; other < ranks; ++other) marked("read", other);
  } else {
    mark("read", read_range(fd, 0, size, request));
  }
  close(fd);
}

// MPI is never ended.
static void leaving(const char* path, long request) {
  computing(path, request);
  for (int other = 1; other < ranks; ++other) marked("read", other);
  mark("leaves", rank);
  for (int other = 0; other < ranks; ++other) marked("leaves", other);
  exit(5);
}

// The last rank stops in the middle; the others read on without it, and wake it.
static void stopping(const char* path, long request) {
  long size;
  const int fd = open_file(path, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  read_range(fd, 0, size / 4, request);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == ranks - 1) {
    mark("stops", getpid());
    raise(SIGSTOP);
    read_range(fd, 0, size, request);
  } else {
    const pid_t last = (pid_t)marked("stops", ranks - 1);
    mark("read", read_range(fd, 0, size, request));
    if (rank == 0) {
      for (int other = 1; other < ranks - 1; ++other) marked("read", other);
      kill(last, SIGCONT);
    }
  }
  close(fd);
}

// The last rank is killed in the middle; what the others read after it is right, if MPI leaves them
// the time.
static void killed(const char* path, long request) {
  long size;
  const int fd = open_file(path, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  read_range(fd, 0, size / 4, request);
  if (rank == ranks - 1) raise(SIGKILL);
  mark("read", read_range(fd, 0, size, request));
  _exit(0);
}

// Pieces at random places of three files, with barriers; each file is larger than what the nodes
// keep together.
static void soak(const char* path, long seed, long requests) {
  int fd[3];
  long size[3];
  for (int i = 0; i < 3; ++i) {
    char name[4096];
    snprintf(name, sizeof name, "%s%d.dat", path, i);
    fd[i] = open_file(name, &size[i]);
  }
  unsigned long state = (unsigned long)seed * 2654435761u + (unsigned long)rank * 40503u + 1;
  for (long i = 0; i < requests; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const int file = (int)(state >> 60) % 3;
    const long from = (long)(state >> 20 & 0xffffffff) % size[file],
               n = (long)(state >> 8 & 0x3ffff);
    read_range(fd[file], from, from + n < size[file] ? from + n : size[file], 50000);
    if (i % 32 == 31) MPI_Barrier(MPI_COMM_WORLD);
  }
  for (int i = 0; i < 3; ++i) close(fd[i]);
}

// A child reads beside its parent, which has begun MPI; neither disturbs the other.
static void forking(const char* path, long request) {
  long size;
  const int fd = open_file(path, &size);
  read_range(fd, 0, size / 2, request);
  const pid_t child = fork();
  if (child == 0) {
    const int own = open_file(path, &size);
    read_range(own, 0, size, request);
    _exit(7);
  }
  read_range(fd, 0, size, request);
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
    fail("child", status);
  close(fd);
}

// The ranks' own messages and windows, on the world and with wildcards, while blocks travel.
static void talking(const char* path, long request) {
  long size;
  const int fd = open_file(path, &size);
  int* shared;
  MPI_Win window;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &window);
  for (long at = 0; at < size; at += request) {
    int sent = rank, got = -1;
    MPI_Request r;
    MPI_Isend(&sent, 1, MPI_INT, (rank + 1) % ranks, 1, MPI_COMM_WORLD, &r);
    read_range(fd, at, at + request < size ? at + request : size, request);
    MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (got != (rank + ranks - 1) % ranks) fail("another message", got);
  }
  MPI_Win_free(&window);
  close(fd);
}

// By MPI-IO, each rank alone and all together: MPI may hold locks of its own while it reads.
static void by_mpi_io(const char* path, long request) {
  MPI_File file;
  MPI_Offset size;
  unsigned char* data = malloc(request);
  if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
    fail(path, 0);
  MPI_File_get_size(file, &size);
  for (long at = 0; at < size; at += request) {
    const int n = (int)(size - at < request ? size - at : request);
    const int done = at / request % 2 == 0
                         ? MPI_File_read_at(file, at, data, n, MPI_BYTE, MPI_STATUS_IGNORE)
                         : MPI_File_read_at_all(file, at, data, n, MPI_BYTE, MPI_STATUS_IGNORE);
    if (done != MPI_SUCCESS) fail("MPI_File_read_at", at);
    for (long i = 0; i < n; ++i) {
      if (data[i] != byte_at(at + i)) fail("another byte", at + i);
    }
  }
  MPI_File_close(&file);
}

int main(int argc, char** argv) {
  int provided = -1;
  if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) return 4;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  directory = argv[3];
  const long first = atol(argv[4]), second = argc > 5 ? atol(argv[5]) : 0;
  if (rank == 0) printf("provided %d\n", provided);
  if (strcmp(argv[1], "computing") == 0) computing(argv[2], first);
  else if (strcmp(argv[1], "stopping") == 0) stopping(argv[2], first);
  else if (strcmp(argv[1], "killed") == 0) killed(argv[2], first);
  else if (strcmp(argv[1], "soak") == 0) soak(argv[2], first, second);
  else if (strcmp(argv[1], "forking") == 0) forking(argv[2], first);
  else if (strcmp(argv[1], "talking") == 0) talking(argv[2], first);
  else if (strcmp(argv[1], "mpi-io") == 0) by_mpi_io(argv[2], first);
  else if (strcmp(argv[1], "leaving") == 0) leaving(argv[2], first);
  else return 2;
  MPI_Finalize();
  if (rank == 0) printf("ended\n");
  return 0;
}
