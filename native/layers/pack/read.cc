// SPDX-License-Identifier: Apache-2.0
// Contents on their way out of the container: from the block of the process that closed the file,
// as long as they lie there, else from the archive. Whatever was read is what was stored, or EIO:
// the checksum says so, and so a block that was used again meanwhile does no harm.
#include <errno.h>
#include <string.h>

#include "layers/machinery/stack/private.h"
#include "layers/pack/container.h"
#include "layers/pack/crc32.h"
#include "layers/pack/transfer.h"
#include "layers/writeback/client.h"
#include "layers/writeback/format.h"

namespace weir::layers::pack {
namespace {

constexpr uint64_t kBuffer = kPieceBytes;
constexpr int kWaits = 400;           // while a dead process's block is written out
constexpr uint64_t kPauseNs = 5'000'000;

constinit char* buffer = nullptr;
constinit uint64_t held_by = 0;  // the memory whose contents it has (hold()); 0: others
constexpr int kHold = -1;        // contents stay in the buffer

class LockedWindow {
 public:
  explicit LockedWindow(Window& w) : window_(w), taken_(node::take(w.lock)) {
    if (taken_ == node::Taken::kFromDead) w.number = 0;  // half read
  }
  ~LockedWindow() {
    if (taken()) node::release(window_.lock);
  }
  LockedWindow(const LockedWindow&) = delete;
  LockedWindow& operator=(const LockedWindow&) = delete;
  bool taken() const { return taken_ != node::Taken::kNot; }

 private:
  Window& window_;
  node::Taken taken_;
};

bool have_buffer() {
  if (buffer != nullptr) return true;
  const long at = base::map(kBuffer, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (base::failed(at)) return false;
  buffer = reinterpret_cast<char*>(at);
  return true;
}

// The data of other processes' arenas, as this one has them mapped.
struct Mapped {
  char path[200];
  writeback::Arena arena;
};
constexpr int kMapped = 16;
constinit Mapped mapped[kMapped] = {};
constinit uint32_t next_mapped = 0;

void unmap_one(Mapped& m) {
  if (m.path[0] == 0) return;
  base::unmap(m.arena.header, m.arena.mapped_bytes);
  m = {};
}

const writeback::Arena* arena_at(const char* path) {
  for (Mapped& m : mapped) {
    if (strcmp(m.path, path) == 0) return &m.arena;
  }
  const base::HoldsDescriptor held;
  const long fd = base::open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (base::failed(fd)) return nullptr;
  struct stat about;
  long at = -1;
  if (base::system_call(SYS_fstat, fd, reinterpret_cast<long>(&about)) == 0)
    at = base::map(static_cast<uint64_t>(about.st_size), PROT_READ, MAP_SHARED,
                   static_cast<int>(fd));
  base::close_fd(static_cast<int>(fd));
  if (base::failed(at)) return nullptr;
  Mapped& m = mapped[next_mapped++ % kMapped];
  unmap_one(m);
  if (!writeback::attach(&m.arena, reinterpret_cast<void*>(at),
                         static_cast<uint64_t>(about.st_size))) {
    base::unmap(reinterpret_cast<void*>(at), static_cast<uint64_t>(about.st_size));
    m = {};
    return nullptr;
  }
  memcpy(m.path, path, strlen(path) + 1);
  return &m.arena;
}

// Copies from the block of a process of the node, if they lie there. What comes may be another
// range's by now: the caller checks.
bool from_block(const Container& c, const Version& v, uint64_t at, char* to) {
  if (v.process >= kProcesses || v.container != 0) return false;
  const Process& p = c.segment.shared->processes[v.process];
  const uint64_t begin = base::load(&p.chunk_offset);
  if (begin == kNoChunk || at < begin || at + v.bytes > begin + base::load(&p.chunk_bytes))
    return false;
  const writeback::Arena* arena = c.arena;
  if (v.process != c.process) {
    char path[sizeof p.arena];
    memcpy(path, p.arena, sizeof path);
    path[sizeof path - 1] = 0;
    arena = path[0] != 0 ? arena_at(path) : nullptr;
  }
  if (arena == nullptr) return false;
  memcpy(to, static_cast<const char*>(writeback::data(arena, 0)) + (at - begin), v.bytes);
  return true;
}

int read_all(int fd, char* to, uint64_t bytes, uint64_t at) {
  for (uint64_t done = 0; done < bytes;) {
    const long got = read_at(fd, to + done, bytes - done, at + done);
    if (got == -EINTR) continue;
    if (got < 0) return static_cast<int>(-got);
    if (got == 0) return EIO;
    ++counts.reads;
    done += static_cast<uint64_t>(got);
  }
  return 0;
}

int write_to(int to, const char* from, uint64_t bytes, uint64_t at) {
  return to == kHold ? 0 : write_whole(to, from, bytes, at);
}

char* data_of(const Container& c, uint64_t number) {
  return reinterpret_cast<char*>(c.segment.shared) + kWindowsAt + number % kWindows * kWindowBytes;
}

// Reads the piece into its window, which is locked. False: there is no memory.
bool fill_window(Container& c, Window& w, uint64_t number) {
  Shared* const s = c.segment.shared;
  char* const data = data_of(c, number);
  const uint64_t begin = (number - 1) * kWindowBytes;
  if (w.backed == 0 && !back(c.segment, static_cast<uint64_t>(data - reinterpret_cast<char*>(s)),
                             kWindowBytes))
    return false;
  w.backed = 1;
  w.number = 0;
  constexpr int kPopulate = 23;  // MADV_POPULATE_WRITE: in place of a fault for each page
  base::advise(data, kWindowBytes, kPopulate);
  uint64_t done = 0;
  while (done < kWindowBytes) {
    const long got = read_at(c.file, data + done, kWindowBytes - done, begin + done);
    if (got == -EINTR) continue;
    if (got <= 0) break;
    ++counts.reads;
    done += static_cast<uint64_t>(got);
  }
  w.bytes = done;
  base::store(&w.number, number);
  return true;
}

// Another process reads the piece: meanwhile this one reads the next, where pieces are read in
// their order.
void read_ahead(Container& c, uint64_t number) {
  Shared* const s = c.segment.shared;
  Window& next = s->windows[(number + 1) % kWindows];
  const bool in_order =
      number == 1 || base::load(&s->windows[(number - 1) % kWindows].number) == number - 1;
  if (!in_order || base::load(&next.number) == number + 1 ||
      number * kWindowBytes >= base::load(&s->end) || !node::try_acquire(next.lock))
    return;
  if (next.number != number + 1) fill_window(c, next, number + 1);
  node::release(next.lock);
}

// Reads of this process that a window has served for nothing. kPieceCosts of them pay for a piece
// that is read at the first file that is asked of it: a process that reads all files of a directory
// has them, in whatever order; one that reads a few of many does not.
constexpr uint32_t kPieceCosts = 4, kMostSaved = kPieceCosts * kWindows;
constinit uint32_t saved_reads = 0;

bool pays_for_piece() {
  if (saved_reads < kPieceCosts) return false;
  saved_reads -= kPieceCosts;
  return true;
}

// From the window of a piece of the container, which the first process that needs it reads for all
// of the node. fresh: what it holds is too old. False: the caller reads for itself.
bool from_window(Container& c, uint64_t at, uint64_t bytes, char* to, bool fresh) {
  const uint64_t number = at / kWindowBytes + 1, begin = (number - 1) * kWindowBytes;
  Window& w = c.segment.shared->windows[number % kWindows];
  const bool is_there = base::load(&w.number) == number;
  // The first that asks for the piece may be the only one.
  if (!is_there && base::exchange(&w.wanted, number) != number && !pays_for_piece()) return false;
  if (!is_there && base::load(&w.lock.word) != 0) read_ahead(c, number);
  const LockedWindow locked(w);
  if (!locked.taken()) return false;
  if ((w.number != number || fresh || at + bytes > begin + w.bytes) && !fill_window(c, w, number))
    return false;
  if (at + bytes > begin + w.bytes) return false;
  memcpy(to, data_of(c, number) + (at - begin), bytes);
  if (is_there && saved_reads < kMostSaved) ++saved_reads;
  return true;
}

// What lies in one or two windows, or is read by itself.
int read_small(Container& c, const Version& v, uint64_t at, bool fresh) {
  for (uint64_t done = 0; done < v.bytes;) {
    const uint64_t left = kWindowBytes - (at + done) % kWindowBytes;
    const uint64_t n = v.bytes - done < left ? v.bytes - done : left;
    if (!from_window(c, at + done, n, buffer + done, fresh)) {
      if (const int error = read_all(c.file, buffer + done, n, at + done); error != 0) return error;
    }
    done += n;
  }
  return crc32(0, buffer, v.bytes) == v.crc ? 0 : EIO;
}

int copy_checked(int fd, const Version& v, uint64_t at, int to) {
  uint32_t crc = 0;
  for (uint64_t done = 0; done < v.bytes;) {
    const uint64_t n = v.bytes - done < kBuffer ? v.bytes - done : kBuffer;
    if (const int error = read_all(fd, buffer, n, at + done); error != 0) return error;
    crc = crc32(crc, buffer, n);
    if (const int error = write_to(to, buffer, n, done); error != 0) return error;
    done += n;
  }
  return crc == v.crc ? 0 : EIO;
}

// The container of another node, for one read.
int open_other(const Container& c, const Version& v) {
  char path[sizeof c.path];
  path_in(c, base::text(c.segment.shared->others[v.container - 1]), path, sizeof path);
  return static_cast<int>(base::open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
}

int fetch_once(Container& c, const Version& v, uint64_t at, int to) {
  if (v.bytes <= kBuffer && from_block(c, v, at, buffer) && crc32(0, buffer, v.bytes) == v.crc)
    return write_to(to, buffer, v.bytes, 0);
  if (v.container != 0) {
    const base::HoldsDescriptor held;
    const int fd = open_other(c, v);
    if (fd < 0) return -fd;
    const int error = copy_checked(fd, v, at, to);
    base::close_fd(fd);
    return error;
  }
  if (const int error = open_file(c, false); error != 0) return error;
  if (v.bytes > kWindowBytes / 4) return copy_checked(c.file, v, at, to);
  int error = read_small(c, v, at, false);
  if (error == EIO) error = read_small(c, v, at, true);
  return error == 0 ? write_to(to, buffer, v.bytes, 0) : error;
}

// The process that has the contents in its block is dead: the daemon writes them.
bool waits_for_daemon(const Container& c, const Version& v) {
  if (v.process >= kProcesses || v.container != 0) return false;
  const Process& p = c.segment.shared->processes[v.process];
  return base::load(&p.chunk_offset) != kNoChunk &&
         !node::alive(unpacked_identity(base::load(&p.identity)));
}

}  // namespace

int fetch(Container& c, const Version& v, uint32_t name_bytes, int to) {
  if (v.bytes == 0) return 0;
  if (!have_buffer()) return ENOMEM;
  held_by = 0;
  const uint64_t at = v.offset + local_bytes(name_bytes);
  int error = fetch_once(c, v, at, to);
  for (int i = 0; i < kWaits && error == EIO && (i < 2 || waits_for_daemon(c, v)); ++i) {
    writeback::hurry();
    uint32_t nobody = 0;
    node::sleep_on(&nobody, 0, kPauseNs);
    error = fetch_once(c, v, at, to);
  }
  return error;
}

int hold(Container& c, const Version& v, uint32_t name_bytes, uint64_t memory) {
  const int error = have_buffer() ? fetch(c, v, name_bytes, kHold) : ENOMEM;
  held_by = error == 0 ? memory : 0;
  return error;
}

const char* held(uint64_t memory) { return held_by == memory ? buffer : nullptr; }

char* piece_room() {
  held_by = 0;
  return have_buffer() ? buffer : nullptr;
}

bool checksum(int fd, uint64_t bytes, uint32_t* crc) {
  *crc = 0;
  held_by = 0;
  if (bytes != 0 && !have_buffer()) return false;
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t n = bytes - done < kBuffer ? bytes - done : kBuffer;
    if (!read_whole(fd, buffer, n, done)) return false;
    *crc = crc32(*crc, buffer, n);
    done += n;
  }
  return true;
}

void forget_blocks() {
  for (Mapped& m : mapped) unmap_one(m);
}

}  // namespace weir::layers::pack
