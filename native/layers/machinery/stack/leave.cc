// SPDX-License-Identifier: Apache-2.0
// Files on their way out of their layers, for good or for one call.
#include <errno.h>
#include <unistd.h>

#include "base/syscall.h"
#include "layers/machinery/stack/build.h"
#include "layers/machinery/stack/in_memory.h"
#include "layers/machinery/stack/inside.h"
#include "layers/machinery/stack/notes.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/replace.h"
#include "layers/machinery/stack/sharing.h"
#include "layers/machinery/stack/table.h"

namespace weir::stack {
namespace {

void set_kernel_position(File* f) {
  own_description(f);
  if (!f->transforms)
    base::system_call(SYS_lseek, f->descriptor, static_cast<long>(f->position), SEEK_SET);
}

void forget_clean(File* f) { f->enter.invalidate->kind->invalidate(*f->enter.invalidate); }

bool enter(File* f, int fd) {
  if (!lock(f)) return false;
  if (!f->left && file_at(fd) == f) return true;
  unlock(f);
  return false;
}

}  // namespace

int take_error(File* f) {
  if (WEIR_LIKELY(base::load_relaxed(&f->error) == 0)) return 0;
  return base::exchange(&f->error, 0);
}

void flush_inside(File* f) {
  const Result result = f->enter.flush->kind->flush(*f->enter.flush);
  if (result < 0) defer(f, nullptr, static_cast<int>(-result), 0);
  if (result == 0) unregister_file(f);
}

void leave_inside(File* f, Reason reason, const Layer* by) {
  if (f->left) return;
  flush_inside(f);
  if (f->transforms) {
    f->leaving = 0;
    return;
  }
  if (f->holds) set_kernel_position(f);
  forget_clean(f);
  close_layers(f);
  note_statistics(f);
  if (reason != Reason::kNone && f->leaving == 0) note_bypass(f, by, reason);
  unregister_file(f);
  set_left(f);
  leave_lease(f);
  mark_plain(f);
}

void call_back_sharers(const File* f, Reason reason) {
  if (f->shares && f->left && reason != Reason::kNone && reason != Reason::kConflict &&
      may_change())
    recall(f->device, f->inode);
}

void leave(File* f, Reason reason) {
  if (WEIR_UNLIKELY(f->in_memory)) make_real(f, reason);
  if (f->left || !f->holds || !lock(f)) return;
  const bool leaves = !f->left && f->references != 0;
  if (leaves) leave_inside(f, reason, nullptr);
  unlock(f);
  if (leaves) call_back_sharers(f, reason);
}

bool leave(int fd, Reason reason) {
  File* const f = file_at(fd);
  if (f == nullptr || (!f->holds && !f->in_memory)) return true;
  leave(f, reason);
  return !f->transforms;
}

int flush(File* f, int fd) {
  if (!f->holds) return 0;
  if (!enter(f, fd)) return 0;
  flush_inside(f);
  const int error = take_error(f);
  unlock(f);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

void fetch_from_sharers(const File* f) {
  uint64_t bytes = 0;
  bool exact = false;
  const bool cannot = f->shares && (f->flags & O_ACCMODE) == O_RDONLY;
  if (cannot && size_of(f->device, f->inode, &bytes, &exact)) recall(f->device, f->inode);
}

Through begin_through(File* f, int fd) {
  if (!may_change()) {  // the child of vfork: the parent's memory must not follow what it does
    leave(f, Reason::kForked);
    return {f, fd, false};
  }
  fetch_from_sharers(f);
  if (!enter(f, fd)) return {f, fd, false};
  flush_inside(f);
  set_kernel_position(f);
  forget_clean(f);
  return {f, fd, true};
}

void end_through(const Through& t) {
  if (!t.inside) return;
  const int before = errno;
  if (!t.file->transforms) {
    const long at = base::system_call(SYS_lseek, t.file->descriptor, 0, SEEK_CUR);
    if (!base::failed(at)) t.file->position = static_cast<uint64_t>(at);
  }
  forget_clean(t.file);
  unlock(t.file);
  errno = before;
}

bool is_of_whole(const struct flock* range) {
  return range->l_whence == SEEK_SET && range->l_start == 0 && range->l_len == 0;
}

int count_from_start(File* f, int fd, struct flock* range) {
  if ((range->l_whence != SEEK_CUR && range->l_whence != SEEK_END) || !enter(f, fd)) return 0;
  const bool from_end = range->l_whence == SEEK_END;
  const Result from =
      from_end ? f->enter.size->kind->size(*f->enter.size) : static_cast<Result>(f->position);
  unlock(f);
  if (from < 0) return static_cast<int>(-from);
  off_t start = 0;
  if (__builtin_add_overflow(from, range->l_start, &start)) return EOVERFLOW;
  range->l_whence = SEEK_SET;
  range->l_start = start;
  return 0;
}

void take_answer(const struct flock& asked, struct flock* range) {
  if (asked.l_type == F_UNLCK) range->l_type = F_UNLCK;
  else *range = asked;
}

void before_waiting(int fd) {
  File* const f = file_at(fd);
  if (f != nullptr) f->locked = true;
  if (f == nullptr || !f->holds || (f->coherent && !f->common) || !enter(f, fd)) return;
  own_description(f);  // the lock is this opening's
  if (!f->coherent) {
    flush_inside(f);
    forget_clean(f);
  }
  unlock(f);
}

void before_locking_from_position(int fd) {
  File* const f = file_at(fd);
  if (f != nullptr) f->locked = true;
  if (f == nullptr || !f->holds || !enter(f, fd)) return;
  if (!f->coherent) flush_inside(f);
  set_kernel_position(f);
  if (!f->coherent) forget_clean(f);
  unlock(f);
}

void after_waiting(int fd) {
  const int before = errno;
  File* const f = file_at(fd);
  if (f == nullptr || !f->holds || f->coherent || !enter(f, fd)) return;
  flush_inside(f);  // what another thread wrote meanwhile
  forget_clean(f);
  unlock(f);
  errno = before;
}

}  // namespace weir::stack
