// SPDX-License-Identifier: Apache-2.0
// An open file leaves its memory for a file of the file system.
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "layers/machinery/stack/carried_locks.h"
#include "layers/machinery/stack/file.h"
#include "layers/pack/pack.h"
#include "layers/pack/transfer.h"

namespace weir::layers::pack {

using stack::kPass;

namespace {

constexpr uint64_t kPiece = 4u << 20, kMostCompared = 256u << 20;

// The name and path of an open file in its directory.
struct RealPlace {
  explicit RealPlace(Layer& l) : name(name_of(l, &container)) { set_path(); }
  RealPlace(Container& c, Name* n) : container(&c), name(n) { set_path(); }
  void set_path() {
    if (name != nullptr && !find_path_again(*container)) name = nullptr;
    if (name != nullptr) path_in(*container, {name->text, name->bytes}, path, sizeof path);
  }

  Container* container = nullptr;
  Name* name;
  char path[sizeof Container{}.path];
};

Result copy_range(int from, int to, off_t at, off_t end, HeldTurn& turn) {
  base::system_call(SYS_lseek, to, at, SEEK_SET);
  while (at < end) {
    const auto left = static_cast<uint64_t>(end - at);
    const long sent = send_from(from, &at, to, left < kPiece ? left : kPiece);
    if (sent <= 0) return sent < 0 ? sent : -EIO;
    turn.next_piece();
  }
  return 0;
}

// Zeros where the file has had bytes.
Result copy_hole(int from, int to, off_t at, off_t end, HeldTurn& turn) {
  if (at >= end) return 0;
  constexpr long kPunchHole = 3;  // FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE
  const long done = base::system_call(SYS_fallocate, to, kPunchHole, at, end - at);
  return done == 0 ? 0 : copy_range(from, to, at, end, turn);
}

// `seeks`: the memory once more, whose position is not the program's.
Result copy_data(int seeks, int from, int to, off_t bytes, off_t had, HeldTurn& turn) {
  for (off_t at = 0; at < bytes;) {
    const long found = base::system_call(SYS_lseek, seeks, at, SEEK_DATA);
    const off_t data = base::failed(found) || found > bytes ? bytes : found;
    const long hole = data < bytes ? base::system_call(SYS_lseek, seeks, data, SEEK_HOLE) : bytes;
    const off_t end = base::failed(hole) || hole > bytes ? bytes : hole;
    Result r = copy_hole(from, to, at, data < had ? data : had, turn);
    if (r == 0) r = copy_range(from, to, data, end, turn);
    if (r != 0) return r;
    at = end;
  }
  return 0;
}

// All bytes of the memory to the beginning of the file, which is then as long. 0 or -errno.
Result copy_contents(int from, int to, uint64_t bytes, HeldTurn& turn) {
  struct stat source, target;
  const auto end = static_cast<off_t>(bytes);
  if (base::system_call(SYS_fstat, from, reinterpret_cast<long>(&source)) != 0 ||
      base::system_call(SYS_fstat, to, reinterpret_cast<long>(&target)) != 0)
    return -EBADF;
  Result r = 0;
  if (static_cast<uint64_t>(source.st_blocks) * 512 + kPiece < bytes) {
    char path[32];
    base::Writer(path, sizeof path)
        .add("/proc/self/fd/").add_number(static_cast<uint64_t>(from));
    const long seeks = base::open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (base::failed(seeks)) return seeks;
    r = copy_data(static_cast<int>(seeks), from, to, end, target.st_size, turn);
    stack::close_keeping_locks(static_cast<int>(seeks));
  } else {
    r = copy_range(from, to, 0, end, turn);
  }
  return r != 0 ? r : base::resize(to, bytes);
}

// What the real file was made of: other openings of the same memory have nothing newer while they
// have these contents.
void note_contents(Name* n, uint64_t bytes, int memory) {
  const LockedName locked(n);
  Version v = current(n);
  if (v.state != kReal) return;
  v.bytes = bytes;
  if (bytes > kMostCompared || !checksum(memory, v.bytes, &v.crc)) v.bytes = ~uint64_t{0};
  publish(n, v);
}

// Whether another opening wrote into the memory while it was copied.
bool was_changed(int memory, int copy, uint64_t bytes) {
  struct stat about;
  if (base::system_call(SYS_fstat, memory, reinterpret_cast<long>(&about)) != 0) return false;
  uint32_t is = 0, was = 0;
  if (bytes > kMostCompared) return true;
  return static_cast<uint64_t>(about.st_size) != bytes ||
         (checksum(memory, bytes, &is) && checksum(copy, bytes, &was) && is != was);
}

// From here on other openings find the file real. Memory that somebody has mapped for writing is
// not sealed: what came into it meanwhile is copied once more.
Result publish_real(const RealPlace& at, uint64_t live, int memory, int copy, uint64_t bytes,
                    HeldTurn& turn) {
  Name* const n = at.name;
  const bool may_change = base::load(&n->live_shared) != 0 && !is_sealed(memory);
  int error = current(n).state != kReal ? EAGAIN : 0;
  while (error == EAGAIN) {
    const Seen now = see(n);
    if (now.live != live) break;  // the memory was closed everywhere, and there is a newer one
    error = mark_gone(*at.container, n, kReal, &now);
  }
  if (error != 0) return -error;
  turned_real(true);
  struct stat about;
  if (may_change && was_changed(memory, copy, bytes) &&
      base::system_call(SYS_fstat, memory, reinterpret_cast<long>(&about)) == 0) {
    bytes = static_cast<uint64_t>(about.st_size);
    if (const Result copied = copy_contents(memory, copy, bytes, turn); copied != 0) return copied;
  }
  note_contents(n, bytes, memory);
  return 0;
}

bool seal_shared(const RealPlace& at, int memory) {
  const LockedName locked(at.name);  // nobody opens it in between
  return base::load(&at.name->live) != 0 && seal(memory);
}

// live: the number of the memory `from`.
Result make_file(int from, uint64_t live, const RealPlace& at, HeldTurn& turn) {
  struct stat about;
  if (base::system_call(SYS_fstat, from, reinterpret_cast<long>(&about)) != 0) return -EBADF;
  const Version before = current(at.name);
  if (before.state == kPacked && before.container != 0) return -EROFS;
  // Not O_TRUNC: where it is real already, another process may have it mapped.
  const long fd = base::open_at(AT_FDCWD, at.path, O_RDWR | O_CREAT | O_CLOEXEC,
                                (about.st_mode & 07777) | 0600);
  if (base::failed(fd)) return fd;
  auto bytes = static_cast<uint64_t>(about.st_size);
  const bool was_real = current(at.name).state == kReal;
  Result made = copy_contents(from, static_cast<int>(fd), bytes, turn);
  // What others have written meanwhile is copied, too; what they write from here on fails, and goes
  // into the real file, for which they wait (write()).
  if (made == 0 && !was_real && seal_shared(at, from) &&
      was_changed(from, static_cast<int>(fd), bytes) &&
      base::system_call(SYS_fstat, from, reinterpret_cast<long>(&about)) == 0) {
    bytes = static_cast<uint64_t>(about.st_size);
    made = copy_contents(from, static_cast<int>(fd), bytes, turn);
  }
  if (!was_real) give_owner(static_cast<int>(fd), before);
  base::system_call(SYS_fchmod, fd, about.st_mode & 07777);
  const timespec times[2] = {about.st_atim, about.st_mtim};
  base::system_call(SYS_utimensat, fd, 0, reinterpret_cast<long>(times), 0);
  if (made == 0) made = publish_real(at, live, from, static_cast<int>(fd), bytes, turn);
  if (made == 0) return fd;
  stack::close_keeping_locks(static_cast<int>(fd));
  if (!was_real && current(at.name).state != kReal) base::unlink_path(at.path);
  return made;
}

// The real file that another process has made of the same memory; kPass: there is none.
Result open_made_real(Layer& l, const RealPlace& at) {
  if (current(at.name).state != kReal || base::load(&at.name->live) != 0) return kPass;
  const int access = (l.file->flags & O_ACCMODE) == O_RDONLY ? O_RDONLY : O_RDWR;
  return base::open_at(AT_FDCWD, at.path, access | O_CLOEXEC);
}

}  // namespace

Result make_open_real(Layer& l, bool always) {
  const Busy hold;
  const RealPlace at(l);
  const bool makes = always || (l.file->flags & O_ACCMODE) != O_RDONLY;
  if (at.name == nullptr) return makes ? -ENOENT : -EBADF;
  HeldTurn turn(at.container->segment.shared, at.name);
  if (const Result fd = open_made_real(l, at); fd != kPass) return fd;
  return makes ? make_file(l.file->descriptor, base::load(&at.name->live), at, turn) : -EBADF;
}

Result make_real_file(Layer& l) {
  const RealPlace at(l);
  if (at.name == nullptr) return -ENOENT;
  HeldTurn turn(at.container->segment.shared, at.name);
  return make_file(l.file->descriptor, base::load(&at.name->live), at, turn);
}

Result make_live_real(Container& c, Name* n) {
  const base::HoldsDescriptor held;
  const LiveMemory memory(c, n);
  if (!memory.is_there()) return memory.result();
  const RealPlace at(c, n);
  HeldTurn turn(c.segment.shared, n);
  const Result fd = make_file(memory.fd(), memory.number(), at, turn);
  return fd < 0 ? fd : stack::close_keeping_locks(static_cast<int>(fd));
}

}  // namespace weir::layers::pack
