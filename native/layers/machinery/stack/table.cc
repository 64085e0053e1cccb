// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/table.h"

#include <errno.h>
#include <fcntl.h>

#include "base/section.h"
#include "base/syscall.h"
#include "base/text.h"
#include "trace/log.h"
#include "layers/machinery/stack/build.h"
#include "layers/machinery/stack/busy.h"
#include "layers/machinery/stack/carried_locks.h"
#include "layers/machinery/stack/in_memory.h"
#include "layers/machinery/stack/inside.h"
#include "layers/machinery/stack/notes.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/private.h"
#include "layers/machinery/stack/replace.h"
#include "layers/machinery/stack/sharing.h"

namespace weir::stack {
namespace {

constinit int highest = -1;  // no number above it was ever known
WEIR_BUSY(busy);

using Busy = BusyWith<&busy>;

uintptr_t bits_of(const File* f) {
  uintptr_t bits = 0;
  if (f->left && f->error == 0) bits |= kAllPass;
  if (f->left || f->holds) return bits;
  if (f->enter.read == f->bottom) bits |= kReadsPass;
  if (f->enter.write == f->bottom) bits |= kWritesPass;
  if (f->unsettled) bits |= kUnsettled;
  return f->in_memory ? bits : bits | kSeeksPass;  // it may be a real file by now
}

void set(int fd, File* f) {
  base::store(&files[fd], reinterpret_cast<File*>(reinterpret_cast<uintptr_t>(f) | bits_of(f)));
  if (fd > highest) highest = fd;
}

// Another number of the file than the one that goes; -1: that was the last. The copy made last is
// there in most cases.
int other_number(const File* f, int going) {
  if (f->last_copy != going && listed_at(f->last_copy) == f) return f->last_copy;
  for (int fd = 0; fd <= highest; ++fd) {
    if (fd != going && listed_at(fd) == f) return fd;
  }
  return -1;
}

// The layers of a file that no number names any more; what is left of it goes with give_up().
void end_layers(File* f) {
  if (f->left) return;
  close_layers(f);
  // The write-back daemon has a copy of the descriptor, which may stay for a while and would keep
  // the locks with it.
  if (f->locked && f->holds && f->references == 0) base::end_locks(f->descriptor);
  note_statistics(f);
  unregister_file(f, true);
  set_left(f);
}

}  // namespace

constinit File* files[kFiles] = {};

int highest_known() { return base::load_relaxed(&highest); }

bool may_change() { return !trace::thread_log.in_vfork_child; }

void give_up(File* f) {
  if (f->parks != 0) never_park(f);
  unlink(f);
  end_lease(f);
  give_back(f);
}

void note_settled(File* f) {
  f->unsettled = false;
  const Busy hold;
  if (listed_at(f->descriptor) == f) set(f->descriptor, f);
}

void enter_table(int fd, File* f) {
  const Busy hold;
  f->descriptor = fd;
  f->references = 1;
  set(fd, f);
}

void mark_plain(File* f) {
  const Busy hold;
  if (f->references == 1) {
    if (listed_at(f->descriptor) == f) set(f->descriptor, f);
    return;
  }
  uint32_t rest = f->references;
  for (int fd = 0; fd <= highest && rest != 0; ++fd) {
    if (listed_at(fd) != f) continue;
    set(fd, f);
    --rest;
  }
}

bool begin_parking(int fd, File* f) {
  const Busy hold;
  if (known_at(fd) != f || f->references != 1) return false;
  f->descriptor = fd;
  if (!adopt_private(fd, &f->descriptor)) return false;
  base::store(&files[fd], static_cast<File*>(nullptr));
  return true;
}

void end_parking(File* f) {
  const int fd = f->descriptor;
  release_private(fd);
  const Busy hold;
  f->references = 1;
  set(fd, f);
}

void end_parked(File* f) {
  if (lock(f)) {
    if (!f->left) {
      flush_inside(f);
      end_layers(f);
    }
    f->references = 0;
    unlock(f);
  }
  close_private(&f->descriptor);
  give_up(f);
}

namespace {

int end_number(int fd, File* f) {
  const bool inside = f->holds && !f->left;
  const bool locked = inside && lock(f);
  if (inside && locked && !f->left) flush_inside(f);
  bool last = false;
  int moved_to = -1;
  {
    const Busy hold;
    if (listed_at(fd) != f) {  // another thread was faster
      if (locked) unlock(f);
      return 0;
    }
    if (f->references > 1 && f->descriptor == fd) {
      const int other = other_number(f, fd);
      if (other >= 0) {
        // Ends what is under way on this number.
        if (locked && !f->left) f->enter.invalidate->kind->invalidate(*f->enter.invalidate);
        base::store(&f->descriptor, other);
        moved_to = other;
      }
    }
    base::store(&files[fd], static_cast<File*>(nullptr));
    last = --f->references == 0;
  }
  if (moved_to >= 0 && f->in_memory) moved_in_memory(f, fd, moved_to);
  if (last && (!inside || locked)) end_layers(f);
  const int error = take_error(f);
  if (locked) unlock(f);
  if (last) give_up(f);
  return error;
}

}  // namespace

int before_close(int fd) {
  File* const f = listed_at(fd);
  if (f == nullptr || !may_change()) return 0;
  if (!f->in_memory) return end_number(fd, f);
  const base::Section section;  // one for all that is done to it
  return end_number(fd, f);
}

void before_close_range(unsigned first, unsigned last) {
  const int end = base::load_relaxed(&highest);
  for (int64_t fd = first; fd <= last && fd <= end; ++fd) {
    if (known_at(static_cast<int>(fd)) != nullptr) before_close(static_cast<int>(fd));
  }
}

void copied(int from, int to) {
  if (from == to) return;
  File* const f = known_at(from);
  if (f == nullptr) {
    if (known_at(to) != nullptr && may_change())
      before_close(to);  // a number whose close nobody saw
    return;
  }
  if (!may_change()) {  // the child of vfork: it is the kernel that will serve the copy
    leave(f, Reason::kForked);
    return;
  }
  if (known_at(to) != nullptr) drop_unseen(to);
  if (static_cast<unsigned>(to) >= kFiles) {
    leave(f, Reason::kUnsupported);
    return;
  }
  const Busy hold;
  if (known_at(from) != f) return;
  ++f->references;
  f->last_copy = to;
  set(to, f);
}

namespace {

// A stream of the C library on this number (stdout, and whatever was open there) reads and writes
// without a call that is seen.
bool may_have_stream(int fd) {
  return fd <= 2 || !base::failed(base::system_call(SYS_fcntl, fd, F_GETFD, 0));
}

}  // namespace

bool may_copy(int from, int to) {
  File* const f = file_at(from);
  if (f == nullptr || (!f->holds && !f->in_memory) || from == to || !may_change() ||
      !may_have_stream(to))
    return true;
  // The kernel serves memory, streams and all (end_names in names_of_layers.cc looks for what they
  // still hold). Only of the standard streams is it known which they are.
  if (f->in_memory && to <= 2) return true;
  leave(f, Reason::kStreams);
  return !f->transforms;
}

void before_replacing(int from, int to) {
  if (from == to || !may_change()) return;
  if (is_private(to)) make_way(to);
  if (known_at(to) == nullptr) return;
  if (base::failed(base::system_call(SYS_fcntl, from, F_GETFD, 0)))
    return;          // the call will fail, and closes nothing
  before_close(to);  // dup2 reports no error of it: that stands in the report at the end
}

void drop_unseen(int fd) {
  File* const f = known_at(fd);
  if (f == nullptr) return;
  {
    const Busy hold;
    base::store(&files[fd], static_cast<File*>(nullptr));
    if (--f->references != 0) {
      if (f->descriptor == fd) base::store(&f->descriptor, other_number(f, fd));
      return;
    }
  }
  f->descriptor = -1;
  end_layers(f);
  give_up(f);
}

void flags_set(int fd, int flags) {
  File* const f = known_at(fd);
  if (f == nullptr) return;
  constexpr int kChangeable = O_APPEND | O_ASYNC | O_DIRECT | O_NOATIME | O_NONBLOCK;
  f->flags = (f->flags & ~kChangeable) | (flags & kChangeable);
  if ((flags & O_DIRECT) != 0 && f->holds && !f->left) leave(f, Reason::kDirect);
}

void replace_descriptors(File* f, int with) {
  const Busy hold;
  uint32_t rest = f->references;
  for (int fd = 0; fd <= highest && rest != 0; ++fd) {
    if (known_at(fd) != f) continue;
    const long flags = base::system_call(SYS_fcntl, fd, F_GETFD);
    const long on_exec = (flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0;
    base::system_call(SYS_dup3, with, fd, on_exec);
    --rest;
  }
}

void own_description(File* f) {
  if (WEIR_LIKELY(!f->common)) return;
  const base::SignalsBlocked blocked;
  const base::HoldsDescriptor held;
  char path[40];
  base::Writer(path, sizeof path)
      .add("/proc/self/fd/")
      .add_number(static_cast<uint64_t>(f->descriptor));
  const long flags = base::system_call(SYS_fcntl, f->descriptor, F_GETFL);
  const long fd = base::failed(flags)
                      ? flags
                      : base::open_at(AT_FDCWD, path, static_cast<int>(flags) | O_CLOEXEC);
  if (base::failed(fd)) return;
  const CarriedLocks locks(f->descriptor);
  if (known_at(f->descriptor) == f) replace_descriptors(f, static_cast<int>(fd));
  else copy_again(static_cast<int>(fd), f->descriptor);  // before it enters the table
  base::close_fd(static_cast<int>(fd));
  locks.set_again();
  set_own(f);
}

bool make_space(int fd) {
  File* const f = file_at(fd);
  const int before = errno;
  bool made = false;
  for (int i = 0; f != nullptr && i < f->layer_count && !made; ++i) {
    const Kind& kind = *f->top[i].kind;
    made = kind.make_space != nullptr && kind.make_space(f->top[i]);
  }
  errno = before;
  return made;
}

bool reserve(int fd, uint64_t at, uint64_t bytes) {
  File* const f = file_at(fd);
  const int before = errno;
  Result r = 0;
  for (int i = 0; f != nullptr && i < f->layer_count && r == 0; ++i) {
    const Kind& kind = *f->top[i].kind;
    if (kind.reserve != nullptr) r = kind.reserve(f->top[i], at, bytes);
  }
  errno = r == 0 ? before : static_cast<int>(-r);
  return r == 0;
}

}  // namespace weir::stack
