// SPDX-License-Identifier: Apache-2.0
// Which descriptor is which file under layers: openings, copies, ends. Called by the hooks of open,
// dup, close and the like, and by those of stdio's. In a vfork child nothing changes: the memory is
// the parent's, the numbers are not.
//
// Threads: any, and signal handlers: the table's lock is held for a few instructions, with signals
// held back. before_close() and closing() hand down what layers hold, which costs requests to the
// file system; an opening costs the memory of a File (build.h).
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "layers/machinery/rules/rules.h"
#include "layers/machinery/stack/file.h"
#include "layers/machinery/stack/park.h"

namespace weir::stack {

// Rules are in force. The first question of every opening.
extern WEIR_OWN uint32_t in_force;
WEIR_INLINE bool active() { return WEIR_UNLIKELY(base::load_relaxed(&in_force) != 0); }

// What the Fortran library is about to open for this thread, set by the hooks of its statements.
struct FortranOpening {
  bool within;
  int unit;  // -1: not known
  rules::Access access;
  rules::Form form;
};
extern WEIR_OWN WEIR_THREAD FortranOpening fortran_opening;

// An opening, from before to after:
//   Ticket t;
//   const bool ordered = begin_open(t, directory, path, flags);
//   int fd = ordered ? open_ordered(t, mode) : real();
//   return finish_open(t, fd, path);
struct Ticket {
  File* file;  // built ahead, for layers that take part in the open itself
  int directory;
  const char* path;
  int flags;
  bool skip;
  bool parked;  // the file was, and has its descriptor already
  uint64_t started = 0;  // base::now_ns(); 0: not measured
  bool is_section = false;  // base/section.h, from begin_open to finish_open
  bool may_settle_later = false;  // Opening
};
bool begin_open(Ticket&, int directory, const char* path, int flags);
int open_ordered(Ticket&, unsigned mode);
// Before an opening by which layers take no part: its name is known only afterwards.
Ticket unordered(const char* path, int flags);
// Keeps errno. path: as it is after the call (mkstemp writes into it).
int finish_open(Ticket&, int fd, const char* path);

// An open by the kernel in which no layer took part. path: the program's; null where it is not
// known. The descriptor, or -1: it is closed.
int plain_opened(const Ticket&, int fd, const char* path);

template <typename Real>
int opening(int directory, const char* path, int flags, unsigned mode, Real real) {
  if (!active()) return real();
  Ticket t;
  const bool ordered = begin_open(t, directory, path, flags);
  t.may_settle_later = true;
  int fd = ordered ? open_ordered(t, mode) : real();
  if (WEIR_UNLIKELY(fd < 0 && errno == EMFILE) && drop_parked())
    fd = ordered ? open_ordered(t, mode) : real();
  if (!ordered && (flags & O_CREAT) != 0) fd = plain_opened(t, fd, path);
  return finish_open(t, fd, path);
}

// Before the number is given up, by whatever call. The error that its close has to report (a
// positive errno), 0: none. The number's entry is gone afterwards.
int before_close(int fd);
template <typename Real>
auto closing(int fd, Real real) -> decltype(real()) {
  if (WEIR_LIKELY(listed_at(fd) == nullptr)) return real();
  if (park(fd)) return 0;
  const int error = before_close(fd);
  const auto result = real();
  if (error == 0 || result != 0) return result;
  errno = error;
  return -1;
}
template <typename Real>
int opening_as_made(const char* path, int flags, Real real) {
  if (!active()) return real();
  Ticket t = unordered(path, flags);
  const int fd = real();
  return finish_open(t, (flags & O_CREAT) != 0 ? plain_opened(t, fd, nullptr) : fd, path);
}

// Whether anything in [first, last] is known; before_close for all of it, whose errors go into the
// exit report.
void before_close_range(unsigned first, unsigned last);

// `to` is a copy of `from` from now on; before_replacing: it is about to become one.
void copied(int from, int to);
// Whether the copy can be: a file on whose number a stream may stand leaves its layers, as streams
// pass by them; one that cannot leave (transformed) cannot be there.
bool may_copy(int from, int to);
void before_replacing(int from, int to);

// The file that is to be known by its name in the trace from now on.
inline void set_name(int fd, uint32_t name) {
  if (File* f = listed_at(fd); WEIR_UNLIKELY(f != nullptr)) f->name = name;
}

// Status flags as F_SETFL has set them.
void flags_set(int fd, int flags);

// An open for writing that forgets the file's contents, or a truncate by path: layered holders of
// it leave first.
void settle(int directory, const char* path, bool follow = true);

// How the trace names a path: hook/observe.h path_at, set by the composition root.
extern WEIR_OWN uint32_t (*name_of_path)(int directory, const char* path);

// The size of a file asked for by name, when accepted bytes make it longer. False: nothing is known
// of it here.
bool patch_size_of_path(struct stat* about);
bool any_unwritten();

// Some rule's layers keep another form of files on disk: their sizes by name are asked of the
// layers, and a truncate by path is theirs (false: this is no such file).
extern WEIR_OWN uint32_t forms_kept;
bool has_form(const rules::Stack& stack);
void patch_size_of_form(int directory, const char* path, struct stat* about);
bool truncate_form(const char* path, off_t bytes, int* result);

}  // namespace weir::stack
