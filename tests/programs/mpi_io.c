// SPDX-License-Identifier: Apache-2.0
// Every data access of MPI-IO once, each rank at places of its own: 100 integers behind 64 bytes.
// Prints what each reads back wrong.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 100, SKIPPED = 64 };
static int rank, ranks, block, data[N];
static MPI_File file;
static MPI_Status status;
static MPI_Request request;

static void check(int error, const char *call) {
  if (error == MPI_SUCCESS) return;
  fprintf(stderr, "%s failed on rank %d\n", call, rank);
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define DO(call) check(call, #call)

static MPI_Offset place(void) { return (MPI_Offset)(block++ * ranks + rank) * N; }
static MPI_Offset sought(void) {
  const MPI_Offset at = place();
  DO(MPI_File_seek(file, at, MPI_SEEK_SET));
  return at;
}
static void shared(void) {
  DO(MPI_File_seek_shared(file, (MPI_Offset)(block++ * ranks) * N, MPI_SEEK_SET));
}

static void filled(int with) {
  for (int i = 0; i < N; ++i) data[i] = with;
}
static void expect(int what, const char *call) {
  for (int i = 0; i < N; ++i) {
    if (data[i] != what) printf("%s: %d, not %d\n", call, data[i], what), i = N;
  }
  filled(-1);
}

#define ACCESSES(verb, BEFORE, AFTER)                                                 \
  BEFORE(1) DO(MPI_File_##verb##_at(file, place(), data, N, MPI_INT, &status));       \
  AFTER(1)                                                                            \
  BEFORE(2) DO(MPI_File_##verb##_at_all(file, place(), data, N, MPI_INT, &status));   \
  AFTER(2)                                                                            \
  BEFORE(3) sought();                                                                 \
  DO(MPI_File_##verb(file, data, N, MPI_INT, &status));                               \
  AFTER(3)                                                                            \
  BEFORE(4) sought();                                                                 \
  DO(MPI_File_##verb##_all(file, data, N, MPI_INT, &status));                         \
  AFTER(4)                                                                            \
  BEFORE(5) DO(MPI_File_i##verb##_at(file, place(), data, N, MPI_INT, &request));     \
  DO(MPI_Wait(&request, &status));                                                    \
  AFTER(5)                                                                            \
  BEFORE(6) sought();                                                                 \
  DO(MPI_File_i##verb(file, data, N, MPI_INT, &request));                             \
  DO(MPI_Wait(&request, &status));                                                    \
  AFTER(6)                                                                            \
  BEFORE(7) DO(MPI_File_i##verb##_at_all(file, place(), data, N, MPI_INT, &request)); \
  DO(MPI_Wait(&request, &status));                                                    \
  AFTER(7)                                                                            \
  BEFORE(8) sought();                                                                 \
  DO(MPI_File_i##verb##_all(file, data, N, MPI_INT, &request));                       \
  DO(MPI_Wait(&request, &status));                                                    \
  AFTER(8)                                                                            \
  BEFORE(9) DO(MPI_File_##verb##_at_all_begin(file, place(), data, N, MPI_INT));      \
  DO(MPI_File_##verb##_at_all_end(file, data, &status));                              \
  AFTER(9)                                                                            \
  BEFORE(10) sought();                                                                \
  DO(MPI_File_##verb##_all_begin(file, data, N, MPI_INT));                            \
  DO(MPI_File_##verb##_all_end(file, data, &status));                                 \
  AFTER(10)                                                                           \
  BEFORE(11) shared();                                                                \
  DO(MPI_File_##verb##_ordered(file, data, N, MPI_INT, &status));                     \
  AFTER(11)                                                                           \
  BEFORE(12) shared();                                                                \
  DO(MPI_File_##verb##_ordered_begin(file, data, N, MPI_INT));                        \
  DO(MPI_File_##verb##_ordered_end(file, data, &status));                             \
  AFTER(12)                                                                           \
  shared();                                                                           \
  DO(MPI_File_##verb##_shared(file, data, N, MPI_INT, &status));                      \
  MPI_Barrier(MPI_COMM_WORLD);                                                        \
  shared();                                                                           \
  DO(MPI_File_i##verb##_shared(file, data, N, MPI_INT, &request));                    \
  DO(MPI_Wait(&request, &status));                                                    \
  MPI_Barrier(MPI_COMM_WORLD);

#define FILL(n) filled(1000 * rank + (n));
#define NOTHING(n)
#define EXPECT(n) expect(1000 * rank + (n), "access " #n);

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_buffer_size", "1048576");
  DO(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
  DO(MPI_File_preallocate(file, 4096));
  DO(MPI_File_set_size(file, 0));
  DO(MPI_File_set_view(file, SKIPPED, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  ACCESSES(write, FILL, NOTHING)
  DO(MPI_File_sync(file));
  DO(MPI_File_set_info(file, info));
  MPI_Info_free(&info);
  MPI_Barrier(MPI_COMM_WORLD);
  block = 0;
  ACCESSES(read, NOTHING, EXPECT)
  MPI_Datatype holes;
  MPI_Type_vector(N, 1, 2, MPI_INT, &holes);
  MPI_Type_commit(&holes);
  DO(MPI_File_set_view(file, 0, MPI_INT, holes, "native", MPI_INFO_NULL));
  DO(MPI_File_read_at(file, 3, data, N, MPI_INT, &status));
  MPI_Type_free(&holes);
  DO(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) DO(MPI_File_delete(argv[1], MPI_INFO_NULL));
  if (MPI_File_open(MPI_COMM_SELF, "no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) ==
      MPI_SUCCESS)
    printf("opened nothing\n");
  MPI_Finalize();
  return 0;
}
