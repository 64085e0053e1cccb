/* SPDX-License-Identifier: Apache-2.0
 * What the C workloads share: options, time spent in I/O, data that is known beforehand, and the
 * line of results. All procedures are for the one thread of a rank; collective ones say so. */
#ifndef WEIR_WORKLOAD_H
#define WEIR_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define WORKLOAD_NEVER_RETURNS [[noreturn]]
extern "C" {
#else
#define WORKLOAD_NEVER_RETURNS _Noreturn
#endif

struct workload {
  const char *name;
  int rank, ranks;
  double io_wait_s;             /* inside I/O statements, this rank */
  double started, elapsed_s;    /* between two barriers: workload_start, workload_stop */
  uint64_t requests, bytes;     /* the program's own requests and what they moved */
  uint64_t wrong;               /* words that were not what was written */
};

/* kind: 'i' int64_t, 'd' double, 's' const char *, 'f' int that the option alone sets to 1. A table
 * ends with a null name. */
struct workload_option {
  const char *name;
  char kind;
  void *value;
  const char *meaning;
};

/* [collective] MPI_Init, then the command line. Ends the program with status 2 and one message for
 * what it does not know. */
void workload_begin(struct workload *w, const char *name, int *argc, char ***argv,
                    const struct workload_option *options);

/* [collective] Barriers around what is timed. */
void workload_start(struct workload *w);
void workload_stop(struct workload *w);

/* [collective] One line of results from rank 0, sums over all ranks:
 *   NAME: ranks=4 requests=10 bytes=10 io_wait_s=0.1 elapsed_s=0.1 mpp_s=0.4 wrong=0
 * mpp_s is the elapsed time of all ranks added up. Then MPI_Finalize; the status is 1 when anything
 * was wrong. */
int workload_end(struct workload *w);

/* Message and end of the whole job. */
WORKLOAD_NEVER_RETURNS void workload_fail(const struct workload *w, const char *file,
                                          const char *what);

/* The time now, in seconds; w->io_wait_s += workload_clock() - begun. */
double workload_clock(void);

/* Word number `index` of file or variable `stream`: anybody can compute what a reader must find. */
static inline uint64_t workload_word(uint64_t stream, uint64_t index) {
  uint64_t x = (stream << 40 ^ index) + 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

/* First of the n items that belong to rank t of `ranks`; the last one ends where rank t + 1 begins.
 */
static inline int64_t workload_first(int64_t n, int t, int ranks) { return n * t / ranks; }

#ifdef __cplusplus
}
#endif
#endif
