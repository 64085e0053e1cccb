/* SPDX-License-Identifier: Apache-2.0 */
/* What output costs each rank, file by file and variable by variable: one pass over the records of
 * a trace file (docs/guide/output-cost.md has the definition, output_cost.cc the order of work).
 * Part of the C ABI of libweir-reader.so; python/weir/trace/_abi.py mirrors it. */
#ifndef WEIR_OUTPUT_COST_H
#define WEIR_OUTPUT_COST_H
#include "reader/weir_reader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A sum that grows in time, of each rank: points first_of[r] ... first_of[r + 1] - 1 at rising
 * timestamps at_ns, where it is total_ns, and grows by `slope` ns each ns from there. Before the
 * first point it is 0. */
typedef struct {
  const uint64_t *first_of;
  const int64_t *at_ns, *total_ns;
  const int32_t *slope;
} weir_reader_growing;

/* Arrays by process, by text, by label and by rank of one trace file. A label is a file that is
 * written, or a variable of it. */
typedef struct {
  uint32_t ranks, labels, threads, reserved;
  const uint32_t *rank_of;    /* of each process; WEIR_READER_NO_ROW leaves it out */
  const uint32_t *thread_of;  /* of each process: the thread whose calls count; 0: all */
  const uint32_t *is_plain;   /* of each process: not 0 where its rank calls POSIX and stdio alone,
                                 so that nothing lies within or between its calls */
  const uint32_t *label_of;   /* of each text; WEIR_READER_NO_ROW: of no output */
  const uint32_t *members_of; /* of each text: members of a communicator; 0: of anything else */
  const uint32_t *file_of;    /* of each label: the label of its file as a whole */
  /* Names that stand for one file after the other: behind cut_at_ns[first_cut_of[t]] and so on up
   * to first_cut_of[t + 1], rising, text t is of cut_label. */
  const uint64_t *first_cut_of;
  const int64_t *cut_at_ns;
  const uint32_t *cut_label;
  weir_reader_growing waited; /* how long other ranks have waited for the rank so far */
  weir_reader_growing waiting; /* how long the rank has waited in MPI for others so far */
  weir_reader_growing arriving; /* of that, for others that were not yet in MPI */
} weir_reader_output;

enum { WEIR_READER_OF_LABEL, WEIR_READER_OF_FILE, WEIR_READER_OF_RANK };

/* A row of what a rank does on one label; on one file with all that are its variables, by the label
 * of the file; on all files (label 0). calls, bytes: of the outermost calls; bytes as the program
 * gave them. Times in ns: mpi, library, system and waiting add up to the union of these calls: a
 * moment counts once in each row. gather and packing lie between them; waited: other ranks,
 * meanwhile. */
typedef struct {
  uint32_t rank, label;
  uint32_t of, reserved; /* WEIR_READER_OF_... */
  uint64_t calls, bytes;
  int64_t mpi_ns, library_ns, system_ns, gather_ns, packing_ns, waiting_ns, waited_ns;
} weir_reader_output_cost;

/* Rows by rank, at most `room`; *count: how many there are, which may be more. before:
 * weir_reader_scan or weir_reader_times. cost: one pass, with ranks shared out over
 * asked->threads; memory: some MiB for each thread, a hundred bytes for each label of a rank.
 * fails: -1 when memory or threads ran out. */
int weir_reader_output_costs(const weir_reader *reader, const weir_reader_clock *clock,
                             const weir_reader_output *asked, weir_reader_output_cost *rows,
                             uint64_t room, uint64_t *count);

#ifdef __cplusplus
}
#endif
#endif
