// SPDX-License-Identifier: Apache-2.0
// The container of one directory, as this process has it open: finds names in it, appends contents,
// reads them, and writes the archive's directory when the last process of the node leaves it.
//
// All functions are called with the layer's lock (Busy) held, which holds back signals too: one
// thread of the process at a time. Processes do not wait for each other but while one begins or
// ends to take part (flock of the shared file), while one makes the container longer (space.cc),
// and where they change the same name.
#pragma once

#include <sys/stat.h>

#include "base/syscall.h"
#include "layers/machinery/rules/rules.h"
#include "layers/pack/shared.h"
#include "layers/pack/zip.h"
#include "layers/writeback/arena.h"

namespace weir::layers::pack {

inline constexpr uint32_t kBlockBytes = 1u << 20, kFirstChunk = 64u << 10;
inline constexpr uint64_t kPieceBytes = 1u << 20;
inline constexpr uint64_t kNoChunk = ~uint64_t{0};
inline constexpr uint64_t kOwnerBytes = kLocalBytes + 14 + kExtraBytes;
inline constexpr char kOwnerName[] = "weir-container";

struct Container {
  Segment segment;
  const rules::LayerSpec* spec;
  char directory[4096];  // without a slash at its end, but for the root
  uint32_t directory_bytes;
  base::Identity identity;  // of the directory
  int at;                   // the directory (O_PATH), a number of weir's own, until `file`; else -1
  char path[4096 + kLongestName + 2];  // of this node's container
  uint32_t file_number;     // shared->file_number when it was opened
  int file;                 // of it, a number of weir's own; -1: not open
  bool writable;
  bool left_alone;          // files stay real: no container was there, and they cost less here
  bool lies_in_memory;      // it is on tmpfs, and the rule leaves files there alone
  uint64_t absent;          // no container was there when the node had made so many; 0: not known
  uint32_t process;         // its place in shared->processes
  writeback::Arena* arena;  // null: contents are written at once
  int slot, block;
  uint64_t chunk_at;        // of the range that the block's bytes belong to
  uint32_t chunk_filled, chunk_bytes, next_chunk;
  uint32_t chunk_rows;      // bytes of the directory that it may use still
  uint64_t draft_of;        // memory whose contents lie behind the block's records; 0: none
  uint32_t draft_at;        // where their record would begin
  uint64_t allowed_until;   // ns: may_change() need not ask again, for this user
  uint32_t allowed_user;
  uint64_t moved_seen, looked_until;  // moved_directories(), ns: its path led to it
  uint64_t children_ended;  // stack::ended_children() when the directory was last looked at
  uint64_t used;            // counts uses: the one used longest ago makes room
  uint32_t open_files;      // of this process, which have their names in the segment
};

// What an append found or did, for the layer's statistics.
struct Counts {
  uint64_t writes = 0, reads = 0;
};
extern Counts counts;

// begin.cc, file.cc ------------------------------------------------------------------
// The container of `directory` (absolute, no "..") under this layer of a rule. makes: a file is
// about to be packed. Null: there is none and none was to be made, or *error (an errno) says why it
// cannot be had, or is_left_alone() does.
Container* container_of(const rules::LayerSpec& spec, base::Text directory, bool makes, int* error);
// The open container of this node is empty: writes its first record, or removes it. 0 or an errno.
int begin_file(Container& c);
// Opens this node's container, making it where there is none. 0 or an errno.
int open_file(Container& c, bool makes);
// directory.cc ----------------------------------------------------------------------
// Opens the directory and identifies it: one walk of its path for all that follows. False: it is
// none, or is not there.
bool open_directory(Container& c);
void close_directory(Container& c);
// Which file a descriptor is, as the node knows it already: no request to the file system.
bool identify_open(int fd, base::Identity* to);
// The directory's path as it is now, by what is open in it. False: it is gone.
bool follow_directory(Container& c);
// The path of a name in the directory. False: it is longer than the room.
bool path_in(const Container& c, base::Text name, char* to, size_t room);
// A name in the directory, as openat.
long open_in(const Container& c, const char* name, int flags, int mode = 0);
// Whether this process may make and remove names in the directory, as the kernel would say: 0 or an
// errno. Asked once a second, and after forget_permissions().
int may_change(Container& c, uint32_t user);
// A packed name has been made or removed, by this process.
void note_names_changed(Container& c);
// Takes no part any more; the last process of the node writes the directory of the archive. What
// is open in it loses its name.
void leave(Container& c);
// The daemon's copy of what waits is the file of this path: for who finds this process dead.
void note_arena(Container& c);

// paths.cc --------------------------------------------------------------------------
// Null: the path leads to no directory, or *error says why there is no place for one more.
Container* find_or_make(const rules::LayerSpec& spec, base::Text directory, int* error);
base::Text option_name(const rules::LayerSpec& spec);
// The container's path leads to its directory; where that has another name by now, it has that.
// False: it is gone.
bool find_path_again(Container& c);
// When a packed name was last made or removed in a directory of which this process has a
// container, or the time of the directory that was seen since; 0: neither. Makes no system call.
bool names_changed_in(base::Text directory, base::Identity* is, uint64_t* changed);
// The directory was seen with this time: the next packed name is later.
void note_names_seen(base::Text directory, uint64_t until);
// Whether this process knows that files of `directory` stay real under this layer of a rule. Takes
// no lock and makes no system call.
bool is_left_alone(const rules::LayerSpec& spec, base::Text directory);
void set_left_alone(Container& c, bool is);
// How often this process has left all containers: what was found in one before may be elsewhere.
extern uint32_t times_left;
void leave_all();
// In a forked child: what it has is the parent's.
void forget_all();
// Directories have other names now; this one is none any more. Open files keep their container.
void forget_paths();
void forget_path(Container& c);
// Of containers in that directory which is about to be removed.
void forget_directory(base::Text directory);
void forget_permissions();

// load.cc -------------------------------------------------------------------
// Real files cost less in this directory (c.lies_in_memory), and no container is there.
bool stays_real(const Container& c, int directory);
// Enters the names that the directory and its containers have. 0 or an errno.
int load(Container& c, int directory, bool makes, bool* found);

// each(container, name) for what the directory has, until it gives an errno. 0 or that.
int list_directory(Container& c, int directory, int (*each)(Container&, base::Text name));

// look.cc -------------------------------------------------------------------
inline constexpr uint64_t kLookedAtNs = 1'000'000'000;
// What a directory has that has not changed for a while, and for which rule; 0: it has changed just
// now, and may change again without another time.
uint64_t state_of(const Container& c, const struct stat& about);
// A name is about to be new: enters those that programs without weir have made, where the directory
// has changed. Looks once a second, and when a child has been waited for.
void look_again(Container& c);

// space.cc ------------------------------------------------------------------
// A range of so many bytes at the end of the container, and that much for rows of the directory,
// for which the file system has room. 0 or an errno (ENOSPC, EDQUOT): then nothing has changed.
int reserve(Container& c, uint64_t bytes, uint64_t directory, uint64_t* at);
// A range that ends at `end` was filled up to `filled`, and so many bytes of rows are not needed.
void give_back(Container& c, uint64_t end, uint64_t filled, uint64_t directory);
void give_back_rows(Container& c, uint64_t bytes);
// Whether the container is large, and next to all of it are contents that no name has any more, as
// programs leave that write their files again and again. What they close then becomes a real file.
bool is_mostly_old(const Container& c);

// live.cc ------------------------------------------------------------------
// Name::unsettled is over; the name is locked. 0 or an errno: the contents cannot be had.
int settle_live(Container& c, Name* n);

// append.cc -----------------------------------------------------------------
// What a record says of a version of a file; its name points into the segment.
Entry entry_of(const Name* n, const Version& v, RecordState state);
// The contents of the open file `from` become those of `n`, with what fstat says of it. 0 or an
// errno; then the name is what it was. ESTALE: another process has made a real file of it. EAGAIN:
// it has been made shorter meanwhile.
int append(Container& c, Name* n, int from, const struct stat& about);
// The contents of an open file are copied to where its record in the block would have them, if it
// were the next one. False: they are not.
bool draft(Container& c, const Name* n, uint64_t memory, const iovec* pieces, int count,
           uint64_t bytes);
// Whether they lie there still, and the record has room. Then append() takes them from there: from
// kDrafted.
bool is_drafted(const Container& c, const Name* n, uint64_t memory, uint64_t bytes);
const char* drafted(const Container& c, const Name* n);
inline constexpr int kDrafted = -2;
// The daemon has written what the process, which has died, had closed, and its arena is gone.
bool is_drained(const Process& p);
// The name is `state` from now on: kAbsent, kReal. A record says so where it had contents. 0 or an
// errno (EROFS: another node's container has it; EAGAIN: it is not as it was `before`).
int mark_gone(Container& c, Name* n, uint8_t state, const Seen* before = nullptr);
// The record once more with another mode, owner or time; the caller publishes the version.
int rewrite_record(Container& c, const Name* n, const Version& v);
// What waits in this process goes into the container. 0 or an errno.
int flush(Container& c);

// read.cc -------------------------------------------------------------------
// The contents of a version, checked, into the open file `to`. 0 or an errno (EIO: they are not
// what was stored).
int fetch(Container& c, const Version& v, uint32_t name_bytes, int to);
// The same into memory of this process, for the open file whose memory has that number, until
// somebody else's contents need the room. Null: they are not there any more.
int hold(Container& c, const Version& v, uint32_t name_bytes, uint64_t memory);
const char* held(uint64_t memory);
// The CRC-32 of the first bytes of an open file. False: it is shorter, or cannot be read. Like all
// that looks at contents it reads into memory of its own: another process may make the file shorter
// meanwhile, and who has it mapped then gets SIGBUS.
bool checksum(int fd, uint64_t bytes, uint32_t* crc);
// Room for a piece of contents, kPieceBytes; whoever calls another function of the layer has it no
// more. Null: no memory.
char* piece_room();

// 1 + how many containers the node's processes have made; 0: not known. count: one more.
uint64_t made_containers(bool count);
// Whether a directory in that state (state_of) was seen to have no container. note: it is.
bool has_no_container(uint64_t state, bool note);
// The same of open files that have become real ones, and of directories that have been removed or
// have got other names.
uint64_t turned_real(bool count);
uint64_t moved_directories(bool count);

// Other processes' blocks, as this one has them mapped.
void forget_blocks();

// finish.cc -----------------------------------------------------------------
// The archive's directory, behind everything. has_path: an archive with nothing in it is removed. 0
// or an errno.
int finish(Container& c, bool has_path);
// Makes real files of all packed ones and removes the container. 0 or the first errno.
int extract_all(Container& c);
// A packed file becomes a real one with the same name. 0 or an errno; EAGAIN: another process has
// opened or stored it meanwhile.
int make_real(Container& c, Name* n);
// A real file that this process has made is the owner's of the packed one, where it may say so.
void give_owner(int fd, const Version& v);

}  // namespace weir::layers::pack
