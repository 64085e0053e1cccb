// SPDX-License-Identifier: Apache-2.0
// Memory of files that were closed, kept for the next opening with its pages: an opening is then
// two or three short system calls. A memory is used again only where nothing else can reach it:
// not when another opening had it, nor when a process, a map, a lock, a pipe or a path of /proc
// may have it still (File::lent, times_lent).
#include <errno.h>
#include <fcntl.h>

#include "layers/machinery/stack/in_memory.h"
#include "layers/machinery/stack/private.h"
#include "layers/pack/pack.h"

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
  m = {number, -1, -1, user, group, 0, 0, 0777, false, false, {}};
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
// the first write costs more than all else that is done to it: so that write may come first
// (write_first()).
bool prepare(Memory& m, bool reads, uint64_t bytes, bool settles_later) {
  if (reads && !open_reads(m)) return false;
  // Of a file for writing also the time is new.
  const bool cuts = reads ? m.size > bytes : !settles_later;
  if (cuts &&
      base::system_call(SYS_ftruncate, m.writes, static_cast<long>(reads ? bytes : 0)) != 0)
    return false;
  m.bytes = reads ? bytes : kUnknown;
  m.was_read = reads;
  return base::system_call(SYS_lseek, reads ? m.reads : m.writes, 0, SEEK_SET) == 0;
}

Memory* find_used(uint64_t number) {
  for (Memory& m : kept) {
    if (number != 0 && m.number == number) return &m;
  }
  return nullptr;
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
  const bool is_unsettled = settles_later && !reads;
  return {fd, m->writes, m->number, true, reads, m->file,
          is_unsettled ? static_cast<uint32_t>(m->size) + 1 : 0};
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
  if (m->bytes == kUnknown) m->mode = left.mode;
  const bool is_own = m->bytes != kUnknown || (left.user == m->user && left.group == m->group);
  const uint64_t bytes = m->bytes != kUnknown ? m->bytes : left.bytes;
  m->size = bytes;
  if (!is_clean || !is_own || bytes > kMostKept ||
      used.times_lent != base::load(&stack::times_lent))
    drop(*m);
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

void set_time(int fd, const timespec& modified) {
  const timespec times[2] = {{0, UTIME_OMIT}, modified};
  base::system_call(SYS_utimensat, fd, 0, reinterpret_cast<long>(times), 0);
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
  const bool settles_later = o.may_settle_later && !keeps;
  const Taken t = take_memory(o.flags, keeps ? v.bytes : 0, owner, settles_later);
  if (base::failed(t.fd)) return t.fd;
  int error = keeps ? fetch(c, v, n->bytes, t.fill) : 0;
  const bool is_foreign = v.user != owner.user || v.group != owner.group;
  if ((o.flags & O_ACCMODE) != O_RDONLY && is_foreign)
    base::system_call(SYS_fchown, t.fill, v.user, v.group);
  set_mode(t, v.mode);
  const bool is_untimed = t.reads && o.may_settle_later;
  s.modified = {static_cast<time_t>(v.seconds), v.nanoseconds};
  if (keeps && !is_untimed) set_time(t.fill, s.modified);
  const uint32_t unsettled = is_untimed ? kUntimed : t.unsettled;
  const int file = static_cast<int>(t.fd);
  long fd = t.fd;
  if (error != 0) fd = -error;
  else if ((o.flags & O_ACCMODE) == O_RDONLY && !t.reads) fd = turn_to_reading(file, o.flags);
  if (t.is_kept) s.used = {t.number, base::load(&stack::times_lent)};
  if (!base::failed(fd) && !begin_live(c.segment, n, t.number, file, before, unsettled))
    fd = -EAGAIN;
  if (base::failed(fd)) {
    base::close_fd(file);
    end_memory(s.used, false, s.left);
    s.used = {};
  } else {
    describe(l.file, t, keeps ? v.bytes : 0);
    l.file->unsettled = unsettled != 0;
  }
  return fd;
}

namespace {

// What the name says of this opening's memory, while that is unsettled. The name is locked.
bool is_unsettled(const Layer& l, const Name* n, const State& s) {
  return l.file->unsettled && base::load(&n->live) == s.used.number && n->unsettled != 0;
}

bool has_name(const State& s) { return s.container != nullptr && s.times_left == times_left; }

long cut(const Layer& l, Result bytes) {
  return base::system_call(SYS_ftruncate, l.file->descriptor, bytes > 0 ? bytes : 0);
}

}  // namespace

void settle(Layer& l) {
  if (WEIR_LIKELY(!l.file->unsettled)) return;
  const State& s = state(l);
  const base::SignalsBlocked blocked;
  const auto settle_memory = [&] {
    if ((l.file->flags & O_ACCMODE) == O_RDONLY) set_time(l.file->descriptor, s.modified);
    else cut(l, 0);
  };
  if (has_name(s)) {
    const LockedName locked(s.name);
    if (is_unsettled(l, s.name, s)) {
      settle_memory();
      s.name->unsettled = 0;
    }
  } else {
    settle_memory();
  }
  stack::note_settled(l.file);
}

// Other openings wait for the name meanwhile, and find the file as it is after the write.
Result write_first(Layer& l, const stack::Transfer& t) {
  const State& s = state(l);
  const base::SignalsBlocked blocked;
  Layer& bottom = *l.file->bottom;
  if (t.offset != stack::kKernelOffset || !has_name(s)) {
    settle(l);
    return bottom.kind->write(bottom, t);
  }
  const LockedName locked(s.name);
  const bool replaces = is_unsettled(l, s.name, s);
  if (replaces && t.bytes < s.name->unsettled - 1) cut(l, static_cast<Result>(t.bytes));
  const Result r = bottom.kind->write(bottom, t);
  if (replaces && r != static_cast<Result>(t.bytes)) cut(l, r);
  if (replaces) s.name->unsettled = 0;
  stack::note_settled(l.file);
  return r;
}

}  // namespace weir::layers::pack
