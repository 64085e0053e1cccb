// SPDX-License-Identifier: Apache-2.0
// Ranks and the processes of their node that make requests for them (layer forward). The bytes lie
// in the cache that the ranks share anyway, so what passes between the two is small: a bit for each
// slot that is to be written, and a request for what a rank waits for (a block that is to be read,
// everything dirty of a file, a descriptor that is to be closed). All of it is a hint: a rank looks
// afterwards whether it was done, and does it itself if not. So a forwarding process may be killed
// at any instruction, be stopped, or not be there: ranks go on as under `global`.
//
// A forwarding process reaches a file by a copy of the descriptor of one of its ranks, which came
// by a message; files are dealt out among the forwarding processes by their identity.
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "layers/cache/cache.h"
#include "layers/cache/layout.h"
#include "layers/machinery/node/pulse.h"
#include "layers/writeback/arena.h"

namespace weir::cache {

inline constexpr uint32_t kMostForwarders = 8;
inline constexpr uint32_t kRequests = 256;  // that ranks wait for at a time, of one forwarder
static_assert(writeback::kParticipants % 64 == 0);

enum RequestState : uint32_t {
  kRequestFree,
  kRequestFilled,   // by a rank, just now
  kRequestPosted,
  kRequestTaken,    // by the forwarder
  kRequestDone,
  kRequestDropped,  // its rank waits no longer
};
enum RequestKind : uint32_t { kLoadBlock = 1, kFlushFile, kReleaseFile };

struct alignas(64) Request {
  uint32_t state;  // RequestState; a futex
  uint32_t kind, file;
  uint32_t wanted;  // of a block to be loaded: bytes that the rank's read wants
  uint32_t failed;  // 1: not everything was done
  uint64_t block;
  node::Identity by;
  uint64_t since_ns;
};

enum Held : uint32_t { kForReading = 1, kForWriting = 2 };

// One for each entry of the cache's table of files.
struct alignas(64) FileService {
  uint32_t held;        // Held: descriptors that the forwarder has
  uint32_t generation;  // of the FileEntry that they are of
  uint32_t answers;     // counts descriptors that came; futex
  uint32_t keeps_reads, several_nodes, wasted_blocks;  // Policy of the ranks
  uint32_t error;       // errno of accepted bytes that were given up
  uint64_t lost;        // how many
  uint64_t ahead;       // blocks from here on will be read; 0: none
  uint64_t counts[kStatistics];  // of the forwarder's work, for the rank that closes the file
  uint64_t users[writeback::kParticipants / 64];  // processes that have the file open
};

struct alignas(64) Service {
  uint32_t pulse;   // node::beats; the thread of the forwarder
  uint32_t ready;   // the same, once it takes what is handed over
  uint32_t asleep;  // the forwarder sleeps on the bell
  void* robust_next;
  node::Identity who;
  uint32_t bell;    // changes with everything that is handed over; futex
  uint32_t served;  // counts requests made; futex
  uint32_t stuck;   // 1 + served when a rank waited in vain; 0: the forwarder went on since
  uint32_t starts, begun;  // processes started, and the last of these that has begun
  uint64_t started_ns;
  uint64_t slots[kMostSlots / 64];  // by bit: to be written
  uint64_t ahead[kFiles / 64];      // by bit: FileService::ahead is set
  Request requests[kRequests];
};

// Opens of names by ranks of the node, those of a moment ago among them (opens.h).
inline constexpr uint32_t kOpens = 128;
enum OpenState : uint32_t {
  kOpenFree,
  kOpenBegun,    // by one rank; others wait
  kOpenGiving,   // its descriptor is on its way to the forwarder
  kOpenGiven,    // which has it
  kOpenAlone,    // nobody else wanted it
  kOpenUseless,  // there is no such file, or none that is shared: each opens it
};
struct alignas(64) OpenRow {
  uint32_t state;  // OpenState; futex
  uint32_t wanted;
  uint64_t key;
  node::Identity opener;
  uint32_t file;
  uint32_t waiting;  // ranks that will ask for a copy
  uint64_t epoch;  // node::names_epoch() before
  uint64_t begun_ns;
};

struct Forwarding {
  FileService files[kFiles];
  Service services[kMostForwarders];
  node::Lock opens_lock;
  OpenRow opens[kOpens];
};

inline constexpr uint64_t kOpenValidNs = 1'000'000'000;  // of a row
inline bool is_recent(const OpenRow& r) { return base::now_ns() - r.begun_ns < kOpenValidNs; }

// Messages to a forwarder, beside a rank's descriptor for requests (writeback::kTellFile): of an
// open, and the socket to which a copy of it shall go.
inline constexpr uint32_t kTellOpened = 16, kTellBorrow = 17;

inline bool is_ready(const Service& v) {
  const uint32_t pulse = base::load(&v.pulse);
  return node::beats(pulse) && base::load(&v.ready) == (pulse & FUTEX_TID_MASK);
}

inline uint32_t forwarder_of(const Cache& c, uint32_t file) {
  const FileEntry& e = c.directory->files[file];
  const uint64_t h = (e.inode ^ e.device << 32) * 0x9e3779b97f4a7c15u;
  return static_cast<uint32_t>((h >> 32) % c.forwarders);
}

// Statistic of layer forward, behind those of every cache: what was handed to a forwarding process.
inline constexpr int kForwarded = kStatistics;

// Blocks that are read ahead: no more than leave room for those that ranks are at.
inline uint32_t most_ahead(const Cache& c) { return c.slots >= 16 ? 2 : 1; }

inline constexpr char kForwarderProgram[] = "weir-forward";
// BLOCK_BYTES-SLOTS-FORWARDERS-NUMBER, as the program gets it; its socket is forward-<that>.
inline constexpr int kForwarderText = 56;

// Of a rank.
// ------------------------------------------------------------

// A message about an entry of the table of files, or about a row of opens, to its forwarder.
bool tell_forwarder(const Cache& c, uint32_t file, uint32_t kind, uint32_t slot, int descriptor);
// Whether the file's forwarder answers: it lives, and nobody has just waited for it in vain.
bool answers(const Cache& c, uint32_t file);
void note_no_answer(const Cache& c, uint32_t file);  // this rank has
// Whether a forwarding process serves the file; started, and given the file's descriptor, at need.
// A few loads when it does.
bool forwarded(Opening& o);
// The slot is written before long; nothing is waited for.
void hand_over(Opening& o, const Slot& s);
// The slot is written now. False: it may not be.
bool write_by_forwarder(Opening& o, Slot& s, uint64_t tag);
// Everything dirty of the file. False: some of it may still be.
bool flush_by_forwarder(Opening& o);
// The block is loaded, unless it lies past the end. False: it may not be.
bool load_by_forwarder(Opening& o, uint64_t block, uint32_t wanted);
// A rank that reads in sequence has come to this block: those behind it will be wanted.
void expect_reads(Opening& o, uint64_t block);
// What a forwarding process has given up of the file's accepted bytes, once: 0 or the error.
int64_t take_lost(Opening& o);
// This opening ends. Returns when, after the file's last one on the node, no descriptor of it is
// open in a forwarding process. The caller has flushed.
void leave_forwarder(Opening& o);
// In a forked child: the parent's openings are not its own.
void forget_users();

}  // namespace weir::cache
