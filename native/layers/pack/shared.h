// SPDX-License-Identifier: Apache-2.0
// What the processes of a node share of one container: names and where their contents lie, where
// the next range begins, who takes part. A file in shared memory,
//   /dev/shm/weir.<uid>.pack/<node>/<device>-<inode>-<hash of the container's name>
// made by the first process that needs it and removed by the last. It is no format: whoever finds
// one whose processes have all died makes a new one from the container (docs/formats/pack.md).
//
// Order of publication: contents first, then the version that points to them, then `current`. A
// process killed at any instruction leaves the old version or the new one.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/syscall.h"
#include "base/text.h"
#include "layers/machinery/node/lock.h"
#include "layers/pack/zip.h"

namespace weir::layers::pack {

inline constexpr uint64_t kSharedMagic = 0x426b636170726965;  // "eirpackB"
inline constexpr uint32_t kHeads = 1u << 16, kProcesses = 1024, kOthers = 64;
inline constexpr uint32_t kWindows = 32, kTurns = 64;
inline constexpr uint64_t kWindowBytes = 1u << 20;
inline constexpr uint64_t kHeapBytes = 512u << 20, kHeapStep = 1u << 20;

enum NameState : uint8_t {
  kAbsent = 0,
  kOpened = 1,  // made by open, and never closed: an empty file until then
  kPacked = 2,  // its contents lie in the container
  kReal = 3,    // a file of the file system
};

// What stat says of a file, and where its contents lie.
struct Version {
  uint64_t offset, bytes, sequence;
  uint64_t birth;  // the file, whatever its contents; also of one that has become real
  int64_t seconds;
  uint32_t nanoseconds, crc, user, group;
  uint32_t process;  // whose chunk it may lie in still, as an index; kProcesses: written
  uint16_t mode;
  uint8_t state;
  uint8_t container;  // 0: this node's; else one of another node, 1 + its place in `others`
};

// Who has come to a file's memory beside the opening that made it.
enum LiveShared : uint32_t {
  kLiveOpened = 1,  // another opening has had it: it is not used again for another file
  kLiveSeen = 2,    // it was looked at, or changed, by the file's name
};

// A descriptor of a process.
struct Opened {
  int32_t process, descriptor;  // 0, -: free
};
inline constexpr uint32_t kUnfilled = ~0u;  // Name::unsettled
inline constexpr int kOpenings = 3, kMoreOpenings = 15;
// Those of a name that has more. Never removed from its list.
struct MoreOpened {
  uint32_t next;  // in units of 8 bytes from the beginning; 0: none
  Opened opened[kMoreOpenings];
};

// One name. Never removed from its list and never moved.
struct Name {
  uint32_t next;  // of the same head, in units of 8 bytes from the beginning; 0: none
  uint32_t hash;
  node::Lock lock;   // of who changes it
  uint32_t current;  // counts versions; the lowest bit says which of the two is the last
  Version versions[2];
  // The memory of openings that have not been closed yet, so that others see the same file: its
  // number and who made it, which its own name has, and where it is open. 0: none.
  uint64_t live;
  int32_t live_maker;
  uint32_t live_shared;  // LiveShared
  Opened opened[kOpenings];
  uint32_t more;  // where further openings are (MoreOpened); 0: none
  // What the memory is, of an opening that has it alone: 1 + how long it still is, with bytes of
  // another file, of an empty one; kUnfilled: it has yet to get the file's contents and time; 0: it
  // is as the file. Under the name's lock. Whoever comes to the memory settles it first (live.cc).
  uint32_t unsettled;
  uint64_t settled;  // number of the memory that was settled last before the name lost it
  // Under which name the file with this birth goes on.
  uint32_t moved_place;
  uint64_t moved_birth;
  uint32_t bytes;
  char text[];  // zero-terminated
};

struct Process {
  uint64_t identity;  // node::Identity; 0: free
  uint64_t chunk_offset;  // of the range of the container that its arena has, UINT64_MAX: none
  uint32_t chunk_bytes, chunk_all;  // filled so far; all of them
  uint32_t chunk_rows;  // bytes reserved with it for rows of the directory that are not used yet
  // The container as an open file of the process, + 1, for others of the node to open again: their
  // open needs no look at the directory. 0: none. Whoever uses it checks which file it is.
  int32_t file;
  char arena[192];  // path of the arena with that chunk
};

// A piece of the container that the processes of the node read once.
struct Window {
  node::Lock lock;   // of who reads it or copies from it
  uint32_t backed;   // its memory is there
  uint64_t wanted;   // 1 + the piece that somebody has read from
  uint64_t number;   // 1 + the piece that it holds; 0: none
  uint64_t bytes;    // of it, as far as the file went
};

// Who makes a real file of one of the names with a hash.
struct Turn {
  node::Lock lock;
  uint32_t pieces;  // that were copied, so that a long copy is waited for
};

struct Shared {
  uint64_t magic;       // last, when the rest is there
  uint64_t end;         // of what is reserved in the container
  uint64_t sequence;    // of the next record
  uint64_t heap_used;   // bytes, from the beginning of the file
  uint64_t heap_backed;
  // Up to where the file system has allocated the container, under this lock; what rows of the
  // directory that it will have take at most (space.cc).
  uint64_t allocated, directory_bytes;
  uint64_t records_end;  // of the last record, whoever wrote it
  uint64_t counted_until;  // before `end` is there, is_mostly_old() counts no more
  uint32_t mostly_old;     // what it has counted
  node::Lock space;
  uint32_t no_allocation;  // the file system has no fallocate
  uint64_t directory_at;  // where the container's own directory was, that is current; 0: none
  uint32_t has_file;      // the container exists
  uint32_t file_number;   // counts removals of it
  uint32_t refused;       // an errno: what lies there is no container of this node
  uint32_t changed;       // since the container's directory was read or written
  uint32_t other_count;   // containers of other nodes
  base::Identity file;    // of the container while has_file
  // A process with these rights (hash of user, groups, capabilities) may make names in the
  // directory, so that others of the node need not ask the file system. 0: not known.
  uint64_t allowed_rights, allowed_until_ns;
  // What the directory was when it was last listed (look.cc; 0: it was about to change), and until
  // when nobody looks.
  uint64_t listed, looked_until_ns;
  // When a packed name was last made or removed, or the later time of the directory that a process
  // has seen, since 1970; 0: neither.
  uint64_t names_changed_ns;
  char own[kLongestName + 1];  // name of this node's container
  char others[kOthers][kLongestName + 1];
  Window windows[kWindows];
  Turn turns[kTurns];
  uint32_t heads[kHeads];
  Process processes[kProcesses];
};

inline constexpr uint64_t kHeapAt = (sizeof(Shared) + 4095) / 4096 * 4096;
inline constexpr uint64_t kWindowsAt = kHeapAt + kHeapBytes;
inline constexpr uint64_t kSharedBytes = kWindowsAt + kWindows * kWindowBytes;

inline uint64_t packed_identity(node::Identity who) { return uint64_t{who.start} << 32 | who.pid; }
inline node::Identity unpacked_identity(uint64_t who) {
  return {static_cast<uint32_t>(who), static_cast<uint32_t>(who >> 32)};
}

// The mapping of this process. `path`: of the file, to back more of it.
struct Segment {
  Shared* shared;
  char path[192];
};

// Memory that no store can fail in; false: /dev/shm has no room for it.
bool back(const Segment& s, uint64_t offset, uint64_t bytes);
// Null: there is none. Any thread, no lock.
Name* find_name(const Segment& s, base::Text name);
// The existing one, or a new one with state kAbsent. Null: no memory.
Name* make_name(const Segment& s, base::Text name);
// Zeros that stay: where they are, in units of 8 bytes. 0: no memory.
uint32_t take_heap(const Segment& s, uint64_t bytes);
// The last version as a whole: read again when somebody has published meanwhile.
Version current(const Name* n);
inline uint32_t place_of(const Segment& s, const Name* n) {
  return static_cast<uint32_t>(
      (reinterpret_cast<const char*>(n) - reinterpret_cast<const char*>(s.shared)) / 8);
}
Name* name_at(const Segment& s, uint32_t place);
MoreOpened* more_opened_at(const Segment& s, uint32_t place);
// Under the name's lock.
void publish(Name* n, const Version& v);
// Whether another process has opened, stored or changed the file in between.
struct Seen {
  uint64_t live;
  uint32_t version;
  bool operator==(const Seen&) const = default;
};
inline Seen see(const Name* n) { return {base::load(&n->live), base::load(&n->current)}; }
// All names in any order: *at is 0 at first. Null: no more. One made meanwhile may be missed.
struct Cursor {
  uint32_t head = 0, place = 0;
};
Name* next_name(const Segment& s, Cursor* at);

// A file becomes a real one in one process at a time: a second one that did the same would take
// bytes from the file, and pages from its mappings.
class HeldTurn {  // the caller holds back signals
 public:
  HeldTurn(Shared* s, const Name* n)
      : turn_(s->turns[n->hash % kTurns]),
        taken_(node::take(turn_.lock, &turn_.pieces) != node::Taken::kNot) {}
  ~HeldTurn() {
    if (taken_) node::release(turn_.lock);
  }
  HeldTurn(const HeldTurn&) = delete;
  HeldTurn& operator=(const HeldTurn&) = delete;

  void next_piece() { base::fetch_add(&turn_.pieces, 1u); }

 private:
  Turn& turn_;
  bool taken_;
};

class LockedName {  // the caller holds back signals
 public:
  explicit LockedName(Name* n) : name_(n), taken_(node::take(n->lock) != node::Taken::kNot) {}
  ~LockedName() {
    if (taken_) node::release(name_->lock);
  }
  LockedName(const LockedName&) = delete;
  LockedName& operator=(const LockedName&) = delete;

 private:
  Name* name_;
  bool taken_;
};

}  // namespace weir::layers::pack
