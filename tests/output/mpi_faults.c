// SPDX-License-Identifier: Apache-2.0
// A call fails before it does anything, as MPI_ERRORS_RETURN lets it; where other ranks would wait
// for it without end (MPI_Comm_split, MPI_Win_create), after it has done all. With
// MPI_FAULT_SEPARATE set, windows follow the memory model MPI_WIN_SEPARATE: others fetch from a
// public copy, which MPI_Win_sync brings up to date, and MPI_WIN_MODEL says so.
#define _GNU_SOURCE
#include "mpi_faults.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static long wanted, calls, syncs, blocking;
static int later;
static const char *failed = "";

void mpi_fault_arm(long k, int all_later) {
  wanted = k;
  later = all_later;
  calls = 0;
  failed = "";
}
long mpi_fault_calls(void) { return calls; }
const char *mpi_fault_failed(void) { return failed; }
long mpi_fault_syncs(void) { return syncs; }
long mpi_fault_blocking(void) { return blocking; }

static int is_weir(const void *caller) {
  Dl_info info;
  return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libweir");
}

static int fails(const char *call, const void *caller) {
  if (!is_weir(caller)) return 0;
  calls++;
  if (wanted == 0 || (calls != wanted && !(later && calls > wanted))) return 0;
  if (!*failed) failed = call;
  return 1;
}

// The same, of a call that waits for all ranks without a time limit.
static int fails_blocking(const char *call, const void *caller) {
  const int failing = fails(call, caller);
  if (is_weir(caller)) blocking = calls;
  return failing;
}

#define CALLER __builtin_return_address(0)
#define BEFORE(name, parameters, arguments) \
  int name parameters { return fails(#name, CALLER) ? MPI_ERR_OTHER : P##name arguments; }
#define AFTER(name, parameters, arguments) \
  int name parameters { \
    const int code = P##name arguments; \
    return code == MPI_SUCCESS && fails_##name(#name, CALLER) ? MPI_ERR_OTHER : code; \
  }
#define fails_MPI_Comm_split fails_blocking
#define fails_MPI_Win_lock_all fails
// Counted when it finds something.
#define POLL(name, parameters, arguments, found) \
  int name parameters { \
    const int code = P##name arguments; \
    return code == MPI_SUCCESS && (found) && fails(#name, CALLER) ? MPI_ERR_OTHER : code; \
  }

BEFORE(MPI_Isend,
       (const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r),
       (b, n, t, to, tag, c, r))
BEFORE(MPI_Irecv, (void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *r),
       (b, n, t, from, tag, c, r))
BEFORE(MPI_Recv, (void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status *s),
       (b, n, t, from, tag, c, s))
BEFORE(MPI_Rget,
       (void *b, int n, MPI_Datatype t, int from, MPI_Aint at, int m, MPI_Datatype u, MPI_Win w,
        MPI_Request *r),
       (b, n, t, from, at, m, u, w, r))
BEFORE(MPI_Comm_idup, (MPI_Comm c, MPI_Comm *n, MPI_Request *r), (c, n, r))
BEFORE(MPI_Ibarrier, (MPI_Comm c, MPI_Request *r), (c, r))
BEFORE(MPI_Ibcast, (void *b, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request *r),
       (b, n, t, root, c, r))
BEFORE(MPI_Igather,
       (const void *b, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, int root, MPI_Comm c,
        MPI_Request *r),
       (b, n, t, d, m, u, root, c, r))
BEFORE(MPI_Iallgather,
       (const void *b, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, MPI_Comm c,
        MPI_Request *r),
       (b, n, t, d, m, u, c, r))
BEFORE(MPI_Ialltoall,
       (const void *b, int n, MPI_Datatype t, void *d, int m, MPI_Datatype u, MPI_Comm c,
        MPI_Request *r),
       (b, n, t, d, m, u, c, r))
BEFORE(MPI_Ireduce_scatter_block,
       (const void *b, void *d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request *r),
       (b, d, n, t, o, c, r))
BEFORE(MPI_Iallreduce,
       (const void *b, void *d, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request *r),
       (b, d, n, t, o, c, r))
AFTER(MPI_Comm_split, (MPI_Comm c, int colour, int key, MPI_Comm *n), (c, colour, key, n))
AFTER(MPI_Win_lock_all, (int assert, MPI_Win w), (assert, w))
POLL(MPI_Iprobe, (int from, int tag, MPI_Comm c, int *flag, MPI_Status *s), (from, tag, c, flag, s),
     *flag)
POLL(MPI_Test, (MPI_Request *r, int *flag, MPI_Status *s), (r, flag, s), *flag)
POLL(MPI_Testall, (int n, MPI_Request r[], int *flag, MPI_Status s[]), (n, r, flag, s), *flag)

static MPI_Comm freed[64];
static int number_freed;

int MPI_Comm_free(MPI_Comm *comm) {
  if (!is_weir(CALLER) || number_freed == (int)(sizeof freed / sizeof freed[0]))
    return PMPI_Comm_free(comm);
  freed[number_freed++] = *comm;
  *comm = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

int mpi_fault_freed(int *messages) {
  int ranks, there;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int *one = calloc((size_t)ranks, sizeof *one), *other = calloc((size_t)ranks, sizeof *other);
  // From each rank to each: what was sent before has come by then.
  PMPI_Alltoall(one, 1, MPI_INT, other, 1, MPI_INT, MPI_COMM_WORLD);
  free(one);
  free(other);
  *messages = 0;
  for (int i = 0; i < number_freed; i++) {
    for (int tries = 0; tries < 100; tries++) {
      MPI_Status status;
      PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, freed[i], &there, &status);
      if (!there) continue;
      char bytes[4096];
      PMPI_Recv(bytes, sizeof bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, freed[i],
                &status);
      ++*messages;
    }
  }
  return number_freed;
}

// The window's memory is the public copy.
static struct Copy {
  MPI_Win win;
  void *own, *public;
  size_t bytes;
} copies[64];

static int separate(void) { return getenv("MPI_FAULT_SEPARATE") != NULL; }

int MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm,
                   MPI_Win *win) {
  const int weir = is_weir(CALLER);
  struct Copy copy = {MPI_WIN_NULL, base, NULL, (size_t)size};
  if (weir && separate()) {
    copy.public = calloc(1, copy.bytes + 1);
    base = copy.public;
  }
  const int code = PMPI_Win_create(base, size, unit, info, comm, win);
  for (size_t i = 0; code == MPI_SUCCESS && copy.public && i < sizeof copies / sizeof copies[0];
       i++) {
    if (copies[i].public) continue;
    copies[i] = copy;
    copies[i].win = *win;
    break;
  }
  return code == MPI_SUCCESS && fails_blocking("MPI_Win_create", CALLER) ? MPI_ERR_OTHER : code;
}

int MPI_Win_sync(MPI_Win win) {
  if (fails("MPI_Win_sync", CALLER)) return MPI_ERR_OTHER;
  if (is_weir(CALLER)) syncs++;
  for (size_t i = 0; i < sizeof copies / sizeof copies[0]; i++) {
    if (copies[i].public && copies[i].win == win)
      memcpy(copies[i].public, copies[i].own, copies[i].bytes);
  }
  return PMPI_Win_sync(win);
}

int MPI_Win_free(MPI_Win *win) {
  const MPI_Win was = *win;
  const int code = PMPI_Win_free(win);
  for (size_t i = 0; i < sizeof copies / sizeof copies[0]; i++) {
    if (!copies[i].public || copies[i].win != was) continue;
    free(copies[i].public);
    copies[i].public = NULL;
  }
  return code;
}

int MPI_Win_get_attr(MPI_Win win, int key, void *value, int *flag) {
  static int model = MPI_WIN_SEPARATE;
  const int code = PMPI_Win_get_attr(win, key, value, flag);
  if (key == MPI_WIN_MODEL && separate()) *(int **)value = &model;
  return code;
}
