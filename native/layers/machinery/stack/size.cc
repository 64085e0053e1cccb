// SPDX-License-Identifier: Apache-2.0
// Where a file under layers stands and how long it is: lseek, fsync, ftruncate, and the size in
// stat's answers.
#include <errno.h>
#include <unistd.h>

#include "base/syscall.h"
#include "layers/machinery/stack/inside.h"
#include "layers/machinery/stack/notes.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/sharing.h"
#include "layers/machinery/stack/table.h"

namespace weir::stack {

WEIR_THREAD const struct stat* stat_of_program = nullptr;
WEIR_THREAD struct stat* stat_for_layer = nullptr;

namespace {

// Beyond it the kernel is asked what the file system allows.
constexpr int64_t kFarOut = int64_t{1} << 43;

long done(long r) {
  if (WEIR_LIKELY(r >= 0)) return r;
  errno = static_cast<int>(-r);
  return -1;
}

long kernel_seek(int fd, off_t offset, int whence) {
  return base::system_call(SYS_lseek, fd, offset, whence);
}

// Takes the lock for the lifetime of the object, where the file is still under layers.
class Inside {
 public:
  Inside(File* f, int fd) : file_(f) {
    if (!may_change()) {
      leave(f, Reason::kForked);
      return;
    }
    if (!lock(f)) {
      within_ = true;
      return;
    }
    inside_ = !f->left && file_at(fd) == f;
    if (!inside_) unlock(f);
  }
  ~Inside() {
    if (!inside_) return;
    if (WEIR_UNLIKELY(file_->leaving != 0))
      leave_inside(file_, static_cast<Reason>(file_->leaving), file_->top);
    unlock(file_);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  explicit operator bool() const { return inside_; }
  bool within() const { return within_; }  // a signal handler within a call on the file

 private:
  File* file_;
  bool inside_ = false, within_ = false;
};

// Data and holes are what the kernel knows of them.
long seek_data(File* f, int fd, off_t offset, int whence) {
  if (f->transforms) return -EINVAL;
  flush_inside(f);
  const long at = kernel_seek(fd, offset, whence);
  if (!base::failed(at)) f->position = static_cast<uint64_t>(at);
  return at;
}

long seek_inside(File* f, int fd, off_t offset, int whence) {
  int64_t base = 0;
  if (whence == SEEK_CUR) {
    base = static_cast<int64_t>(f->position);
  } else if (whence == SEEK_END) {
    base = f->enter.size->kind->size(*f->enter.size);
    if (base < 0) return base;
  } else if (whence != SEEK_SET) {
    return seek_data(f, fd, offset, whence);
  }
  int64_t target = 0;
  if (__builtin_add_overflow(base, offset, &target) || target < 0) return -EINVAL;
  if (WEIR_UNLIKELY(target > kFarOut)) {
    const long at = kernel_seek(fd, target, SEEK_SET);
    if (base::failed(at)) return at;
  }
  f->position = static_cast<uint64_t>(target);
  return target;
}

}  // namespace

off_t lseek(File* f, int fd, off_t offset, int whence) {
  if (WEIR_UNLIKELY(f->in_memory)) follow_in_memory(f);
  if (!f->holds) return done(kernel_seek(fd, offset, whence));
  if (whence > SEEK_END) fetch_from_sharers(f);
  const Inside in(f, fd);
  if (in) return done(seek_inside(f, fd, offset, whence));
  if (in.within())
    return done(whence == SEEK_CUR ? static_cast<off_t>(f->position) + offset
                                   : kernel_seek(fd, offset, whence));
  return done(kernel_seek(fd, offset, whence));
}

int fsync(File* f, int fd, bool data_only) {
  const auto kernel = [=] { return base::system_call(data_only ? SYS_fdatasync : SYS_fsync, fd); };
  if (!f->holds)
    return static_cast<int>(
        done(f->left ? kernel() : f->enter.sync->kind->sync(*f->enter.sync, data_only)));
  long result = 0;
  {
    const Inside in(f, fd);
    if (in) {
      result = f->enter.sync->kind->sync(*f->enter.sync, data_only);
      if (result == 0) unregister_file(f);
    } else {
      result = kernel();
    }
  }
  if (const int error = file_at(fd) == f ? take_error(f) : 0; error != 0) {
    if (f->left) mark_plain(f);
    result = -error;
  }
  return static_cast<int>(done(result));
}

int ftruncate(File* f, int fd, off_t bytes) {
  const auto kernel = [=] { return base::system_call(SYS_ftruncate, fd, bytes); };
  if (WEIR_UNLIKELY(f->in_memory)) {
    follow_in_memory(f);
    if ((f->flags & O_ACCMODE) == O_RDONLY) return static_cast<int>(done(-EINVAL));
  }
  if (bytes < 0 || (f->flags & O_ACCMODE) == O_RDONLY) return static_cast<int>(done(kernel()));
  if (!f->holds)
    return static_cast<int>(done(f->left ? kernel()
                                         : f->enter.truncate->kind->truncate(
                                               *f->enter.truncate, static_cast<uint64_t>(bytes))));
  // Others that share its layers may have reported to the node an end behind this one: they leave,
  // which takes it back.
  uint64_t reported = 0;
  bool exact = false;
  if (f->shares && size_of(f->device, f->inode, &reported, &exact) &&
      static_cast<uint64_t>(bytes) < reported)
    recall(f->device, f->inode);
  const Inside in(f, fd);
  if (!in) return static_cast<int>(done(kernel()));
  if (static_cast<uint64_t>(bytes) > file_limit || bytes > kFarOut) {
    flush_inside(f);
    const long result = kernel();
    f->enter.invalidate->kind->invalidate(*f->enter.invalidate);
    return static_cast<int>(done(result));
  }
  const Result result =
      f->enter.truncate->kind->truncate(*f->enter.truncate, static_cast<uint64_t>(bytes));
  if (result >= 0) {
    unregister_file(f, true);
    if (f->transforms) cut_published(f->device, f->inode, static_cast<uint64_t>(bytes));
    if (bytes > 0) publish_end(f, static_cast<uint64_t>(bytes));
  }
  return static_cast<int>(done(result));
}

void patch_size(File* f, int fd, struct stat* about) {
  if (!f->holds || f->left || ((f->flags & O_ACCMODE) == O_RDONLY && !f->transforms && !f->shares))
    return;
  const int before = errno;
  if (const Inside in(f, fd); in) {
    stat_of_program = about;
    const Result size = f->enter.size->kind->size(*f->enter.size);
    stat_of_program = nullptr;
    if (size >= 0) about->st_size = size;
  }
  errno = before;
}

bool patch_size_of_path(struct stat* about) {
  uint64_t bytes = 0;
  bool exact = false;
  if (!size_of(about->st_dev, about->st_ino, &bytes, &exact)) return false;
  if (exact || static_cast<uint64_t>(about->st_size) < bytes)
    about->st_size = static_cast<off_t>(bytes);
  return true;
}

}  // namespace weir::stack
