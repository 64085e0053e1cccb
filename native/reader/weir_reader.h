/* SPDX-License-Identifier: Apache-2.0 */
/* C ABI of libweir-reader.so: maps one trace file, checks it, and reduces it to tables in one pass.
 * Decides what is read and what is refused; what the tables mean together (files of several
 * processes, steps, ranks) is left to python/weir/analysis and python/weir/report. All structs are
 * plain and of fixed layout: python/weir/trace/_abi.py mirrors them.
 *
 * A reader belongs to one thread at a time. Arrays that it hands out live until
 * weir_reader_destroy. The file is assumed hostile: every length, offset and id is checked before
 * use; what is wrong becomes a problem, what is whole is read. */
#ifndef WEIR_READER_H
#define WEIR_READER_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_READER_BINS 36
#define WEIR_READER_BY_SIZE_LIMIT 1u /* RLIMIT_FSIZE */
#define WEIR_READER_BY_MEMORY 2u     /* no memory (RLIMIT_AS), or no descriptor to spare */

typedef struct weir_reader weir_reader;

typedef struct {
  uint32_t clock, level;
  uint64_t budget_bytes, end_bytes, file_bytes;
  uint64_t created_realtime_ns, created_mono_ns, created_ticks;
  double ns_per_tick;
  char node[64];
  uint32_t refused,
      refused_by; /* programs that found no room in the file; causes, of one at least */
} weir_reader_header;

typedef struct { /* a chunk that may be read: [offset, offset + 64 + entries * entry size) lies in
                    the mapping */
  uint64_t offset, size_bytes, entries;
  uint64_t log, sequence, taken_ticks;
  uint64_t first_ticks, last_ticks; /* events, after weir_reader_scan or weir_reader_times: least
                                       start, greatest end; first > last: no record */
  uint32_t kind, process, thread,
      disordered; /* process: index in the table of processes; disordered: ends fall back */
  uint32_t silent, is_checked; /* silent: some calls are no I/O: of MPI, of libraries, marks; known
                                  as the times are. is_checked: the reader's own */
} weir_reader_chunk;

typedef struct {
  uint64_t offset; /* of its chunk, valid when whole */
  uint64_t events, counted; /* records; calls in counters chunks */
  uint32_t page, whole; /* whole 0: the chunk is missing or damaged, only its number is known */
} weir_reader_process;

typedef struct {
  uint64_t offset;
  uint32_t length, is_file;
} weir_reader_text;

typedef struct {
  uint32_t process, id, text, source;
} weir_reader_name;

typedef struct { /* sorted by process, file, op, layer, flags; flags: BELOW, NESTED and OUTPUT alone
                  */
  uint32_t process, file;
  uint8_t op, layer, flags, is_file;
  uint32_t reserved;
  uint64_t calls, bytes, ticks, errors, first_ticks, last_ticks;
} weir_reader_row;

typedef struct {
  uint32_t process;
  uint8_t op, layer, flags, is_file;
  uint64_t by_size[WEIR_READER_BINS], by_duration[WEIR_READER_BINS];
} weir_reader_histogram;

typedef struct { /* Fortran statements of one unit on one file */
  uint32_t process, file;
  int64_t unit;
  uint32_t op, flags;
  uint64_t calls, bytes, ticks;
} weir_reader_unit;

typedef struct { /* a barrier left; index counts the barriers of the process */
  uint32_t process, index;
  uint64_t ranks, ticks;
} weir_reader_sync;

typedef struct {
  uint64_t offset, count; /* first place, how many alike in this chunk or stretch */
  uint32_t reason, reserved; /* text by weir_reader_reason */
} weir_reader_problem;

/* Line from ticks to ns: base_ns + ((ticks - origin_ticks) * multiplier >> 48), in 128 bits,
 * rounded down. */
typedef struct {
  uint64_t origin_ticks;
  int64_t base_ns;
  uint64_t multiplier;
} weir_reader_clock;

/* I/O in one slice of time: [0] reads, [1] writes, [2] anything else. busy_ns: of records within no
 * other record of their thread; calls: that the application made, where they began; bytes: moved at
 * the lowest level seen, evenly over the record. waiting_ns: in MPI's collectives, waits, receives,
 * probes and sends; of rows alone. */
typedef struct {
  uint64_t busy_ns[3], calls[3], bytes[2], waiting_ns;
} weir_reader_tile;

typedef struct { /* bin i is [origin_ns + (i << shift), origin_ns + (i + 1 << shift)); shift up to
                    52, bins up to 2^19, bins << shift up to 2^62 */
  int64_t origin_ns;
  uint64_t bins;
  uint32_t shift, rows, groups, threads;
} weir_reader_window;

#define WEIR_READER_NO_ROW 0xffffffffu

typedef struct { /* whose the records of one file of a process are: a group is a name and a rank */
  uint32_t process, file, group;
} weir_reader_read_of;

typedef struct { /* read at known offsets, and how many different bytes that was */
  uint64_t known_bytes, distinct_bytes;
} weir_reader_extent;

typedef struct { /* own_ns: of records within no other record of their thread; from when until when
                    bytes moved, first > last: none did */
  uint64_t bytes, own_ns;
  int64_t first_ns, last_ns;
} weir_reader_use;

typedef struct { /* what offsets are compared with; 0: not known */
  uint32_t block_bytes, stripe_bytes;
} weir_reader_alignment;

/* Transfers of one file by one process, [0] reads and [1] writes, in the order of their ends.
 * sequential: offset > the last byte of the transfer before; consecutive: offset == that byte + 1;
 * both as Darshan counts them: the last byte is 0 after an open. The others part all calls: first
 * after an open, adjacent to the transfer before, strided (behind it by a distance that comes at
 * least twice, and in one of 16 such calls), backward (before its end, by such a distance), random,
 * and at an unknown offset. */
typedef struct {
  uint32_t process, file;
  uint64_t switches; /* between reading and writing */
  uint64_t calls[2], bytes[2], sequential[2], consecutive[2];
  uint64_t first[2], adjacent[2], strided[2], backward[2], random[2], unknown[2];
  uint64_t off_block[2], off_stripe[2]; /* offset is no multiple */
  uint64_t begin[2], end[2];            /* of all bytes */
  uint64_t ticks[2], longest_ticks[2];
} weir_reader_access;

enum weir_reader_common_kind {
  WEIR_READER_READ_SIZE, WEIR_READER_WRITE_SIZE, WEIR_READER_READ_STRIDE, WEIR_READER_WRITE_STRIDE,
  WEIR_READER_READ_BACKWARD, WEIR_READER_WRITE_BACKWARD /* without their sign */
};

typedef struct { /* a size, or a stride: bytes between two transfers; file: index of its access */
  uint64_t value, count;
  uint32_t file, kind;
} weir_reader_common;

/* What a process received from a rank of MPI_COMM_WORLD (routine 0; peer: the sender, all ones for
 * an unknown one), or its own parts in a collective routine (peer: 1 where it was the root). file:
 * id of the communicator. */
typedef struct {
  uint32_t process, file, routine, peer;
  uint64_t calls, bytes;
} weir_reader_exchange;

enum weir_reader_array {
  WEIR_READER_CHUNKS, WEIR_READER_PROCESSES, WEIR_READER_TEXTS, WEIR_READER_NAMES, WEIR_READER_ROWS,
  WEIR_READER_HISTOGRAMS, WEIR_READER_UNITS, WEIR_READER_SYNCS, WEIR_READER_PROBLEMS,
  WEIR_READER_EXCHANGES /* after weir_reader_exchanges */
};

/* SHA-256 of each Python file that declares this interface (python/weir/_native.py, which compares
 * them), as it was at the build. */
const char *weir_reader_built_for(void);

/* Map a trace file and walk its chunks, processes and names (not yet its records).
 * fails:  returns NULL; message says what and at which byte; *place is that byte, all ones when
 * there is none. */
weir_reader *weir_reader_create(const char *path, char *message, uint64_t message_bytes,
                                uint64_t *place);
/* Frees the reader, its mapping and all arrays that it handed out, and nulls the pointer. */
void weir_reader_destroy(weir_reader **reader);

/* Count text i as the name of no file where excluded[i] is not 0. Before every pass over records.
 */
void weir_reader_exclude(weir_reader *reader, const uint8_t *excluded, uint64_t count);
/* One pass over all records and counters on so many threads: rows, histograms, units, syncs, and
 * the chunks' times. Idempotent.
 * fails: -1 when memory or threads ran out. */
int weir_reader_scan(weir_reader *reader, uint32_t threads);

/* The array syncs alone, before a scan: what clocks are aligned by. Nothing to do after a scan.
 * fails: -1 when memory ran out. */
int weir_reader_syncs(weir_reader *reader);

/* Frees rows and histograms, which are empty from now on. Nothing that was handed out of them may
 * be used any more. */
void weir_reader_forget(weir_reader *reader);

/* The rows of the processes from `first` to before `end`, whether they were forgotten or not, and
 * whatever other threads do with the reader. *count: how many they are. before: end is at most the
 * number of processes. cost: a pass over their records.
 * Returns them, or NULL when memory ran out; weir_reader_free_rows gives them back. */
weir_reader_row *weir_reader_rows_of(const weir_reader *reader, uint32_t first, uint32_t end,
                                     uint64_t *count);
void weir_reader_free_rows(weir_reader_row *rows);

/* The chunks' times alone, without the tables. Nothing to do after a scan, nor after tiles that had
 * a row for each process.
 * fails: -1 when memory or threads ran out. */
int weir_reader_times(weir_reader *reader, uint32_t threads);

/* How much each process received by MPI: the array exchanges. before: weir_reader_scan or
 * weir_reader_times. cost: one pass over all records.
 * fails: -1 when memory or threads ran out. */
int weir_reader_exchanges(weir_reader *reader, uint32_t threads);

/* The process gives up the pages of the mapping, which come back when they are read, and the array
 * exchanges. */
void weir_reader_leave(weir_reader *reader);

void weir_reader_get_header(const weir_reader *reader, weir_reader_header *out);
/* The mapped file, size bytes. The file may still grow or change: whoever reads it copies first. */
const void *weir_reader_bytes(const weir_reader *reader, uint64_t *size);
/* An array (enum weir_reader_array): count entries of entry_bytes each. Rows, histograms, units and
 * syncs are empty before weir_reader_scan; a scan adds problems, and may move that array. NULL and
 * zeros: there is no such array, or it is empty. */
const void *weir_reader_get(const weir_reader *reader, uint32_t array, uint64_t *count,
                            uint64_t *entry_bytes);
/* The records of a chunk of events, by where it begins in the file; of damaged ones all is zero. */
const char *weir_reader_records(weir_reader *reader, uint64_t chunk_offset);
/* The text of a problem's reason. Static. */
const char *weir_reader_reason(uint32_t reason);

/* Index in WEIR_READER_TEXTS of the name of each (process, id), those of forked children that are
 * their parents' included; all ones for a lost name. before: every process is an index in
 * WEIR_READER_PROCESSES. */
void weir_reader_texts_of(const weir_reader *reader, const uint32_t *processes, const uint32_t *ids,
                          uint64_t count, uint32_t *out);

/* All texts in their order, each with a zero behind it and none within: as many bytes as their
 * lengths together, and one more for each. */
void weir_reader_copy_texts(const weir_reader *reader, char *out);

/* Name of a routine of MPI, the upper half of the size of MPI's records; NULL when there is none of
 * that value. */
const char *weir_reader_mpi_routine(uint32_t value);
/* The functions of netCDF-C, PnetCDF and HDF5 that records name by a number, by index from 0: name,
 * number and layer; whether ranks call it together: 'y', 'n', 'v' (it varies). Null: no more. */
const char *weir_reader_function(uint32_t index, uint32_t *number, uint32_t *layer,
                                 char *collective);

/* Operation's name, layer and class ('R' 'W' 'O' 'C' 'M' 'X'); NULL when there is none of that
 * value. */
const char *weir_reader_op(uint32_t value, uint32_t *layer, char *op_class);

/* What the size of its records holds: data, length, filetype, ranks, requests, statistic, lost or
 * number (native/wire/sizes.def); NULL when there is none of that value. */
const char *weir_reader_op_size(uint32_t value);

/* Name of a kind of layer (its layer.toml), and name and unit of what it counts (index below 32);
 * NULL when there is none. */
const char *weir_reader_layer(uint32_t kind);
const char *weir_reader_statistic(uint32_t kind, uint32_t index, const char **unit);

/* Exact length in ns of the union of the intervals of all records (markers and class X left out) of
 * several files. masks[i]: a byte per process of reader i, 0 leaves it out, or NULL. all_names 0:
 * records of pipes, devices, ... are left out. Results: total, first start and last end in ns;
 * records counts what was merged.
 * cost: one pass on so many threads (two where ends fall back and no scan or weir_reader_times has
 *   reported so); memory: some hundred bytes for each chunk, and some thousand records a thread.
 * fails: -1 when memory or threads ran out. */
int weir_reader_active(weir_reader *const *readers, const weir_reader_clock *clocks,
                       const uint8_t *const *masks, uint64_t count, uint32_t all_names,
                       uint32_t threads, int64_t *total_ns, int64_t *first_ns, int64_t *last_ns,
                       uint64_t *records);

/* I/O over time of several files: by_row has rows x bins tiles, by_group groups x bins, zeroed by
 * the caller. rows_of[i]: a row per process of reader i, WEIR_READER_NO_ROW leaves it out.
 * groups_of[i]: a group per text of reader i, or NULL for group 0; the files of group 255 count
 * nowhere. Rows and groups that the window does not have are left out, as is what lies outside it.
 * cost: one pass, on window->threads threads; their copies of tiles take up to 64 MB. fails: -1
 * when memory or threads ran out or the window is impossible. */
int weir_reader_tiles(weir_reader *const *readers, const weir_reader_clock *clocks,
                      const uint32_t *const *rows_of, const uint8_t *const *groups_of,
                      uint64_t count, uint32_t all_names, const weir_reader_window *window,
                      weir_reader_tile *by_row, weir_reader_tile *by_group);

/* Which records of several trace files are looked at: of the files that files[i] (files_count[i]
 * rows, sorted by process and file) lists of reader i. Bytes move in those of POSIX and stdio. */
typedef struct {
  weir_reader *const *readers;
  const weir_reader_clock *clocks;
  const weir_reader_read_of *const *files;
  const uint64_t *files_count;
  uint64_t count;
  uint32_t threads;
} weir_reader_reads;

/* What each group did before, between and after timestamps in ns: those of group g are
 * cuts[first_cut[g]] ... cuts[first_cut[g + 1] - 1], rising; it is added to uses[first_cut[g] + g]
 * and the places behind. A record counts where it begins, before a cut at that timestamp. op_class:
 * 'R', 'W', or 'M' for all other I/O, which moves no bytes. before: each reader has been scanned;
 * files name no group that first_cut does not have; uses without anything have first > last. cost:
 * one pass. fails: -1 when memory or threads ran out. */
int weir_reader_uses_between(const weir_reader_reads *reads, char op_class,
                             const uint64_t *first_cut, uint64_t groups, const int64_t *cuts,
                             weir_reader_use *uses);

/* How many different bytes each group read, and all groups of a name together; added to what
 * of_groups and of_names hold. name_of: of each group, rising. room: how many disjoint stretches of
 * files may be in memory at once; where there are more, it takes a pass for each part that fits.
 * before: as above. fails: -1 when memory or threads ran out. */
int weir_reader_read_extents(const weir_reader_reads *reads, const uint32_t *name_of,
                             uint64_t groups, uint64_t room, weir_reader_extent *of_groups,
                             uint64_t *of_names);

/* Where a reading of raw records is: the next chunk and record in it, the thread of that record; it
 * ends before end_chunk. Begin with zeros and the number of chunks. */
typedef struct {
  uint64_t chunk, record, end_chunk;
  uint32_t thread, reserved;
} weir_reader_cursor;

/* Columns of raw records, arrays of the caller. offset: -1 unknown, a unit of Fortran for its
 * records. bytes: requested, when the call failed. file: id in the process, 0 none; text: index in
 * WEIR_READER_TEXTS, all ones for none or a lost name. */
typedef struct {
  int64_t *start_ns, *duration_ns, *offset, *bytes;
  uint32_t *process, *thread, *file, *text;
  uint8_t *op, *layer, *flags, *error;
} weir_reader_columns;

/* The next records as rows, at most `room`, chunk by chunk in the order in which they were made;
 * markers of threads and barriers, places not written and what is damaged are left out, as are
 * operations that have no byte other than 0 in wanted[256] and processes that have none in chosen,
 * by process (NULL: none is left out). Returns the number of rows; fewer than room: the cursor is
 * at its end, and behind the last record that is written: of a trace that grows, the next reader
 * of the file goes on from there. Needs no scan. */
uint64_t weir_reader_events(weir_reader *reader, const weir_reader_clock *clock,
                            weir_reader_cursor *cursor, uint64_t room, const uint8_t *wanted,
                            const uint8_t *chosen, const weir_reader_columns *out);

/* A process whose calls count. Its line is that of one thread, or of all where is_whole. before:
 * weir_reader_scan or weir_reader_times. */
typedef struct {
  const weir_reader *reader;
  weir_reader_clock clock;
  uint32_t process, thread, is_whole, reserved;
} weir_reader_member;

/* Unions of the calls of a rank: I/O on files of its line; that and its line's calls of MPI; that
 * and its line's calls of netCDF, HDF5, PnetCDF and libweir; I/O of all threads; that and what the
 * line's are; and I/O of the line and of all threads that are not among `callers`. Sums: the time
 * of calls of I/O that lie within no other of their thread, of the line and of all threads. */
enum weir_reader_union {
  WEIR_READER_LINE_IO, WEIR_READER_LINE_CALLS, WEIR_READER_LINE_LIBRARY, WEIR_READER_LINE_ALL_IO,
  WEIR_READER_LINE_ALL_CALLS, WEIR_READER_LINE_ALL_LIBRARY, WEIR_READER_LINE_BESIDE_IO,
  WEIR_READER_LINE_UNIONS,
  WEIR_READER_LINE_TIME = WEIR_READER_LINE_UNIONS, WEIR_READER_LINE_ALL_TIME,
  WEIR_READER_LINE_FIGURES
};

typedef struct {
  const weir_reader_member *members; /* of one rank */
  uint64_t members_count;
  const uint32_t *callers; /* rising */
  uint64_t callers_count;
  const int64_t *at_ns; /* timestamps, rising */
  uint64_t timestamps;
  uint64_t room; /* intervals of a union that may wait in memory before they are joined */
  uint32_t wanted, reserved; /* a bit for each union and sum */
  int64_t since_ns; /* what lies before it does not count, and is not read; INT64_MIN: all counts */
} weir_reader_line;

/* Lengths in ns of the wanted unions and sums from since_ns up to each timestamp:
 * lengths[union * timestamps + i], zeros before. lasts, unless NULL: where the last I/O of any
 * thread that began before each timestamp ends, cut there; the least number where there is none.
 * cost: one pass over the calls from since_ns to the last timestamp, some 20 ns each, and over what
 * else their chunks have; memory for some room or for the calls of a few chunks. fails: -1 when
 * memory ran out. */
int weir_reader_line_lengths(const weir_reader_line *line, int64_t *lengths, int64_t *lasts);

typedef struct { /* what a row of an answer is about: calls of one operation on one file */
  uint32_t file, op, row;
} weir_reader_call_row;

/* Cells of time, between each edge and the next, and I/O calls on files of the lines of members
 * that lie within no other call of their thread. Those of member i count whose file and operation
 * are in rows[first_row[i]] ... rows[first_row[i + 1] - 1], sorted by file and operation. */
typedef struct {
  const weir_reader_member *members;
  uint64_t members_count;
  const uint64_t *first_row;
  const weir_reader_call_row *rows;
  const int64_t *at_ns; /* edges, rising; two at least */
  uint64_t count;
} weir_reader_edges;

/* How long calls of each row lasted in each cell, added to cells[row * (count - 1) + cell]. cost:
 * one pass over the calls of chunks between the edges. fails: -1 when memory ran out. */
int weir_reader_call_time(const weir_reader_edges *edges, uint64_t rows, int64_t *cells);
/* What each row costs, added to out[row * costs + cost]: sums[edge * costs + cost] rises with a
 * call that lasts from edge to edge. cost, fails: as above. */
int weir_reader_call_shares(const weir_reader_edges *edges, uint64_t costs, const double *sums,
                            double *out);

/* count values each: ticks of the trace clock as ns since 1970, and lengths in ticks as ns. */
void weir_reader_timestamps(const weir_reader_clock *clock, const uint64_t *ticks, uint64_t count,
                            int64_t *out_ns);
void weir_reader_lengths(const weir_reader_clock *clock, const uint64_t *ticks, uint64_t count,
                         uint64_t *out_ns);

/* A run as its calls of MPI: operations, by strand (a thread that calls MPI) and time, and what
 * each waits for. An operation may be of no length. joins: collectives to which it comes when it
 * starts; waits: operation whose start it waits for, or the complement of a collective: then for
 * all who have come to it when the operation ends. The first operation of a strand begins when what
 * it waits for is there, and as long behind it as measured. Those of operation i are
 * joins[first_join[i]] ... joins[first_join[i + 1] - 1], waits likewise. */
typedef struct {
  uint64_t ops, strands, instances; /* ops below 2^31 */
  int64_t *start_ns, *end_ns;       /* of each operation */
  const uint32_t *first_op;         /* of each strand, and behind the last one */
  const uint32_t *first_join;
  const uint32_t *joins;
  const uint32_t *first_wait;
  const int32_t *waits;
} weir_reader_replay;

/* A piece of the critical path, the last one first: in operation op from the start of `before` (op
 * itself when it waited for nobody) to its end; then what lies between `before` and the operation
 * in front of it, of whose I/O the share `price` counts in what the run would save. */
typedef struct {
  uint32_t op, before;
  double price;
} weir_reader_path_piece;

typedef struct {
  int64_t finish_ns, replayed_finish_ns; /* when the last strand ends, measured and with free I/O */
  uint64_t not_followed; /* waits for what had not begun when the waiting operation ended */
  uint64_t path_length;
  weir_reader_path_piece *path; /* room for one piece for each operation, or NULL */
  /* Of each operation the one whose start it waited for longest, WEIR_READER_NO_ROW none; or NULL.
   */
  uint32_t *awaited;
} weir_reader_replayed;

/* Moves operations of a strand that overlap apart, and gives the order in which the starts and ends
 * of all are gone through, 2 * ops numbers: operation << 1, and 1 for its end. fails: -1 when
 * memory ran out. */
int weir_reader_replay_order(const weir_reader_replay *run, uint32_t *order);

/* When the run would end if free_ns[i] of the time in front of operation i (and behind the one
 * before it) were not there. Measured durations remain: of computing, and of each operation from
 * the moment when whom it waited for had come. cost: some 20 ns for each operation. fails: -1 when
 * memory ran out. */
int weir_reader_replay_run(const weir_reader_replay *run, const uint32_t *order,
                           const int64_t *free_ns, weir_reader_replayed *result);

/* Waits of strands for others, as a replay found them, by strand and time and apart: stay i of
 * strand[i], for awaited[i]. asked: strands at timestamps of which the answer is wanted. The arrays
 * are used until weir_reader_causes_destroy. */
typedef struct {
  uint64_t strands, count, asked; /* count, asked: below 2^31 */
  const uint32_t *strand, *awaited;
  const int64_t *begin_ns, *until_ns;
  const uint32_t *asked_strand;
  const int64_t *asked_ns;
} weir_reader_stays;

/* Of a strand up to a timestamp, ns: its waits in which the awaited strand was in I/O (any thread
 * of its rank) or computed, or waited itself for one that did, however many lie between; and its
 * own I/O and calls (WEIR_READER_LINE_...). */
typedef struct {
  int64_t io_wait_ns, imbalance_ns, io_ns, calls_ns, all_calls_ns;
} weir_reader_caused;

typedef struct weir_reader_causes weir_reader_causes;

/* Goes through all waits in the order of time, to find at which timestamps lines are needed. NULL:
 * memory ran out. */
weir_reader_causes *weir_reader_causes_create(const weir_reader_stays *stays);
void weir_reader_causes_destroy(weir_reader_causes **causes);
/* Those of all strands, strand by strand, rising within each. *first: of each strand the place of
 * its first one, and how many there are. */
const int64_t *weir_reader_causes_points(const weir_reader_causes *causes, const uint64_t **first);
/* Lines of the strands from `low` to before `high`: WEIR_READER_LINE_IO, _CALLS, _ALL_IO and
 * _ALL_CALLS at their points, copied; some may be one array. One thread at a time. fails: -1 when
 * memory ran out. */
int weir_reader_causes_give(weir_reader_causes *causes, uint64_t low, uint64_t high,
                            const int64_t *const lengths[4]);
/* before: the lines of all strands were given. at: of all that is asked. fails: -1 when memory ran
 * out. */
int weir_reader_causes_run(weir_reader_causes *causes, weir_reader_caused *at);

#ifdef __cplusplus
}
#endif
#endif
