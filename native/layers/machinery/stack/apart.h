// SPDX-License-Identifier: Apache-2.0
// Files that lie apart from their names: a layer stores them elsewhere (pack: in an archive), and
// the file system has no file of that name. Calls on names are then the layer's to answer, and an
// open file is memory of its own until it is closed. The layer gives a NameService; here a path
// becomes a directory and a name, and the rule that decides is found.
//
// Whatever the layer does not know how to do with such a file makes it a real one first
// (surrender, make_real), and the call is the kernel's.
#pragma once

#include <errno.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/text.h"
#include "layers/machinery/stack/file.h"

namespace weir::stack {

// A file's name under a rule. The directory is absolute and free of "..", without a slash at its
// end but for the root; name is empty for the directory itself.
struct Place {
  const rules::LayerSpec* spec;
  base::Text directory, name;
};

// What chmod, chown and utimensat change.
struct Change {
  enum What : uint8_t { kMode, kOwner, kTimes } what;
  uint32_t mode, user, group;
  timespec modified;
};

// The names of a directory, one by one; the layer's own state of a listing.
struct Listing {
  Place place;
  uint64_t state[2];
  char name[256];
  uint64_t inode;
};

inline constexpr Result kPass = INT64_MIN;  // no such file of the layer's: the call is the kernel's

// Each: 0 or more, -errno, or kPass. Any thread, signals held back.
struct NameService {
  Result (*stat)(const Place&, struct stat* to);
  Result (*access)(const Place&, int mode);
  Result (*remove)(const Place&);
  // `to.spec` is null where the rules leave the new name alone.
  Result (*rename)(const Place& from, const Place& to);
  Result (*change)(const Place&, const Change&);
  Result (*truncate)(const Place&, uint64_t bytes);
  bool (*is_named)(Layer&, const Place&);  // an open file has this name
  Result (*surrender)(const Place&);      // becomes a real file
  void (*became)(const Place&, bool real);  // by a call of the kernel's
  Result (*remove_directory)(const Place&);  // about to be: what the layer has there goes, if empty
  bool (*hides)(const Place&);               // a real name that listings leave out
  bool (*next)(Listing*);                    // false: no more
  // A real file for an open one, with its contents; the descriptor or -errno.
  Result (*make_real)(Layer&);
  Result (*change_open)(Layer&, const Change&);
  Result (*stat_open)(Layer&, struct stat* to);  // of its name; -ENOENT: it has been removed
  void (*moved)(Layer&, int from, int to);   // its descriptor has another number
  Result (*store)(Layer&);                   // what an open one holds now
  void (*directories_moved)();
  void (*leave)();                           // the process ends, or becomes another program
  void (*forked)();
};

// Set when the rules are put in force; null: no rule has such a layer.
extern WEIR_OWN const NameService* names_apart;
extern WEIR_OWN uint32_t creation_mask;  // umask, followed while names_apart is set
void begin_apart(const NameService* service);
WEIR_INLINE bool has_names_apart() {
  return WEIR_UNLIKELY(base::load_relaxed(&names_apart) != nullptr);
}

// The place of a path, in `room` of base::Scratch's size; its spec is null where no rule has such a
// layer. False: no path of a file.
bool find_place(int directory, const char* path, char* room, Place* to);

// True: answered, with *result and errno as the call would leave them.
bool stat_apart(int directory, const char* path, struct stat* to, int* result);
bool access_apart(int directory, const char* path, int mode, int* result);
bool remove_apart(int directory, const char* path, int* result);
bool rename_apart(int directory, const char* path, int to_directory, const char* to, unsigned flags,
                  int* result);
bool change_apart(int directory, const char* path, const Change& change, int* result);
bool truncate_apart(const char* path, uint64_t bytes, int* result);
// Of a descriptor opened for reading; one for writing carries its own until it is closed.
bool change_apart_of(int fd, const Change& change, int* result);
// Where a path is a symbolic link that leads to nothing real: the absolute path that it stands for
// (room of base::Scratch's size). False: it is none.
bool follow_apart(int directory, const char* path, char* room);
// The kernel is about to see the name.
void surrender_apart(int directory, const char* path);
// The kernel has made or removed it.
void became_apart(int directory, const char* path, bool real);
void before_rmdir(int directory, const char* path);
// A rename by the kernel: of a directory, all that is known by paths is looked up again.
void after_rename(int directory, const char* path, int to_directory, const char* to);
// Of a directory that is about to be listed. room: of base::Scratch's size, which the listing
// keeps. False: no rule has files in it.
bool begin_listing(int directory, const char* path, char* room, Listing* to);
bool next_apart(Listing* listing);
bool hides_name(const Listing& listing, const char* name);

// What fstat says of an open file becomes what stat says.
void patch_apart(const File* f, struct stat* to);
void moved_apart(File* f, int from, int to);
inline bool is_apart(const File* f) { return WEIR_UNLIKELY(f != nullptr) && f->apart; }

// The open file becomes a real one under all its numbers; false: it cannot. Reading ones may stay.
bool make_real(File* f, Reason);
void make_all_real(Reason);
// Ends of processes: stores what open files hold; leaves. late: what comes later is stored at once.
void end_apart(bool late);

}  // namespace weir::stack
