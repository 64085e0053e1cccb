// SPDX-License-Identifier: Apache-2.0
// Files that the file system does not have under their names, as a layer keeps them (pack: in an
// archive; stage: on another file system). Calls on names are put to such layers before the kernel
// has them. A layer does one of three things with a call:
//
//   answers   its result is the call's, and the kernel has no call at all
//   directs   it gives another path, and the kernel has the call with that
//   passes    it has no file of that name: the call is the kernel's as it is
//
// Layers are asked in turn until one of them does not pass; one that leaves a member null passes.
// A file goes from the names of one layer to those of another as a real file (bring).
//
// Opens are no matter of this header where the file's rule has the layer: the layer takes part in
// the open itself (Kind::open). The hooks' side is hook/by_name.h.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/text.h"
#include "layers/machinery/rules/rules.h"
#include "layers/machinery/stack/layer.h"

namespace weir::stack {

// A path as a call gives it, relative to `directory`. It can be read, and is not empty.
struct GivenPath {
  int directory;
  const char* path;
  bool follow;  // what a symbolic link at its end leads to, where there is one
};

// Beside the result of the call, which is 0 or more, or -errno.
inline constexpr Result kPass = INT64_MIN;
inline constexpr Result kDirected = INT64_MIN + 1;  // another path has been given

// What chmod, chown and utimensat change.
struct Change {
  enum What : uint8_t { kMode, kOwner, kTimes } what;
  uint32_t mode, user, group;
  timespec modified;  // tv_nsec may be UTIME_OMIT
};

// How a process goes, or becomes another program.
enum class Ending : uint8_t {
  kExit,      // exit handlers run: more calls may come
  kQuick,     // _exit
  kAborted,   // by itself; a process that is killed does not come here
  kReplaced,  // exec
  kFiltered,  // it lives on, and no more system calls of weir's may be made
};

// Any thread, with signals held back. errno: as the wrapped calls document it.
struct NamesOfLayer {
  // Its open calls settle() (table.h) where it empties a file at its place: it looks at the name
  // anyway, and a file that is elsewhere needs no such look.
  bool settles = false;
  // It has nothing in the memory of the process that a call on a name changes: a child of vfork,
  // which shares that memory, may ask it.
  bool apart = false;

  // For each rule with the layer, when rules come into force. Null, or why it will not be used.
  const char* (*begin)(const rules::LayerSpec&) = nullptr;

  // Whether it leaves all files in the directory of that absolute path to the kernel. Asked where
  // it is the only layer of the rule: an open is then as if there were no rule.
  bool (*passes)(const rules::LayerSpec&, const char* path) = nullptr;

  // A layer that directs. Where the kernel has the file, into `to` of base::Scratch's size; false:
  // pass.
  bool (*find)(const GivenPath&, char* to) = nullptr;
  // The same for a call that changes the file: it is made within, by call(with, path).
  bool (*change_within)(const GivenPath&, void (*call)(void* with, const char* path),
                        void* with) = nullptr;

  // A layer that answers.
  Result (*stat)(const GivenPath&, struct stat* to) = nullptr;
  // For stat and the like alone: as stat, and of directories where the layer has names in them.
  Result (*stat_any)(const GivenPath&, struct stat* to) = nullptr;
  Result (*access)(const GivenPath&, int mode) = nullptr;
  Result (*change)(const GivenPath&, const Change&) = nullptr;
  Result (*truncate)(const GivenPath&, uint64_t bytes) = nullptr;

  // Names go and come. unlink, rmdir, renameat2: 0 when it is done. remove_directory may clear
  // away what the layer itself has there, and pass.
  Result (*remove)(const GivenPath&) = nullptr;
  Result (*remove_directory)(const GivenPath&) = nullptr;
  Result (*rename)(const GivenPath& from, const GivenPath& to, unsigned flags) = nullptr;
  // Before the kernel makes a directory, a link or the like of that name: -EEXIST, or pass.
  Result (*make)(const GivenPath&) = nullptr;
  // The file becomes one of the file system's under its name, for calls that know it by nothing
  // else (link, exec). 0: it is; -EBUSY: it is being written.
  Result (*bring)(const GivenPath&) = nullptr;
  // The kernel has made the name, or removed it; a directory has another name.
  void (*made)(const GivenPath&) = nullptr;
  void (*removed)(const GivenPath&) = nullptr;
  void (*directories_moved)() = nullptr;
  // The kernel has opened the file of that path, or made it, perhaps by a symbolic link. What the
  // layer has under the name is in that file from now on. -errno: the opening fails with that.
  Result (*opened)(const GivenPath&, int flags) = nullptr;

  // Names in an open directory that the kernel does not list there: calls each() with them, until
  // that gives false.
  void (*list)(int directory, bool (*each)(void* with, const char* name, uint64_t inode),
               void* with) = nullptr;
  // Whether the kernel lists the name and programs do not see it.
  bool (*hides)(const char* name) = nullptr;

  // The process goes while it has the file open; then once, after all files.
  Result (*end_open)(Layer&, Ending) = nullptr;
  void (*end)() = nullptr;
  void (*forked)() = nullptr;  // in the child

  // Of open files that are memory of the layer (File::in_memory; stack/in_memory.h). A real file
  // with the contents, under the name: its descriptor, open as this file is, or -errno. always:
  // also where it is open for reading alone, which a layer may refuse otherwise.
  Result (*make_real)(Layer&, bool always) = nullptr;
  // Whether the file is to be a real one before it has so many bytes.
  bool (*is_large)(Layer&, uint64_t bytes) = nullptr;
  // -ENOENT: its name has been removed, and the memory is all that there is of it.
  Result (*change_open)(Layer&, const Change&) = nullptr;
  Result (*stat_open)(Layer&, struct stat* to) = nullptr;
  void (*moved)(Layer&, int from, int to) = nullptr;       // its descriptor has another number
  // File::unsettled is over: the memory has the length and the time of the file.
  void (*settle)(Layer&) = nullptr;
  // Before the kernel answers: the file leaves the memory where another process has made a real
  // one of it.
  void (*follow)(Layer&) = nullptr;
  // Whether a descriptor that the program before this one has left is such memory.
  bool (*is_memory)(int fd) = nullptr;
};

// Layers have removed what they had in a directory that is to be removed or replaced, as far as no
// file is in it. False: no layer had a look. Keeps errno.
bool cleared_away(int directory, const char* path);

// What fstat says of a descriptor without layers, which the program before this one may have left
// as memory of a layer (File::in_memory). Keeps errno.
void patch_stat_inherited(int fd, struct stat* to);

// An answer of NamesOfLayer::passes has become false. Counted.
extern WEIR_OWN uint32_t passes_changed;
inline void passes_no_more() { base::fetch_add(&passes_changed, 1u); }

// How many such layers the rules in force have. Hooks look at nothing else while it is 0.
extern WEIR_OWN uint32_t layers_with_names;
WEIR_INLINE bool any_layer_has_names() {
  return WEIR_UNLIKELY(base::load_relaxed(&layers_with_names) != 0);
}
// Of them, those that direct calls elsewhere: the others have nothing to do with an open in which
// they take no part.
extern WEIR_OWN uint32_t layers_that_direct;
WEIR_INLINE bool any_layer_directs() { return base::load_relaxed(&layers_that_direct) != 0; }
// Of the stack of a rule that comes into force. Null, or why a layer of it is not used.
const char* begin_names(const rules::Stack&);
extern WEIR_OWN const char* names_mistake;  // of some rule's layer; null: none
extern WEIR_OWN uint32_t creation_mask;     // umask, followed while a layer has names

// Asks one layer: kPass, kDirected with a path in `to`, or the result. Refers to the function that
// it was made of.
class Ask {
 public:
  template <typename F>
  Ask(const F& f)
      : call_([](const void* f, const NamesOfLayer& layer, const GivenPath& path,
                 char* to) -> Result { return (*static_cast<const F*>(f))(layer, path, to); }),
        with_(&f) {}
  Result operator()(const NamesOfLayer& layer, const GivenPath& name, char* to) const {
    return call_(with_, layer, name, to);
  }

 private:
  Result (*call_)(const void*, const NamesOfLayer&, const GivenPath&, char*);
  const void* with_;
};

// Every layer in turn, until one does not pass. Keeps errno. path: the program's; to: room for a
// path of base::Scratch's size, where the question may be answered by one.
Result ask_layers(int directory, const char* path, bool follow, const Ask& ask,
                  char* to = nullptr);
// What the symbolic link leads to, over further links, where that is nothing that the kernel has:
// an absolute path into `to`. False: the path is no link.
bool find_target(int directory, const char* path, char* to);
// An absolute path without links and "..", as realpath of the C library makes it, of a name that
// the kernel does not have; nothing says that a layer has it. False: its directory is not there.
bool find_real_path(const char* path, char* to);
// The same question about the target; kPass: the path is no link.
Result ask_of_target(int directory, const char* path, const Ask& ask, char* to);
// Whether what the last name stands below is a file that a layer has, where the kernel has found
// nothing: the call is to fail with ENOTDIR. What stands before a slash at the end of the path
// counts as such, too; only that with `by_slash`. Keeps errno.
bool is_below_file(int directory, const char* path, bool by_slash = false);
Result ask_to_rename(int directory, const char* path, int to_directory, const char* to,
                     unsigned flags);

// After an open with O_CREAT that the kernel has made: it makes a file where a link leads to one
// that a layer has. path: the program's; null where it is not known. 0, or -errno: the opening
// fails, and its descriptor is to be closed. Keeps errno; no request.
Result find_opened(int fd, const char* path, int flags);
inline Result after_opening(int fd, const char* path, int flags) {
  const bool by_link = (flags & (O_CREAT | O_EXCL | O_NOFOLLOW)) == O_CREAT;
  return by_link && any_layer_has_names() ? find_opened(fd, path, flags) : 0;
}
// After calls that the kernel has made.
void name_made(int directory, const char* path);
void name_removed(int directory, const char* path);
void names_renamed(int directory, const char* path, int to_directory, const char* to);

// Calls each() with the names of a directory that layers alone know.
void list_names(int directory, bool (*each)(void* with, const char* name, uint64_t inode),
                void* with);
bool is_hidden(const char* name);

bool has_layer_with_names(const File* f);
bool has_names(const rules::Stack&);
// The process goes: for each open file, and then for each layer.
void end_names(Ending);
void names_forked();

// For layers: a name under the rules. The directory is absolute and free of "..", without a slash
// at its end but for the root; `spec` is the layer with these names in the rule for it, null where
// that has none. False: no path of a file. room: of base::Scratch's size, which the place keeps.
struct Place {
  const rules::LayerSpec* spec;
  base::Text directory, name;
};
bool find_place(const GivenPath&, const NamesOfLayer&, char* room, Place* to);
// The directory of a descriptor, of a path. False: it is none.
bool find_directory(int fd, char* room, base::Text* to);
bool find_directory(const GivenPath&, char* room, base::Text* to);
// The layer in the rule for an absolute path; null: none.
const rules::LayerSpec* layer_of_rule(const char* absolute_path, const NamesOfLayer&);
// The layers of all rules, one by one: *spec is null at first. False: no more.
bool next_layer_of_rules(const NamesOfLayer&, const rules::LayerSpec** spec);

}  // namespace weir::stack
