// SPDX-License-Identifier: Apache-2.0
// The tiers of all rules, and files on them by the names that programs use.
#pragma once

#include "layers/machinery/rules/rules.h"
#include "layers/machinery/stack/names_of_layers.h"
#include "layers/stage/tier.h"

namespace weir::layers::stage {

// What a call on names works with.
struct Room {
  char key[weir::stage::kKeyBytes], other[weir::stage::kKeyBytes];
  weir::stage::Found found, other_found;
};

// To a file's place, for a call that knows it there alone; it is a copy then.
inline constexpr weir::stage::Publishing kBring{true, true, false, false, nullptr, nullptr};

// When a rule with the layer comes into force. Null, or why its tier cannot be used.
const char* begin_tier(const rules::LayerSpec& layer);
// The tier of a rule's layer. Null: it cannot be used, or is not there and not to be made.
const weir::stage::Tier* tier_of(const rules::LayerSpec& layer, bool make);
// Whether it may be there later: nothing is amiss with it so far.
bool may_come(const rules::LayerSpec& layer);
// The first tier from number i on that is there, made by whomever; i becomes its number. Null: no
// more.
const weir::stage::Tier* usable_from(uint32_t& i);
weir::stage::Mode mode_of(const rules::LayerSpec& layer);

// Makes the path of a symbolic link the one where it leads, of which the last component need not
// be there. False: it is no link, or leads nowhere.
bool follow_link(char* key);

// Where the file is newer than at its place. Its name's lock need not be held.
const weir::stage::Tier* newer_on(const stack::GivenPath&, bool follow, Room&);
// access(2) of the directory of a path: whether names may be made and removed in it.
long may_change_beside(const char* key);

// Directories (directories.cc). The path of one without slashes at its end; nothing says that it is
// there. False: it ends in no name.
bool directory_key(const stack::GivenPath&, char* key);
bool is_directory(const char* path);
inline long remove_in_place(const char* directory) {
  return base::system_call(SYS_unlinkat, AT_FDCWD, reinterpret_cast<long>(directory), AT_REMOVEDIR);
}
// Whether the name is one of weir's own beside files, which programs do not see.
bool hides(const char* name);
// Whether `key` is the directory, or below it.
inline bool is_within(const char* directory, const char* key) {
  const size_t n = strlen(directory);
  return strncmp(directory, key, n) == 0 && (key[n] == 0 || key[n] == '/');
}
// The directory is gone at its place. What is left of it on a tier would be in the way of a file
// with its name.
void remove_trees(const char* key);
stack::Result remove_directory(const stack::GivenPath&);
// Before the kernel renames it: what is newer in it goes to its place.
stack::Result rename_directory(const char* key, const char* other, unsigned flags);
// Whatever has the name, and what is in it. kPass, or -errno.
stack::Result bring_whatever(const stack::GivenPath&);
// As it is at its place, but for the time of the last change of its names, which may have been one
// on a tier. False: no tier has names in it, or it is no directory.
bool stat_directory(const weir::stage::Above&, const char* key, Room&, struct stat* to);
void list(int directory, bool (*each)(void* with, const char* name, uint64_t inode), void* with);

// Starts the daemon of the tier where none lives.
void start_daemon(const weir::stage::Tier& tier);

// Of a file that is about to be closed, or handed on to another program.
void close_staged(stack::Layer& layer);

extern const stack::NamesOfLayer kNames;

}  // namespace weir::layers::stage
