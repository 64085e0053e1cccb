// SPDX-License-Identifier: Apache-2.0
// This process in the trace: its chunk, its names, whether it records at all. Survives fork in all
// its forms: a page that the kernel wipes in the child says that the child must begin anew.
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "trace/names.h"
#include "trace/trace_file.h"
#include "wire/format.h"

namespace weir::trace {

// What the kernel counted for this process and for the children that it waited for.
struct Figures {
  wire::IoFigures io;
  wire::StorageFigures storage;
  uint64_t text_bytes;  // read to find them: not in these figures, but in those to come
};

// Of why a program leaves no records: with the library that it is given instead of this one.
constexpr size_t kReasonBytes = 256;

class Process {
 public:
  // Begins recording. 0, or -errno; then the process stays idle. speaks: as TraceFile::refuse has
  // it.
  long begin(const Settings& settings, bool* speaks);

  // A chunk with its header filled, or null (counted by the caller as it sees fit).
  // Threads: any, with its signals held back (SignalsBlocked). The chunk stays mapped until
  // give_back(). Cost: an open of the trace file, storage for `size` bytes, a mapping, a close.
  wire::ChunkHeader* take_chunk(wire::Kind kind, Use use, uint64_t size, uint32_t entry_bytes,
                                Refusal* refusal, void** over = nullptr);
  void give_back(wire::ChunkHeader* chunk);  // unmaps; what it holds stays in the file

  void set_rank(int rank, int ranks, wire::RankSource source, wire::MpiKind mpi);
  void set_world(uint64_t world);
  // May be called more than once: the last call holds, but the end by a signal stays. Also in a
  // signal handler. Cost: /proc/self/io is read, and the clocks.
  void end(wire::End how);
  // Another program takes the place of this one, if it can be started: what the kernel counted so
  // far.
  void before_exec();
  // A program is about to be started (docs/formats/trace.md, section 3.2). why: empty, or what
  // makes it likely that it leaves no records. Also in a forked child that has no chunk of its own.
  void note_start(uint64_t pid, uint64_t ticks, base::Text why, base::Text program);
  // A child was waited for. signal: that killed it, or 0; figures: what it and the children that it
  // waited for brought in, null: unknown.
  void note_end(uint64_t pid, uint64_t ticks, uint64_t signal, const Figures* figures);
  // False where the kernel refuses them. They count as read by the recorder.
  bool read_figures(Figures* to);
  // Empty, or why a program that is started with this environment will leave no records; lies in
  // `to`, and is cut to its size (kReasonBytes).
  base::Text why_unseen(char* const* environment, char* to, size_t size) const;
  void forked();  // in the child
  void stop();  // for good; the process goes on unseen
  void count_lost(uint64_t events) { base::fetch_add(&chunk_->lost_events, events); }
  // Bytes that a stream took from the system and that the program did not read, or (negative) reads
  // once more.
  void count_passed_over(int64_t bytes) { base::fetch_add(&chunk_->passed_over, bytes); }
  void count_own_read(uint64_t bytes) { base::fetch_add(&chunk_->own_read, bytes); }
  void count_failure() { base::fetch_add(&chunk_->failures, uint64_t{1}); }
  // For the process, for good; a higher level than now changes nothing. Threads: any.
  void step_down(wire::Level to);
  wire::Level level() const { return base::load_relaxed(&chunk_->level_now); }

  Names& names() { return names_; }
  uint32_t number() const { return number_; }
  uint64_t launch() const { return file_.launch(); }

  // True when this process records. Called where the wiped page says no: off, undecided, or a
  // forked child at its first call.
  WEIR_COLD bool revive();

 private:
  // What makes it likely that this process, and what it becomes, may not write the trace.
  base::Text why_refused(char* to, size_t size) const;
  void note_unrecorded(const wire::ProcessChunk& before);
  bool take_first_chunks(uint32_t parent, Refusal* refusal);
  void fill_process_chunk(uint32_t parent);
  void calibrate();
  bool read_io(wire::IoFigures* to, wire::StorageFigures* storage);

  TraceFile file_;
  Names names_;
  wire::ProcessChunk* chunk_ = nullptr;
  uint32_t number_ = 0;
  uint64_t last_io_read_ = 0;
  uint32_t user_ = 0;  // who opened the trace
  bool wiped_by_kernel_ = false;
};

Process& process();

// The page that fork wipes. Zero: ask revive(); one: recording.
struct alignas(wire::kPageBytes) Pulse {
  uint32_t alive;
  uint32_t reviving;  // thread that is at it
};
extern WEIR_OWN Pulse pulse;

// Whether this process, or the one it was forked from, has begun to record and not stopped: else
// the page has nothing to say. kUndecided: nobody has read the environment yet.
constexpr uint32_t kUndecided = 2;
extern WEIR_OWN uint32_t wanted;

// What decides that at the first call of a process that is undecided: constructors of libraries
// that the program is linked with run before that of libweir-preload.so. Leaves it undecided where
// libc itself has not begun. Null in programs that decide by themselves (tests).
void decide_early() __attribute__((weak));

// The first question of every hook.
// Threads: any, signal handlers, forked children; errno stays. Cost: a load while the process
// records, two while it does not. In a forked child the first call makes its entry in the trace.
WEIR_INLINE bool recording() {
  if (WEIR_LIKELY(base::load_relaxed(&pulse.alive) != 0)) return true;
  return WEIR_UNLIKELY(base::load_relaxed(&wanted) != 0) && process().revive();
}

}  // namespace weir::trace
