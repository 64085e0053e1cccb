// SPDX-License-Identifier: Apache-2.0
// Memory of files that were closed, kept for the next opening with its pages: an opening is then
// one short system call. A memory is used again only where nothing else can reach it:
// not when another opening had it, nor when a process, a map, a lock, a pipe or a path of /proc
// may have it still (File::lent, times_lent).
#include <errno.h>
#include <fcntl.h>

#include "layers/machinery/stack/in_memory.h"
#include "layers/machinery/stack/private.h"
#include "layers/pack/pack.h"
#include "layers/pack/transfer.h"

namespace weir::layers::pack {
namespace {

constexpr int kMemories = 16;
constexpr uint32_t kFileSystem = 0x01021994;  // TMPFS_MAGIC
constexpr uint64_t kBlock = 4096;
constexpr uint64_t kMostKept = 256u << 10, kUnknown = ~uint64_t{0};

// Both descriptors are weir's own, at high numbers; what the program gets is a copy of one.
struct Memory {
  uint64_t number;  // 0: none is here
  int writes, reads;
  uint32_t user, group;  // of the process when it was made, whose it is
  uint64_t bytes;        // of its contents; kUnknown: the program has it for writing
  uint64_t size;         // when it was last given back
  uint64_t position;     // of `writes`, when it was last given back; kUnknown
  uint16_t mode;
  bool is_used, was_read;
  base::Identity file;
};
constinit Memory kept[kMemories] = {};

void drop(Memory& m) {
  if (m.writes >= 0) stack::close_private(&m.writes);
  if (m.reads >= 0) stack::close_private(&m.reads);
  m = {};
}

bool make(Memory& m, uint32_t user, uint32_t group) {
  uint64_t number = 0;
  const long fd = make_memory(O_CLOEXEC, &number);
  if (base::failed(fd)) return false;
  m = {number, -1, -1, user, group, 0, 0, kUnknown, 0777, false, false, {}};
  base::identify(static_cast<int>(fd), &m.file);
  if (stack::keep_private(static_cast<int>(fd), &m.writes)) return true;
  m = {};
  return false;
}

// One that nobody uses: rather one of the same kind, whose pages fit.
Memory* find_free(bool reads, const Owner& owner) {
  // A reader sees the owner that the container states.
  const uint32_t user = reads ? 0 : owner.user, group = reads ? 0 : owner.group;
  Memory *other = nullptr, *empty = nullptr;
  for (Memory& m : kept) {
    if (m.number == 0) {
      if (empty == nullptr) empty = &m;
      continue;
    }
    if (m.is_used || m.user != user || m.group != group) continue;
    if (m.was_read == reads) return &m;
    other = &m;
  }
  if (empty == nullptr) return other;
  return make(*empty, user, group) ? empty : nullptr;
}

bool open_reads(Memory& m) {
  if (m.reads >= 0) return true;
  char path[32];
  base::Writer(path, sizeof path).add("/proc/self/fd/").add_number(static_cast<uint64_t>(m.writes));
  const long fd = base::open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  return !base::failed(fd) && stack::keep_private(static_cast<int>(fd), &m.reads);
}

// As a new one, but for pages that will be written. To give up its page and take another one for
// the first write costs more than all else that is done to it: so that write may come first, and
// for a reader its contents may never have to be there (unsettled.cc).
bool prepare(Memory& m, bool reads, uint64_t bytes, bool settles_later) {
  if (reads && !open_reads(m)) return false;
  m.bytes = reads ? bytes : kUnknown;
  m.was_read = reads;
  if (settles_later) return true;
  // Of a file for writing also the time is new.
  const bool cuts = reads ? m.size > bytes : true;
  if (cuts &&
      base::system_call(SYS_ftruncate, m.writes, static_cast<long>(reads ? bytes : 0)) != 0)
    return false;
  m.size = reads ? bytes : 0;
  return base::system_call(SYS_lseek, reads ? m.reads : m.writes, 0, SEEK_SET) == 0;
}

Memory* find_used(uint64_t number) {
  for (Memory& m : kept) {
    if (number != 0 && m.number == number) return &m;
  }
  return nullptr;
}

void set_time(int fd, const timespec& modified) {
  const timespec times[2] = {{0, UTIME_OMIT}, modified};
  base::system_call(SYS_utimensat, fd, 0, reinterpret_cast<long>(times), 0);
}

}  // namespace

Taken take_memory(int flags, uint64_t bytes, const Owner& owner, bool settles_later) {
  const bool reads = (flags & O_ACCMODE) == O_RDONLY;
  Memory* const m =
      (flags & (O_APPEND | O_NONBLOCK)) == 0 && bytes <= kMostKept ? find_free(reads, owner)
                                                                   : nullptr;
  if (m == nullptr || !prepare(*m, reads, bytes, settles_later)) {
    if (m != nullptr) drop(*m);
    Taken own{-1, -1, 0, false, false, {}};
    own.fd = make_memory(flags, &own.number);
    own.fill = static_cast<int>(own.fd);
    return own;
  }
  const long fd = base::system_call(SYS_fcntl, reads ? m->reads : m->writes,
                                    (flags & O_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
  m->is_used = !base::failed(fd);
  const uint32_t unsettled = reads ? kUnfilled : static_cast<uint32_t>(m->size) + 1;
  return {fd, m->writes, m->number, true, reads, m->file, settles_later ? unsettled : 0};
}

void set_mode(const Taken& t, uint16_t mode) {
  Memory* const m = t.is_kept ? find_used(t.number) : nullptr;
  if (m != nullptr && m->mode == mode) return;
  base::system_call(SYS_fchmod, t.fill, mode);
  if (m != nullptr) m->mode = mode;
}

void end_memory(const Used& used, bool is_clean, const Left& left) {
  Memory* const m = find_used(used.number);
  if (m == nullptr) return;
  m->is_used = false;
  const bool was_written = m->bytes == kUnknown;
  const bool is_own = !was_written || (left.user == m->user && left.group == m->group);
  if (was_written) {
    m->mode = left.mode;
    m->size = left.bytes;
    m->position = left.ends_there ? left.bytes : kUnknown;
  }
  if (!is_clean || !is_own || m->size > kMostKept ||
      used.times_lent != base::load(&stack::times_lent))
    drop(*m);
}

int fill_memory(Container& c, const Used& used, const Version& v, uint32_t name_bytes) {
  Memory* const m = find_used(used.number);
  if (m == nullptr) return EIO;
  const bool cuts = m->size > v.bytes;
  m->size = v.bytes > m->size ? v.bytes : m->size;
  if (cuts) {
    const long done = base::system_call(SYS_ftruncate, m->writes, static_cast<long>(v.bytes));
    if (base::failed(done)) return static_cast<int>(-done);
  }
  m->size = v.bytes;
  const char* const contents = held(used.number);
  const int error = contents == nullptr ? fetch(c, v, name_bytes, m->writes)
                                        : write_whole(m->writes, contents, v.bytes, 0);
  set_time(m->writes, {static_cast<time_t>(v.seconds), v.nanoseconds});
  return error;
}

void move_behind(const Used& used, int fd, uint64_t bytes) {
  const Memory* const m = find_used(used.number);
  if (m != nullptr && m->position == bytes) return;
  base::system_call(SYS_lseek, fd, static_cast<long>(bytes), SEEK_SET);
}

void forget_memory() {
  for (Memory& m : kept) {
    if (m.number != 0) drop(m);
  }
}

namespace {

// The same memory for reading alone, under the same number.
long turn_to_reading(int fd, int flags) {
  char path[32];
  base::Writer(path, sizeof path).add("/proc/self/fd/").add_number(static_cast<uint64_t>(fd));
  const long reads = base::open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (base::failed(reads)) return reads;
  base::system_call(SYS_dup3, reads, fd, flags & O_CLOEXEC);
  base::close_fd(static_cast<int>(reads));
  return fd;
}

// As fstat of the descriptor would say.
void describe(stack::File* f, const Taken& t, uint64_t bytes) {
  f->device = t.file.device;
  f->inode = t.file.number;
  f->size_at_open = bytes;
  f->block_bytes = kBlock;
  f->fs_type = kFileSystem;
}

}  // namespace

long open_memory(Container& c, Name* n, const Version& v, const stack::Opening& o,
                 const Owner& owner, Layer& l, const Seen& before) {
  State& s = state(l);
  const bool keeps = v.state == kPacked && (o.flags & O_TRUNC) == 0;
  const bool reads = (o.flags & O_ACCMODE) == O_RDONLY;
  // What another node has packed is read from its container by one opening of that.
  const bool settles_later = o.may_settle_later && (!keeps || (reads && v.container == 0));
  const Taken t = take_memory(o.flags, keeps ? v.bytes : 0, owner, settles_later);
  if (base::failed(t.fd)) return t.fd;
  const bool is_later = t.unsettled != 0;
  int error = 0;
  if (keeps)
    error = is_later ? hold(c, v, n->bytes, t.number) : fetch(c, v, n->bytes, t.fill);
  const bool is_foreign = v.user != owner.user || v.group != owner.group;
  if (!reads && is_foreign) base::system_call(SYS_fchown, t.fill, v.user, v.group);
  set_mode(t, v.mode);
  if (keeps && !is_later)
    set_time(t.fill, {static_cast<time_t>(v.seconds), v.nanoseconds});
  s.stage = is_later ? kFresh : kPlain;
  s.is_own = !is_foreign;
  s.contents = v;
  if (!keeps) s.contents.bytes = 0;
  s.name_bytes = n->bytes;
  const int file = static_cast<int>(t.fd);
  long fd = t.fd;
  if (error != 0) fd = -error;
  else if (reads && !t.reads) fd = turn_to_reading(file, o.flags);
  if (t.is_kept) s.used = {t.number, base::load(&stack::times_lent)};
  if (!base::failed(fd) && !begin_live(c.segment, n, t.number, file, before, t.unsettled))
    fd = -EAGAIN;
  if (base::failed(fd)) {
    base::close_fd(file);
    end_memory(s.used, false, s.left);
    s.used = {};
  } else {
    describe(l.file, t, keeps ? v.bytes : 0);
    l.file->unsettled = is_later;
  }
  return fd;
}

}  // namespace weir::layers::pack
