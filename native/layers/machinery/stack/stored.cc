// SPDX-License-Identifier: Apache-2.0
// Files that nobody has open and whose layers keep another form of them on disk (cos, stripe): how
// long they are to programs, and how they are cut by path. The layers themselves are asked, opened
// for the moment.
#include <errno.h>
#include <string.h>

#include "base/scratch.h"
#include "base/syscall.h"
#include "layers/machinery/stack/build.h"
#include "layers/machinery/stack/inside.h"
#include "layers/machinery/stack/posix.h"
#include "layers/machinery/stack/sharing.h"

namespace weir::stack {

constinit uint32_t forms_kept = 0;

namespace {

bool transforms(const rules::LayerSpec& layer) {
  const Kind* kind = find_kind(layer.name);
  return kind != nullptr && (kind->flags & kTransforms) != 0;
}

// The layers that know the form, and the system: nothing else has to do with these questions.
bool reduce(const rules::Rule& from, rules::Rule& to) {
  to.index = from.index;
  for (uint32_t i = 0; i < from.stack.count; ++i) {
    if (i + 1 == from.stack.count || transforms(from.stack.layers[i]))
      to.stack.layers[to.stack.count++] = from.stack.layers[i];
  }
  return to.stack.count > 1;
}

// Calls `ask` with the file, if it is one in a form of its own and the one that `about` speaks of.
// Signals are held back.
template <typename Ask>
void ask_layers(const char* whole, int access, const struct stat& about, Ask ask) {
  const rules::Rule* rule = rule_for(whole);
  rules::Rule reduced;
  if (rule == nullptr || !reduce(*rule, reduced)) return;
  bool alone = false;
  File* const f = build(reduced, base::text(whole), &alone);
  if (f == nullptr) return;
  const base::HoldsDescriptor held;
  f->flags = access | O_CLOEXEC;
  Opening o{AT_FDCWD, whole, f->flags, 0};
  Layer* const first = f->enter.open;
  const Result fd = first->kind->open(*first, o);
  if (fd >= 0) {
    base::Identity is;
    f->descriptor = static_cast<int>(fd);
    f->device = about.st_dev;
    f->inode = about.st_ino;
    f->size_at_open = static_cast<uint64_t>(about.st_size);
    if (base::identify(f->descriptor, &is) && is == base::Identity{f->device, f->inode} &&
        make_ready(f))
      ask(f);
    close_layers(f);
    base::close_fd(static_cast<int>(fd));
  }
  give_back(f);
}

template <typename Ask>
void ask_of_path(int directory, const char* path, int access, const struct stat& about, Ask ask) {
  if (!S_ISREG(about.st_mode) || path == nullptr || path[0] == 0 || !may_change()) return;
  const int before = errno;
  const base::Scratch whole(true);
  if (whole.data() != nullptr && make_path_absolute(directory, path, whole.data()))
    ask_layers(whole.data(), access, about, ask);
  errno = before;
}

}  // namespace

bool has_form(const rules::Stack& stack) {
  for (uint32_t i = 0; i < stack.count; ++i) {
    if (transforms(stack.layers[i])) return true;
  }
  return false;
}

void patch_size_of_form(int directory, const char* path, struct stat* about) {
  if (about->st_size == 0) return;  // in any form
  ask_of_path(directory, path, O_RDONLY, *about, [&](File* f) {
    const Result size = f->enter.size->kind->size(*f->enter.size);
    if (size >= 0) about->st_size = size;
  });
}

bool truncate_form(const char* path, off_t bytes, int* result) {
  struct stat about;
  if (bytes < 0 || base::system_call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(path),
                                     reinterpret_cast<long>(&about), 0) != 0)
    return false;
  Result done = 1;  // not a file of this kind
  ask_of_path(AT_FDCWD, path, O_RDWR, about, [&](File* f) {
    done = f->enter.truncate->kind->truncate(*f->enter.truncate, static_cast<uint64_t>(bytes));
    if (done >= 0) cut_published(f->device, f->inode, static_cast<uint64_t>(bytes));
    if (done >= 0 && f->enter.flush != nullptr) done = f->enter.flush->kind->flush(*f->enter.flush);
  });
  if (done > 0) return false;
  *result = done < 0 ? -1 : 0;
  if (done < 0) errno = static_cast<int>(-done);
  return true;
}

}  // namespace weir::stack
