// SPDX-License-Identifier: Apache-2.0
// Why files could not go to their place: a symbolic link TIER/failed/<inode> for each, whose text
// is the error and the generation of the mark that was tried. A link, as it takes no space of a
// tier in memory. Whoever writes the file again makes what was noted before void.
#include <errno.h>

#include "base/atomic.h"
#include "layers/stage/tier.h"

namespace weir::stage {
namespace {

struct FailureText {
  char path[kTierBytes + 64], unfinished[kTierBytes + 64], text[64];
};

base::Writer& add_directory(base::Writer& to, const Tier& tier) {
  return to.add({tier.path, tier.length}).add("/failed");
}

bool failure_path(const Tier& tier, uint64_t inode, char* to, const char* suffix = "") {
  base::Writer path(to, kTierBytes + 64);
  return !add_directory(path, tier).add("/").add_number(inode).add(suffix).cut();
}

long make_link(const char* text, const char* path) {
  return base::system_call(SYS_symlinkat, reinterpret_cast<long>(text), AT_FDCWD,
                           reinterpret_cast<long>(path));
}

long make_directory(const Tier& tier) {
  char path[kTierBytes + 16];
  base::Writer writer(path, sizeof path);
  if (add_directory(writer, tier).cut()) return -ENAMETOOLONG;
  return base::system_call(SYS_mkdirat, AT_FDCWD, reinterpret_cast<long>(path), 0700);
}

}  // namespace

void note_failure(const Tier& tier, uint64_t inode, uint64_t generation, Result why) {
  FailureText room;
  if (!failure_path(tier, inode, room.path) ||
      !failure_path(tier, inode, room.unfinished, ".new"))
    return;
  base::Writer(room.text, sizeof room.text)
      .add_number(static_cast<uint64_t>(-why))
      .add(" ")
      .add_number(generation);
  base::unlink_path(room.unfinished);  // of one that was killed: the name's lock is held
  long made = make_link(room.text, room.unfinished);
  if (made == -ENOENT && make_directory(tier) == 0) made = make_link(room.text, room.unfinished);
  while (made == -ENOSPC && use_reserve(tier)) made = make_link(room.text, room.unfinished);
  if (made != 0) return;
  base::store(&tier.control->any_failed, uint64_t{1});
  base::system_call(SYS_renameat2, AT_FDCWD, reinterpret_cast<long>(room.unfinished), AT_FDCWD,
                    reinterpret_cast<long>(room.path), 0);
}

void forget_failure(const Tier& tier, uint64_t inode) {
  char path[kTierBytes + 64];
  if (base::load(&tier.control->any_failed) != 0 && failure_path(tier, inode, path))
    base::unlink_path(path);
}

Result failure_of(const Tier& tier, uint64_t inode, uint64_t generation) {
  FailureText room;
  if (base::load(&tier.control->any_failed) == 0 || !failure_path(tier, inode, room.path)) return 0;
  const long n = base::read_link(room.path, room.text, sizeof room.text - 1);
  if (base::failed(n)) return 0;
  room.text[n] = 0;
  const char* const blank = strchr(room.text, ' ');
  int64_t why = 0, of = 0;
  if (blank == nullptr || !base::parse_number(base::text(blank + 1), &of) ||
      !base::parse_number({room.text, static_cast<size_t>(blank - room.text)}, &why))
    return 0;
  return static_cast<uint64_t>(of) == generation ? -why : 0;
}

}  // namespace weir::stage
