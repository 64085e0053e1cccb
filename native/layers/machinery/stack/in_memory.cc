// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/in_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/syscall.h"
#include "layers/machinery/stack/carried_locks.h"
#include "layers/machinery/stack/inside.h"
#include "layers/machinery/stack/lock.h"
#include "layers/machinery/stack/notes.h"
#include "layers/machinery/stack/private.h"
#include "layers/machinery/stack/table.h"

namespace weir::stack {

constinit uint32_t times_lent = 0;

namespace {

Layer& layer_of(const File* f) {
  Layer* layer = f->top;
  while (layer->kind->names == nullptr) layer = layer->below;
  return *layer;
}

const NamesOfLayer& names_of(const File* f) { return *layer_of(f).kind->names; }

constexpr int kHeld = 64;
constinit int held[kHeld] = {};
constinit int held_count = 0;

// An open file that is never closed: a close would end the locks that the process has on it. False:
// there are too many.
bool hold_open(int* fd) {
  if (held_count == kHeld || !keep_private(*fd, &held[held_count])) return false;
  *fd = held[held_count++];
  return true;
}

// The real file as `f` has its memory open, under all of its numbers. is_locked: by the process.
void turn_to_real(File* f, int real, bool is_locked) {
  char path[32];
  base::Writer(path, sizeof path).add("/proc/self/fd/").add_number(static_cast<uint64_t>(real));
  constexpr int kKept = O_ACCMODE | O_APPEND | O_NONBLOCK | O_SYNC | O_NOATIME;
  const long opened = base::open_at(AT_FDCWD, path, (f->flags & kKept) | O_CLOEXEC);
  if (base::failed(opened)) return;
  int fd = static_cast<int>(opened);
  const bool is_held = is_locked && hold_open(&fd);
  const long at = base::system_call(SYS_lseek, f->descriptor, 0, SEEK_CUR);
  base::system_call(SYS_lseek, fd, at, SEEK_SET);
  CarriedLocks(f->descriptor).set_of_open_file(fd);
  for (int number = 0; number <= highest_known(); ++number) {
    if (known_at(number) == f) copy_again(fd, number);
  }
  if (!is_held) base::close_fd(fd);
  f->in_memory = false;
}

// An opening of the memory that `f` has, for writing where there is one.
File* writer_of(File* f) {
  File* writer = f;
  for (int fd = 0; fd <= highest_known(); ++fd) {
    File* const g = known_at(fd);
    if (is_in_memory(g) && g->inode == f->inode && (g->flags & O_ACCMODE) != O_RDONLY) writer = g;
  }
  return writer;
}

template <typename Each>
void for_each_in_memory(Each each) {
  if (!any_layer_has_names()) return;
  for (int fd = 0; fd <= highest_known(); ++fd) {
    File* const f = known_at(fd);
    if (is_in_memory(f) && f->descriptor == fd) each(f);
  }
}

}  // namespace

void settle_memory(int fd) {
  File* const f = listed_at(fd);
  if (f == nullptr || !f->unsettled) return;
  const int before = errno;
  names_of(f).settle(layer_of(f));
  errno = before;
}

bool leads_to_files(const char* absolute) {
  return strncmp(absolute, "/proc/", 6) == 0 ||
         (strncmp(absolute, "/dev/", 5) == 0 && strncmp(absolute, "/dev/shm/", 9) != 0);
}

void settle_all_memory() {
  for_each_in_memory([](const File*) {});  // which settles it (known_at)
}

void copy_again(int from, int to) {
  const long kept = base::system_call(SYS_fcntl, to, F_GETFD);
  base::system_call(SYS_dup3, from, to, (kept & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
}

void patch_stat_in_memory(const File* f, struct stat* to) {
  const base::SignalsBlocked blocked;
  struct stat about;
  if (names_of(f).stat_open(layer_of(f), &about) == 0) {
    to->st_dev = about.st_dev;
    to->st_ino = about.st_ino;
    to->st_nlink = 1;
    if ((f->flags & O_ACCMODE) == O_RDONLY) {  // the memory may have been another's file
      to->st_uid = about.st_uid;
      to->st_gid = about.st_gid;
    }
  } else {
    to->st_nlink = 0;  // removed, as a real one that is open still
  }
}

bool change_in_memory(int fd, const Change& change, int* result) {
  File* const f = known_at(fd);
  if (!is_in_memory(f) || (f->flags & O_ACCMODE) != O_RDONLY) return false;
  const base::SignalsBlocked blocked;
  const Result r = names_of(f).change_open(layer_of(f), change);
  if (r == -ENOENT) {
    settle_memory(fd);
    f->lent = true;  // no other file gets memory with these attributes
    return false;
  }
  *result = r < 0 ? -1 : 0;
  if (r < 0) errno = static_cast<int>(-r);
  return true;
}

void moved_in_memory(File* f, int from, int to) {
  const base::SignalsBlocked blocked;
  names_of(f).moved(layer_of(f), from, to);
}

bool lock_was_of_memory(int fd) {
  File* const f = file_at(fd);
  if (!is_in_memory(f)) return false;
  follow_in_memory(f);
  return !f->in_memory;
}

void follow_in_memory(File* f) {
  const int before = errno;
  names_of(f).follow(layer_of(f));
  errno = before;
}

bool make_real(File* f, Reason reason, bool always) {
  if (!f->in_memory || !may_change()) return false;
  f->lent = true;
  const int before = errno;
  const base::SignalsBlocked blocked;
  const base::HoldsDescriptor held;
  File* const source = writer_of(f);
  const bool locked = lock(source);
  const Result made = names_of(source).make_real(layer_of(source), always);
  if (made >= 0) {
    int fd = static_cast<int>(made);
    const CarriedLocks locks(f->descriptor);
    const CarriedLocks of_real(fd);  // by an opening that was of the real file
    const bool is_locked = locks.any_of_process() || of_real.any_of_process();
    const bool is_held = is_locked && hold_open(&fd);
    locks.set_of_process(fd);
    for (int number = 0; number <= highest_known(); ++number) {
      File* const g = known_at(number);
      if (!is_in_memory(g) || g->inode != f->inode) continue;
      turn_to_real(g, fd, is_locked);
      note_bypass(g, &layer_of(g), reason);
    }
    if (!is_held) base::close_fd(fd);
    of_real.set_of_process(f->descriptor);
    locks.set_of_process(f->descriptor);
  }
  if (locked) unlock(source);
  errno = before;
  return made >= 0;
}

void before_growth(int fd, uint64_t bytes) {
  File* const f = file_at(fd);
  if (!is_in_memory(f)) return;
  follow_in_memory(f);
  if (f->in_memory && names_of(f).is_large != nullptr && names_of(f).is_large(layer_of(f), bytes))
    make_real(f, Reason::kLargeRequests);
}

bool was_sealed(int fd) {
  File* const f = file_at(fd);
  return is_in_memory(f) && make_real(f, Reason::kUnsupported);
}

void make_all_real(Reason reason) {
  base::fetch_add(&times_lent, 1u);
  for_each_in_memory([reason](File* f) { make_real(f, reason); });
}

void make_real_where(const NamesOfLayer& names, bool (*is)(Layer&, const void* with),
                     const void* with, Reason reason) {
  for_each_in_memory([&](File* f) {
    if (&names_of(f) == &names && is(layer_of(f), with)) make_real(f, reason);
  });
}

}  // namespace weir::stack
