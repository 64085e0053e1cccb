// SPDX-License-Identifier: Apache-2.0
// Files get another name, or one more. The record of the call has the name that was there before
// (of a symbolic link its own); a second one, with operation naming, has both, so that the data can
// be followed from one to the other (docs/formats/trace.md, section 3.3).
#include <fcntl.h>
#include <linux/fs.h>

#include "hook/by_name.h"
#include "hook/observe.h"
#include "base/directory_path.h"
#include "base/scratch.h"
#include "layers/machinery/stack/park.h"

using namespace weir::hook;
namespace base = weir::base;
namespace stack = weir::stack;

namespace {

// A path as the kernel took it; where it is relative, to what.
struct Given {
  int directory;
  const char* path;
};

constexpr size_t kHalf = base::Scratch::kBytes / 2;

// False when the directory is not known.
bool add_absolute(base::Writer& to, Given from, char* room) {
  if (from.path[0] != '/') {
    const base::Text begin = base::directory_path(from.directory, room, kHalf);
    if (begin.size == 0) return false;
    to.add(begin).add("/");
  }
  to.add(from.path);
  return true;
}

// KIND, line feed, the name that was there, line feed, the new one; the target of a symbolic link
// is as it was given. 0: too long.
uint32_t name_of_naming(const char* kind, Given from, Given to) {
  const base::Scratch room;
  char* const text = room.data();
  if (text == nullptr) return 0;
  char* const directory = text + kHalf;
  base::Writer name(text, kHalf);
  name.add(kind).add("\n");
  if (kind[0] == 's') name.add(from.path);
  else if (!add_absolute(name, from, directory)) return 0;
  name.add("\n");
  if (!add_absolute(name, to, directory) || name.cut()) return 0;
  return weir::trace::process().names().id(name.view(), weir::wire::NameSource::kGiven);
}

// `seen` is the name that the record of the call has.
template <typename Real>
int naming(Op op, const char* kind, Given from, Given to, Given seen, Real real) {
  const uint64_t start = base::ticks();
  const int result = on_path(op, seen.directory, seen.path, 0, real);
  if (result != 0 || !recording() || weir::trace::process().level() == weir::wire::Level::kSummary)
    return result;
  const uint32_t file = name_of_naming(kind, from, to);
  if (file != 0)
    record_call(Call{Op::kNaming, Layer::posix, weir::wire::kBelow | weir::wire::kNested, 0, file,
                     start, base::ticks(), kUnknownOffset, 0});
  return result;
}

// Layers that keep files by name hear first of a name that goes, or becomes another file's.
template <typename Real>
int renaming(const char* kind, Given from, Given to, unsigned flags, Real real) {
  return naming(Op::kRename, kind, from, to, from, [&] {
    stack::name_changes(from.directory, from.path);
    stack::name_changes(to.directory, to.path);
    return stack::names_then_changed(
        renaming_by_name(from.directory, from.path, to.directory, to.path, flags, real));
  });
}

// The kernel looks at what is linked before it looks at the new name.
bool is_there(Given name) {
  struct stat about;
  return base::system_call(SYS_newfstatat, name.directory, reinterpret_cast<long>(name.path),
                           reinterpret_cast<long>(&about), AT_SYMLINK_NOFOLLOW) == 0;
}

// A file with another name: what is remembered of it is out of date.
template <typename Real>
int linking(Given from, Given to, Real real) {
  return naming(Op::kLink, "link", from, to, from, [&] {
    return stack::names_then_changed(with_real_file(from.directory, from.path, EXDEV, [&] {
      if (WEIR_LIKELY(!stack::any_layer_has_names()) || !is_there(from)) return real();
      return making(to.directory, to.path, real);
    }));
  });
}

template <typename Real>
int linking_to(const char* target, Given made, Real real) {
  return naming(Op::kSymlink, "symlink", {AT_FDCWD, target}, made, made,
                [&] { return making(made.directory, made.path, real); });
}

}  // namespace

WEIR_HOOK(int, rename, const char* path, const char* to) {
  return renaming("rename", {AT_FDCWD, path}, {AT_FDCWD, to}, 0,
                  [&] { return WEIR_REAL(rename)(path, to); });
}
WEIR_HOOK(int, renameat, int directory, const char* path, int to_directory, const char* to) {
  return renaming("rename", {directory, path}, {to_directory, to}, 0,
                  [&] { return WEIR_REAL(renameat)(directory, path, to_directory, to); });
}
WEIR_HOOK(int, renameat2, int directory, const char* path, int to_directory, const char* to,
          unsigned flags) {
  const char* const kind = (flags & RENAME_EXCHANGE) != 0 ? "exchange" : "rename";
  return renaming(kind, {directory, path}, {to_directory, to}, flags,
                  [&] { return WEIR_REAL(renameat2)(directory, path, to_directory, to, flags); });
}
WEIR_HOOK(int, link, const char* path, const char* to) {
  return linking({AT_FDCWD, path}, {AT_FDCWD, to}, [&] { return WEIR_REAL(link)(path, to); });
}
WEIR_HOOK(int, linkat, int directory, const char* path, int to_directory, const char* to,
          int flags) {
  return linking({directory, path}, {to_directory, to},
                 [&] { return WEIR_REAL(linkat)(directory, path, to_directory, to, flags); });
}
WEIR_HOOK(int, symlink, const char* target, const char* path) {
  return linking_to(target, {AT_FDCWD, path}, [&] { return WEIR_REAL(symlink)(target, path); });
}
WEIR_HOOK(int, symlinkat, const char* target, int directory, const char* path) {
  return linking_to(target, {directory, path},
                    [&] { return WEIR_REAL(symlinkat)(target, directory, path); });
}
