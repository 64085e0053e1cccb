// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/process.h"

#include <errno.h>
#include <sys/resource.h>

#include "base/syscall.h"
#include "layers/machinery/stack/busy.h"
#include "layers/machinery/stack/in_memory.h"
#include "layers/machinery/stack/inside.h"
#include "layers/machinery/stack/lock.h"
#include "layers/machinery/stack/names_of_layers.h"
#include "layers/machinery/stack/notes.h"
#include "layers/machinery/stack/park.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/sharing.h"
#include "layers/machinery/stack/table.h"

namespace weir::stack {

constinit bool losses_are_said = false;

namespace {

constinit uint32_t waits_for_filter = 0;  // rules were in force before it

// Each file that has or had layers which hold something, once, by one of its numbers.
template <typename Each>
void for_every(Each each) {
  const int before = errno;
  for (int fd = 0; fd <= highest_known(); ++fd) {
    File* const f = known_at(fd);
    if (f != nullptr && f->holds && f->descriptor == fd) each(f, fd);
  }
  errno = before;
}
template <typename Each>
void for_all(Each each) {  // those that have them still
  for_every([each](File* f, int fd) {
    if (!f->left) each(f, fd);
  });
}

bool inherited(int fd) { return (base::system_call(SYS_fcntl, fd, F_GETFD, 0) & FD_CLOEXEC) == 0; }

// Whether any of the file's numbers goes with exec.
bool inherited(const File* f) {
  if (f->references == 1) return file_at(f->descriptor) == f && inherited(f->descriptor);
  for (int fd = 0; fd <= highest_known(); ++fd) {
    if (file_at(fd) == f && inherited(fd)) return true;
  }
  return false;
}

void flush_one(File* f) {
  if (!lock(f)) return;
  if (!f->left) flush_inside(f);
  unlock(f);
}

// Without waiting for ranks that may add to what is written.
void flush_at_once(File* f) {
  if (!lock(f)) return;
  f->hurries = true;
  if (!f->left) flush_inside(f);
  f->hurries = false;
  unlock(f);
}

// A thread of weir's own that was asked for a file by another rank may be about to end what it does
// there.
void wait_for_leaving() {
  for_every([](File* f, int) {
    if (f->left && lock(f)) unlock(f);
  });
}

// The locks of files that cannot leave, held over the fork so that the child finds them in order.
void lock_transformed() {
  for_all([](File* f, int) {
    if (f->transforms) lock(f);
  });
}

}  // namespace

void begin(const rules::Rules& rules, int rank, bool own_calls) {
  limit_changed();
  begin_sharing(rank);
  set_rules(rules, rank, own_calls);
}

void limit_changed() {
  rlimit limit{};
  if (base::system_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, reinterpret_cast<long>(&limit)) == 0)
    file_limit = limit.rlim_cur;
}

namespace {

constinit uint32_t started_children = 0;

}  // namespace

uint64_t ended_children() {
  if (WEIR_LIKELY(base::load_relaxed(&started_children) == 0)) return 0;
  struct rusage used {};
  base::system_call(SYS_getrusage, RUSAGE_CHILDREN, reinterpret_cast<long>(&used));
  const long facts[] = {used.ru_utime.tv_sec, used.ru_utime.tv_usec, used.ru_stime.tv_sec,
                        used.ru_stime.tv_usec, used.ru_minflt, used.ru_nvcsw, used.ru_nivcsw};
  return base::hash({reinterpret_cast<const char*>(facts), sizeof facts}, 0) | 1;
}

void before_fork() {
  if (!active()) return;
  base::store(&started_children, 1u);
  drop_parked();
  for_all([](File* f, int) { leave(f, Reason::kForked); });
  make_all_real(Reason::kForked);
  wait_for_leaving();
  lock_transformed();
}

void after_fork_in_parent() {
  if (!active()) return;
  for_all([](File* f, int) {
    if (f->transforms) unlock(f);
  });
}

void in_forked_child() {
  free_busy();
  if (!active()) return;
  // No thread of the parent's that was within a call is here.
  for_every([](File* f, int) { base::store(&f->lock, 0u); });
  own_thread = 0;
  count_parked_in_child();
  forget_shares();
  names_forked();
}

void before_spawn(bool everything) {
  if (!active() || !may_change()) return;
  base::store(&started_children, 1u);
  drop_parked();
  make_all_real(Reason::kForked);
  for_all([everything](File* f, int) {
    if (everything || inherited(f)) leave(f, Reason::kForked);
    else flush_at_once(f);
  });
}

void before_exec() {
  if (!active() || !may_change()) return;
  drop_parked();
  for_all([](File* f, int) {
    if (inherited(f)) leave(f, Reason::kReplaced);
    else flush_one(f);
  });
  make_all_real(Reason::kReplaced);
  end_names(Ending::kReplaced);
}

void leave_all_for_good() {
  if (!active()) return;
  base::store(&in_force, 0u);
  drop_parked();
  for_all([](File* f, int) { leave(f, Reason::kUnsupported); });
  make_all_real(Reason::kUnsupported);
}

bool leave_for_ring() {
  if (base::load_relaxed(&forms_kept) != 0 || any_layer_has_names()) return false;
  leave_all_for_good();
  return true;
}

void before_filter() {
  if (!active() || !may_change()) return;
  if (base::load_relaxed(&forms_kept) == 0 && !any_layer_has_names()) {
    base::store(&in_force, 0u);
    base::store(&waits_for_filter, 1u);
  }
  drop_parked();
  for_all([](File* f, int) { leave(f, Reason::kUnsupported); });
  make_all_real(Reason::kUnsupported);
  end_names(Ending::kFiltered);
  wait_for_leaving();
}

void without_filter() {
  if (base::exchange(&waits_for_filter, 0u) != 0) base::store(&in_force, 1u);
}

void flush_all() {
  if (!active() || !may_change()) return;
  for_all([](File* f, int) { flush_one(f); });
  if (any_parked()) flush_parked();
}

void flush_shared() {
  if (!active() || !may_change()) return;
  for_all([](File* f, int) {
    if (f->shares && !f->coherent) flush_one(f);
  });
}

void at_quick_end(bool aborts) {
  if (!active() || !may_change()) return;
  drop_parked_at_quick_end();
  for_all([](File* f, int) {
    uint32_t nobody = 0;
    if (!base::compare_exchange(&f->lock, &nobody, this_thread()))
      return;  // its bytes are the write-back daemon's
    if (!f->left) flush_inside(f);
    unlock(f);
  });
  end_names(aborts ? Ending::kAborted : Ending::kQuick);
  report_losses(2);
}

void at_end() {
  if (!active()) return;
  drop_parked();
  for (int fd = 0; fd <= highest_known(); ++fd) {
    File* const f = file_at(fd);
    if (f == nullptr || f->left || f->descriptor != fd) continue;
    if (!f->holds || !f->transforms) {
      if (f->holds) leave(f, Reason::kNone);
      else note_statistics(f);
      continue;
    }
    flush_one(f);
    f->syncs = true;
  }
  end_names(Ending::kExit);
}

}  // namespace weir::stack
