// SPDX-License-Identifier: Apache-2.0
// What a layer is. A file's stack is written and built top down, `event | bufa | event | system`; a
// call of the program enters at the top, and each layer answers it or hands it to the layer below.
// A layer names in its Kind what it changes; an entry that it leaves null passes to the layer below
// at no cost. Offsets, descriptors, dup, fork and the like are decided above all layers
// (layers/machinery/stack/posix.h); rules and who gets which stack in
// layers/machinery/stack/build.h.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/compiler.h"

namespace weir::rules {
struct LayerSpec;
}

namespace weir::stack {

// A value that is not negative, or -errno; the errno is one that the wrapped call documents.
using Result = int64_t;

struct File;
struct Layer;
struct NamesOfLayer;  // layers/machinery/stack/names_of_layers.h

// Where the kernel's own descriptor stands: only stacks without a layer that holds data see it.
inline constexpr uint64_t kKernelOffset = ~uint64_t{0};

// A read or write. The pieces' bytes add up to `bytes` (at least 1, at most 0x7ffff000, as the
// kernel takes them). On a file opened with O_APPEND a write's offset is the end of the file, and
// the kernel appends whatever offset it is given: so layers hand such bytes down in their order.
struct Transfer {
  const iovec* pieces;
  int count;
  uint64_t bytes;
  uint64_t offset;      // in the file as the program sees it, or kKernelOffset
  int descriptor = -1;  // that the program named; -1: the file's. Layers that hand a transfer on as
                        // it is keep it
};

// An open on its way down. `path` is as the program gave it, relative to `directory`.
struct Opening {
  int directory;
  const char* path;
  int flags;
  unsigned mode;
  bool may_settle_later = false;  // what the program does next comes by way of the table (file.h)
};

enum KindFlag : uint32_t {
  kHolds = 1,  // holds bytes or the position in the process: fork, exec, mmap and others must flush
               // it or make it leave
  kTransforms = 2,  // bytes below are not the program's bytes (cos, stripe): such a file can never
                    // be left to the kernel
  kOrdered =
      4,  // open itself goes through the layer (error, delay, keep, stripe), not only what follows
  kSharesNode = 8,    // keeps the openings of a file by the ranks of a node coherent by itself
                      // (global, gather): they are no conflict
  kBeginsEmpty = 16,  // of one that kHolds: keeps no byte before begin_to_hold() has said yes, so
                      // that opening a file costs no thread
  kConcurrent = 32,   // of one that kHolds: read, write and size may be entered by any number of
                      // threads at once (stripe)
};

// Why a file was left to the kernel, or a layer out of it. Values go into the trace.
enum class Reason : uint8_t {
  kNone = 0,
  kLargeRequests = 1,   // of half a block and more: the layer would only copy
  kShared = 2,          // other ranks of the node have it in the kernel's cache already
  kMapped = 3,          // mmap
  kLocked = 4,          // byte-range locks
  kDirect = 5,          // the program itself asked for O_DIRECT
  kForked = 6,          // another process shares the descriptor
  kReplaced = 7,        // exec hands it to another program
  kConflict = 8,        // another opening of the file on this node, and one of them writes
  kNoDaemon = 9,        // nobody would write accepted bytes out if this process were killed
  kNoMemory = 10,
  kUnsupported = 11,    // an operation that layers do not know (aio, io_uring, splice)
  kRandom = 12,         // no pattern that reading ahead could serve
  kCached = 13,         // the kernel has the file's pages
  kSpecial = 14,        // no regular file
  kNoMessages = 15,     // nodes do not reach each other: each reads its blocks for itself
  kHeldUp = 16,         // something shared is locked by a rank that lives and does not go on
  kTierFull = 17,       // stage: at the file's place, for lack of room on the tier
  kNoTier = 18,         // stage: the same, as the tier cannot be used
  kNoForwarder = 19,    // forward: no forwarding process: ranks make their requests themselves
  kStreams = 20,        // a stream of the C library may have the number that it was copied onto
};

struct Kind {
  const char* name;
  uint32_t flags;
  size_t state_bytes;  // of a Layer's own state, zeroed before create
  // Counters, kept by the layer and noted in the trace when the file closes; layer.toml names them.
  int statistics_count;

  // Before the open: reads its arguments, may refuse (a mistake that the rules' compiler could not
  // see).
  Result (*create)(Layer&);
  // The new descriptor. Whoever has kOrdered calls open_below. Null: the layer takes no part.
  Result (*open)(Layer&, Opening&);
  // After the descriptor is there and before the first call: the file's size, block size and
  // identity are known. From the bottom up. A failure means: no layers for this file.
  Result (*ready)(Layer&);
  // What follows is called with the file's lock held when a layer of the stack holds or transforms,
  // else by any number of threads at once. A layer hands requests down from threads of the pool,
  // which do not have the lock, only where is_concurrent_below(). A layer that takes part in an
  // operation hands it on itself (x_below) when the layers below have to know. Bytes moved; fewer
  // than asked for only at the end of the file (read), or where the system moved fewer.
  Result (*read)(Layer&, const Transfer&);
  Result (*write)(Layer&, const Transfer&);
  // The file's size as the program must see it.
  Result (*size)(Layer&);
  Result (*truncate)(Layer&, uint64_t bytes);
  // Hands every accepted byte to the layer below; 0 or the deferred error, which then counts as
  // reported.
  Result (*flush)(Layer&);
  // flush, and then durable: fsync (or fdatasync) of the system.
  Result (*sync)(Layer&, bool data_only);
  // Forgets clean bytes and the size: somebody else may have changed the file. When it returns no
  // request of the layer's own is under way: the descriptor may become another number. Nothing is
  // dirty when it is called, unless a flush failed.
  void (*invalidate)(Layer&);
  // The last descriptor goes, or the file leaves its layers: flush has been called and its error
  // kept. What could not be written by then is given up (defer_error with its bytes). Closes
  // nothing of the program's.
  void (*close)(Layer&);
  // After a copy within the kernel had no room where the layer has the file. True: it has now.
  bool (*make_space)(Layer&) = nullptr;
  // Before a shared mapping of these bytes of the file that writes: storage for them, without which
  // a store would end the process (SIGBUS). 0, or -errno of mmap.
  Result (*reserve)(Layer&, uint64_t at, uint64_t bytes) = nullptr;
  // Of a layer whose files are not the file system's under their names (names_of_layers.h); else
  // null.
  const NamesOfLayer* names = nullptr;
};

// Per operation the first layer that takes part in it.
struct Dispatch {
  Layer *open, *read, *write, *size, *truncate, *flush, *sync, *invalidate;
};

struct Layer {
  const Kind* kind;
  Layer* below;  // null: this is `system`
  File* file;
  const rules::LayerSpec* spec;
  uint64_t* statistics;  // kind->statistics_count of them
  uint8_t position;      // in the stack, 0 on top

  // The layer's own memory, kind->state_bytes of it, aligned to 64.
  void* state() const { return state_; }
  void* state_;
  Dispatch next;  // below this one; found once, when the stack is built. The last of them is always
                  // `system`
  // Set by create(): its kind takes part in these, this one does not, and is not visited.
  bool passes_reads = false, passes_writes = false;
};

// Of how many layers this one is the top, without itself: 0 is the system's.
inline uint32_t level_of(const Layer& layer) {
  uint32_t level = 0;
  for (const Layer* below = layer.below; below != nullptr; below = below->below) ++level;
  return level;
}

// Whether every layer below may be entered without the file's lock.
inline bool is_concurrent_below(const Layer& layer) {
  for (const Layer* below = layer.below; below != nullptr; below = below->below) {
    const uint32_t flags = below->kind->flags;
    if ((flags & (kHolds | kTransforms)) != 0 && (flags & kConcurrent) == 0) return false;
  }
  return true;
}

// What comes next.
inline Result open_below(Layer& from, Opening& o) {
  return from.next.open->kind->open(*from.next.open, o);
}
inline Result read_below(Layer& from, const Transfer& t) {
  return from.next.read->kind->read(*from.next.read, t);
}
inline Result write_below(Layer& from, const Transfer& t) {
  return from.next.write->kind->write(*from.next.write, t);
}
inline Result size_below(Layer& from) { return from.next.size->kind->size(*from.next.size); }
inline Result truncate_below(Layer& from, uint64_t bytes) {
  return from.next.truncate->kind->truncate(*from.next.truncate, bytes);
}
inline Result flush_below(Layer& from) { return from.next.flush->kind->flush(*from.next.flush); }
inline Result sync_below(Layer& from, bool data_only) {
  return from.next.sync->kind->sync(*from.next.sync, data_only);
}
inline void invalidate_below(Layer& from) {
  from.next.invalidate->kind->invalidate(*from.next.invalidate);
}

// While the program's own fstat is answered: what the system has just said of the file. A size
// needs no request then. Else null.
extern WEIR_THREAD const struct stat* stat_of_program;
// Where a layer wants all that the system says when it is asked for the size; null: nowhere.
extern WEIR_THREAD struct stat* stat_for_layer;

// One piece of memory.
inline Result read_below(Layer& from, void* to, uint64_t bytes, uint64_t offset) {
  const iovec piece{to, bytes};
  return read_below(from, Transfer{&piece, 1, bytes, offset});
}
inline Result write_below(Layer& from, const void* data, uint64_t bytes, uint64_t offset) {
  const iovec piece{const_cast<void*>(data), bytes};
  return write_below(from, Transfer{&piece, 1, bytes, offset});
}

// Of a layer with kBeginsEmpty, each time before it keeps a first byte, read or written. False:
// another rank has the file, or nobody could call this one back; nothing must be kept, and the file
// leaves after the call in progress.
bool begin_to_hold(Layer& layer);
// Asks that the file be left to the kernel: done by stack/posix after the call in progress, when
// everything accepted has been handed down and the kernel's position set. Any thread. Noted in the
// trace with the layer that asked.
void ask_to_leave(Layer& layer, Reason);
// The layer itself passes everything through from now on (its choice, still in the stack): noted in
// the trace.
void note_bypass(Layer& layer, Reason);
// Whether the program makes system calls that no hook sees (hook/own_calls.h): what it opens to
// write it may then rename, link or remove by its own calls, so that it has to be a real file at
// its place.
bool has_own_calls();
// A deferred write error: kept with the file, reported once at the next write, fsync or close, and
// in the exit report with the number of accepted bytes that did not reach the file.
void defer_error(Layer& layer, int error, uint64_t lost_bytes);

}  // namespace weir::stack
