// SPDX-License-Identifier: Apache-2.0
// The node's trace file as its writers share it: making it, and taking chunks from it. No
// descriptor stays open between two calls (a program may close what it likes), so each chunk costs
// an open; chunks double, so there are few. Everything may be called from any thread, a forked
// child or a signal handler.
#pragma once

#include <stdint.h>

#include "base/text.h"
#include "base/syscall.h"
#include "wire/format.h"

namespace weir::trace {

// Which run this program belongs to (preload/launch.h). All zero: what is traced into the directory
// is one step.
struct Launch {
  uint64_t number;  // of the run; 0: not known
  uint64_t own;     // not 0: this program starts the ranks of a job, which is a run of its own when
                    // the number's has one already
  uint64_t job;     // of MPI, the same on all nodes; 0: not known
  bool open;        // what this program starts may still be another run: no launcher has been met
};

struct Settings {
  base::Text directory;  // of the step; exists
  base::Text node;
  wire::Level level;
  uint64_t budget_bytes;
  Launch launch;
  uint32_t mode;  // permissions of the trace file: a command line may hold what is nobody else's
                  // business
};

// What a chunk is for: the later in this list, the more of the budget it may use. Records leave an
// eighth of it (at most 64 MiB) to counters and names, and these leave a quarter of that to
// counters per operation alone, so that totals stay whole.
enum class Use : uint8_t { records, files, totals };

// Why there is no chunk: for good (budget, full disk), or for now (no descriptor or memory to
// spare).
enum class Refusal : uint8_t { none, final, passing };

class TraceFile {
 public:
  // Opens the node's file, makes it when it is not there: <node>.weir, or <node>.<launch>.weir
  // where that is another launch's. 0, or -errno.
  long open(const Settings& settings);

  // Takes size bytes (a multiple of the page) and maps them, all zero; null when they are refused.
  // over: a mapping of that size to be replaced, set to null once it is touched; null: wherever
  // there is room.
  void* take(uint64_t size, Use use, uint64_t* offset, Refusal* refusal, void** over = nullptr);

  // Where take() leaves the reason of each refusal, as ProcessChunk::refusals has it; null:
  // nowhere.
  void set_refusals(uint8_t* refusals) { refusals_ = refusals; }

  // After a refusal: counts this program, which leaves no records, in the file's header. *speaks:
  // whether it would say so on stderr; set to false when another program has said it. -EFBIG,
  // -ENOSPC or, where it was passing, -ENOMEM.
  long refuse(uint64_t size, Refusal refusal, bool* speaks);

  // In a forked child: what the parent's other threads were at is over.
  static void forked();

  wire::FileHeader& header() const { return *header_; }
  uint64_t launch() const { return launch_; }  // that the file is of, 0: of anybody

 private:
  long open_named(const Settings& settings, uint64_t launch);
  long open_for(const Settings& settings, uint64_t launch);
  bool belongs(const Launch& launch);
  long create(const Settings& settings);
  uint64_t limit_for(Use use) const;
  long back_with_storage(int fd, uint64_t offset, uint64_t size);
  long map_ready(int fd, uint64_t offset, uint64_t size, void** over);
  WEIR_COLD void note_refusal(uint8_t reason);
  long map_chunk(uint64_t offset, uint64_t size, Refusal* refusal, void** over);

  wire::FileHeader* header_ = nullptr;
  base::Identity identity_{};
  uint64_t launch_ = 0;
  uint8_t* refusals_ = nullptr;
  bool in_memory_ = false;  // on tmpfs or its like
  char path_[4096] = {};
};

// Fills a chunk header; the magic last, as readers look for it.
void begin_chunk(wire::ChunkHeader* chunk, wire::Kind kind, uint64_t size, uint32_t process,
                 uint32_t thread, uint32_t entry_bytes);

}  // namespace weir::trace
