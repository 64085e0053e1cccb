// SPDX-License-Identifier: Apache-2.0
// Files that are elsewhere than under their names: a layer (stage) keeps them on another file
// system for a while. Opens go through the layer; every other call that takes a name asks here
// whether the kernel is to be given another path.
#pragma once

#include <errno.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/scratch.h"
#include "layers/machinery/rules/rules.h"
#include "layers/machinery/stack/layer.h"

namespace weir::stack {

// The name is the kernel's.
inline constexpr Result kNotElsewhere = 1;

// Paths are the program's, relative to `directory`, and can be read. Threads: any; signals are held
// back. -errno as the calls document it.
struct NamesElsewhere {
  // For each rule with the layer, when rules come into force. Null, or why it will not be used.
  const char* (*begin)(const rules::LayerSpec& layer);
  // Where the kernel has the file, into `to` of base::Scratch::kBytes. False: under its name.
  bool (*find)(int directory, const char* path, bool follow, char* to);
  // The same for a call that changes the file: it is made within, by call(with, path). False: not
  // made, the file is under its name.
  bool (*change)(int directory, const char* path, bool follow, void (*call)(void*, const char*),
                 void* with);
  // unlink, rmdir and renameat2, done; or kNotElsewhere: the kernel's to do.
  Result (*remove)(int directory, const char* path);
  Result (*remove_directory)(int directory, const char* path);
  Result (*rename)(int directory, const char* path, int to_directory, const char* to,
                   unsigned flags);
  // The file is brought under its name, for calls that know it by nothing else. -EBUSY: it is being
  // written; kNotElsewhere: it is there.
  Result (*bring)(int directory, const char* path);
  // Another name, of something else, is made: -EEXIST when it is elsewhere already.
  Result (*make)(int directory, const char* path);
  // Names of files in the directory that the kernel does not list there: calls each() with them,
  // until that returns false.
  void (*list)(int directory, bool (*each)(void* with, const char* name, uint64_t inode),
               void* with);
  // Whether the kernel lists it and programs do not: a file that is on its way.
  bool (*hides)(const char* name);
  // The process that has the file open ends by itself, or hands it on to another program.
  void (*leaves)(Layer& layer);
};

extern WEIR_OWN const NamesElsewhere* names_elsewhere;  // null: no rule has such a layer
WEIR_INLINE bool any_elsewhere() {
  return WEIR_UNLIKELY(base::load_relaxed(&names_elsewhere) != nullptr);
}
extern WEIR_OWN const char* elsewhere_mistake;  // why some rule's layer is not used; null
// Of the stack of a rule, when it comes into force. Null, or why the layer is not used.
const char* begin_elsewhere(const rules::Stack& stack);

// All files that the process has open: before it ends, or becomes another program.
void leave_elsewhere();

// The layer of that name in the stack that a file of this path has when it is read. Null: none.
const rules::LayerSpec* layer_for(const char* absolute_path, const char* name);

// call(directory, path) with the path where the file is.
template <typename Call>
auto by_name(int directory, const char* path, bool follow, Call call) {
  if (WEIR_LIKELY(!any_elsewhere())) return call(directory, path);
  const int before = errno;
  {
    const base::Scratch given, room;
    if (path != nullptr && given.data() != nullptr && room.data() != nullptr &&
        base::copy_text(given.data(), path, 4096) &&
        names_elsewhere->find(directory, given.data(), follow, room.data())) {
      const auto result = call(AT_FDCWD, static_cast<const char*>(room.data()));
      const bool failed = [&] {
        if constexpr (requires { *result; }) return result == nullptr;
        else return result < 0;
      }();
      if (!failed || errno != ENOENT) return result;  // it went to its place meanwhile
    }
  }
  errno = before;
  return call(directory, path);
}

// The same of a call that changes the file, its name stays.
template <typename Call>
auto changing_by_name(int directory, const char* path, bool follow, Call call) {
  using Returned = decltype(call(directory, path));
  if (WEIR_LIKELY(!any_elsewhere())) return call(directory, path);
  struct With {
    Call* call;
    Returned result;
    int error;
  } with{&call, {}, 0};
  const int before = errno;
  {
    const base::Scratch given;
    const auto made = [](void* to, const char* there) {
      auto* const w = static_cast<With*>(to);
      w->result = (*w->call)(AT_FDCWD, there);
      w->error = errno;
    };
    if (path != nullptr && given.data() != nullptr &&
        base::copy_text(given.data(), path, 4096) &&
        names_elsewhere->change(directory, given.data(), follow, made, &with)) {
      errno = with.error;
      return with.result;
    }
  }
  errno = before;
  return call(directory, path);
}

// An open that no layer took part in.
template <typename Call>
auto opening_by_name(int directory, const char* path, int flags, Call call) {
  const bool follow =
      (flags & O_NOFOLLOW) == 0 && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
  return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0
             ? changing_by_name(directory, path, follow, call)
             : by_name(directory, path, follow, call);
}

// Asks ask(path) of a name that is about to go or to come; the kernel's call follows where that
// gives kNotElsewhere. False with *result: it does not.
template <typename Ask>
bool left_to_kernel(const char* path, int* result, Ask ask) {
  if (WEIR_LIKELY(!any_elsewhere())) return true;
  const base::Scratch given;
  if (path == nullptr || given.data() == nullptr || !base::copy_text(given.data(), path, 4096))
    return true;
  const Result done = ask(static_cast<const char*>(given.data()));
  if (done == kNotElsewhere) return true;
  *result = done < 0 ? -1 : 0;
  if (done < 0) errno = static_cast<int>(-done);
  return false;
}

// A directory, a link or the like is made under a name.
template <typename Real>
int making(int directory, const char* path, Real real) {
  int result = 0;
  const auto ask = [&](const char* given) { return names_elsewhere->make(directory, given); };
  return left_to_kernel(path, &result, ask) ? real() : result;
}

// For calls that know a file by its name alone: exec, link.
template <typename Real>
int with_file_in_place(int directory, const char* path, int error_if_busy, Real real) {
  int result = 0;
  const auto ask = [&](const char* given) {
    const Result done = names_elsewhere->bring(directory, given);
    return done == -EBUSY ? Result{-error_if_busy} : done;
  };
  return left_to_kernel(path, &result, ask) ? real() : result;
}

}  // namespace weir::stack
