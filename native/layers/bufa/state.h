// SPDX-License-Identifier: Apache-2.0
// What bufa keeps of one file. Everything is touched with the file's lock held, but for what a job
// of the pool says of itself: a segment that loads and a block that is written belong to their job
// until it is over.
//
// The state itself is small: the memory for reading and that for writing come when a file has shown
// that it pays.
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "layers/writeback/arena.h"
#include "layers/flush_timer/flush_timer.h"
#include "layers/bufa/declared.h"
#include "layers/bufa/patterns.h"
#include "base/clock.h"
#include "base/syscall.h"
#include "layers/machinery/pool/pool.h"
#include "layers/machinery/stack/file.h"
#include "layers/machinery/stack/layer.h"

namespace weir::layers::bufa {

using namespace bufa_declared;
using stack::Layer;
using stack::Reason;
using stack::Result;
using stack::Transfer;

inline constexpr uint32_t kBuffers = kLargestBuffers;
inline constexpr uint32_t kSegments = 128;    // loading or loaded at once
inline constexpr uint32_t kStreams = 8;       // recognised at once
inline constexpr uint32_t kPiecesOfBlock = 64;
inline constexpr uint32_t kStridedAhead = 32;
// Reading ahead of a strided stream saves no request, and what is never used is one more than the
// program made: of one opening so many at most, or, when that is more, one for so many requests
// that came as they were expected.
inline constexpr uint64_t kStridedWaste = 4, kStridedSeen = 20;
// A stream has no more bytes ahead than the program has taken of it, and an opening has read no
// more bytes in vain than the program has taken of its streams, and this many (a block, if that is
// less). Gaps of up to a page are not in vain.
inline constexpr uint64_t kAllowance = 64u << 10;
// Of a stream's read-ahead; then four times as much, up to a block.
inline constexpr uint64_t kFirstChunk = 16u << 10;
inline constexpr uint64_t kQuickChunk = 64u << 10;  // of a file whose pages the kernel has
inline constexpr uint64_t kQuickRequest = 4096;  // of such a file: larger ones are not worth a copy
// What beginning to read ahead costs: done when the file has cost as much.
inline constexpr uint64_t kWorthNs = 20'000;
inline constexpr uint64_t kWorthWritingNs = 100'000;  // and to write behind
// So many in a row that the layer could not help, of such a file: it leaves.
inline constexpr uint32_t kUseless = 64;

constexpr uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
// 0 where the first one is not larger.
constexpr uint64_t difference(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

// Bytes read ahead, or about to be.
struct Segment {
  pool::Job job;  // first: the job is the segment
  Layer* layer;
  char* memory;
  uint64_t offset;
  uint32_t wanted;   // bytes asked for
  uint32_t valid;    // bytes that came; the job's until it is over
  uint32_t capacity;
  uint32_t block;    // of the reader's memory
  uint64_t served;   // bytes handed to the program
  uint64_t stamp;    // last use
  uint64_t took_ns;
  int8_t stream;
  uint8_t piece;     // of the block
  bool used;         // this place holds a segment
  bool loading;      // its job has not been looked at since it was submitted
  bool spent;        // its stream is past it
  bool strided;      // read ahead of a strided stream
};

struct Stream {
  Shape shape;
  int64_t step;
  uint64_t gap;    // forward, backward: the next request begins no further than this from where the
                   // last ended
  uint64_t taken;  // bytes that the program took of it
  uint64_t bytes;  // of a strided request
  uint64_t run;    // how many of these there were
  uint64_t expected;  // run of the last stream with this step that ended; 0: not known
  uint64_t next;   // forward, strided: where the next request begins; backward: where it ends
  uint64_t ahead;  // forward, strided: what has been asked for ends here; backward: begins here
  uint64_t chunk;
  uint32_t window;  // segments ahead of the program
  uint64_t stamp;
};

// What reading ahead has cost an opening and brought, in bytes.
struct Balance {
  uint64_t asked;   // of segments
  uint64_t served;  // of these to the program; again each time
  uint64_t gaps;    // between requests that one segment served, a page for each request at most
  uint64_t passed;  // of streams, not from segments
};

// One buffer's worth of memory: whole, or in pieces of one size.
struct ReadBlock {
  uint64_t taken;  // pieces; whole: 1
  uint32_t piece_bytes;
};

struct Reader {
  Segment segments[kSegments];
  ReadBlock blocks[kBuffers];
  Stream streams[kStreams];
  Balance balance;
  uint32_t high;     // segments ever used
  uint64_t strided_seen, strided_wasted;  // requests that strided streams expected; segments read
                                          // ahead of such in vain
  uint64_t clock;    // requests that the window did not serve
  char* memory;
  uint64_t memory_bytes;
};

enum class BlockState : uint8_t { kFree, kDirty, kWriting };

// A block of the arena while it belongs to this file.
struct WriteBlock {
  pool::Job job;  // first
  Layer* layer;
  char* data;
  uint64_t offset;  // of its byte 0 in the file
  writeback::Range
      ranges[writeback::kRanges];  // what the program wrote; mapped: only the last of it
  uint32_t count;
  uint32_t end;      // mapped: of the last dirty byte
  uint32_t gap;      // mapped: all bytes before it are dirty
  uint32_t
      done;  // mapped: what its job has written ends here, and is marked clean when that is over
  int arena_block;
  int32_t error;     // of its last writing, positive
  uint32_t ticket;   // appending: its turn
  uint64_t stamp;
  BlockState state;
  uint8_t age;
  bool failed;
  bool full;         // to be written soon
  bool mapped;       // more ranges than a list has: the arena's map has them
};

struct Writer {
  WriteBlock blocks[kBuffers];
  writeback::Arena* arena;
  int slot;
  uint32_t used;        // blocks not free
  uint32_t filled;      // counts blocks as they become full
  uint32_t filled_seen; // when they were last looked at
  uint32_t looks;       // at which more had become full
  uint32_t high;
  uint64_t clock;
  uint32_t next_ticket; // appending: to be given
  uint32_t turn;        // whose it is; futex
  int32_t append_error; // a block failed: those behind it must not overtake it
  bool appending;       // what is dirty is to be appended
};

struct State {
  // What a read served from memory needs: the segment it is in.
  uint64_t window_offset, window_bytes;
  const char* window_memory;
  uint64_t window_begin, window_end;  // of the last request served
  uint64_t window_served;
  uint64_t window_from, window_hits;  // where the request that opened it ended (backward: began),
                                      // and the count of hits then
  // What a write that goes on in its block needs.
  WriteBlock* current;
  uint64_t write_limit;    // larger requests are not buffered as a matter of course

  uint64_t block_bytes;
  uint32_t buffers;
  bool direct, always;
  bool inline_jobs;        // a layer below must have the file's lock: no job runs in the pool
  bool no_writer;          // it cannot be had: writes go through
  uint32_t trouble;        // a block could not be written; set by jobs
  int32_t window_segment;
  uint64_t known_size;     // reading ahead ends here
  // The file below ends here, or before it, as far as this opening knows, which may write it: where
  // the system said that it does, and behind what has gone down since. kUnknownEnd: it has to be
  // asked.
  uint64_t below_end;
  uint64_t below_ns;       // when the system last said so
  uint64_t spent_ns;  // on requests passed on: beginning is worth it when they have cost as much
  int32_t quick;      // above 0: the kernel answers from memory. Counted up slowly and down fast
  uint32_t useless;        // requests in a row that were passed on
  uint32_t passing;        // requests of other threads that are passed on without the lock; futex
  int twin;                // O_DIRECT descriptor, -1: none
  uint64_t retry_ns;       // no daemon is looked for before this time
  bool noted;              // that requests are passed on
  History history;
  Reader* reader;
  Writer* writer;
  Layer* layer;
  flush_timer::Member flush_timer;
};

inline constexpr uint64_t kUnknownEnd = ~uint64_t{0};
// Bytes up to `end` are about to go down.
inline void raise_end(State& s, uint64_t end) {
  if (end > s.below_end) s.below_end = end;
}

inline State& state_of(Layer& l) { return *static_cast<State*>(l.state()); }
inline void count(Layer& l, Statistic what, uint64_t by = 1) { l.statistics[what] += by; }
inline void count_shared(Layer& l, Statistic what, uint64_t by) {
  __atomic_fetch_add(&l.statistics[what], by, __ATOMIC_RELAXED);
}

// Lists and memory are about to change: a signal handler that jumped away (siglongjmp) would leave
// them half changed. What the program touches there is its own memory, whose faults go on to it.
class Changing : base::SignalsBlocked {
 public:
  Changing() : base::SignalsBlocked(base::kFaults) {}
};

// measure.cc: clocks, and what they say of the file below.
using base::now_ns;
void learn(State&, uint64_t bytes, uint64_t ns);
inline bool quick(const State& s) { return s.quick > 0; }
// Waits for a job and counts how long.
void wait_for(Layer&, pool::Job&);
// A request passed on as it is, timed; without the lock where that is possible.
Result pass_read(Layer&, const Transfer&,
                 bool alone);  // alone: the layer has nothing to do with it meanwhile
Result pass_write(Layer&, const Transfer&, bool alone);
// Waits for requests that are passed on without the lock.
void wait_for_passing(State&);
// The layer was of no use: leaves at last.
void of_no_use(Layer&, Reason);

// memory.cc
bool begin_reader(State&);
void end_reader(State&);
// A free segment with `bytes` of memory, in pieces of `piece_bytes` (block_bytes: a whole one);
// null when what lies there is still wanted.
Segment* allocate(State&, uint64_t bytes, uint64_t piece_bytes, int stream);
void drop(State&, Segment&);  // not while it loads
void close_window(State&);

// blocks.cc
// To the pool; or runs it here, with signals blocked: a jump out of it would leave it half done.
// False: it has run.
bool submit(State&, pool::Job&);

// ahead.cc: which segments a request needs, and which its stream will.
// The stream that expected this request; null: none.
Stream* expecting(State&, uint64_t offset, uint64_t bytes);
Stream* begin_stream(State&, Found, uint64_t offset, uint64_t bytes);
// False: the opening has read so much in vain that the request is passed on.
bool plan(Layer&, Stream&, uint64_t offset, uint64_t bytes);
Segment* find(const State&, uint64_t offset);

// reading.cc
Result read(Layer&, const Transfer&);
void load(Segment&);          // in this thread
void settle(State&, Segment&);  // its job is over: waits at need
void drop_all(Layer&);
// The program has written [offset, offset + bytes): what was read ahead of it is brought up to
// date.
void patch(Layer&, const char* data, uint64_t bytes, uint64_t offset);

// writing.cc
Result write(Layer&, const Transfer&);
Result flush(Layer&);
bool begin_writer(Layer&);
// Issues and waits: nothing is dirty, or it has failed twice and is given up (deferred).
void write_all(Layer&);
// [offset, offset + bytes) of them alone.
void write_range(Layer&, uint64_t offset, uint64_t bytes);
// Blocks whose writing is over are free again.
void reap(Layer&);
void issue(Layer&, WriteBlock&);
// A full one: a little later while there is room, so that a dump that fits is not slowed by its own
// writing.
void issue_full(Layer&, WriteBlock&);
void issue_all_full(Layer&);
bool issue_after_filling(Layer&);  // false: more of them come still
void end_writer(Layer&);
bool any_dirty(const State&);
uint64_t dirty_end(const State&);
// What the program wrote of a block: the first range that ends behind byte `from`, cut to begin
// there. False: none.
bool next_range(const State&, const WriteBlock&, uint32_t from, writeback::Range* to);
// The first block with bytes in [offset, offset + bytes), by offset; null: none.
WriteBlock* first_dirty(const State&, uint64_t offset, uint64_t bytes);
// Copies what is dirty over what was read from below.
void overlay(const State&, char* to, uint64_t bytes, uint64_t offset);

// blocks.cc
// The arena block that takes bytes at `offset`; null: none to be had.
WriteBlock* block_for(Layer&, uint64_t offset);
// One step towards a free buffer: false when none is in use.
bool make_room(Layer&);
void retry_failed(Layer&);

// flush_timer.cc: dirty blocks are written after a second, whatever the program does.
void begin_flush_timer(Layer&);
void end_flush_timer(Layer&);
void look_soon();  // for full blocks

// direct.cc
void open_twin(Layer&);
void close_twin(Layer&);
// The descriptor for a request of the layer's own: the twin when it is aligned for it.
int descriptor_for(const State&, const void* memory, uint64_t bytes, uint64_t offset);

}  // namespace weir::layers::bufa
