// SPDX-License-Identifier: Apache-2.0
// What is known of each file of the tier: marks, and what they say after a crash.
#include "layers/stage/tier.h"

#include <signal.h>
#include <string.h>

#include "base/atomic.h"

namespace weir::stage {
namespace {

long text_of(const char* s) { return reinterpret_cast<long>(s); }

bool mark_path(const Tier& tier, uint64_t inode, const char* suffix, char* to) {
  return !base::Writer(to, kTierBytes + 64)
              .add({tier.path, tier.length})
              .add("/marks/")
              .add_number(inode)
              .add(suffix)
              .cut();
}

// A number and what ends it. *end: that.
bool take_number(const char*& at, uint64_t* to, char* end = nullptr) {
  uint64_t value = 0;
  if (*at < '0' || *at > '9') return false;
  for (; *at >= '0' && *at <= '9'; ++at) value = value * 10 + static_cast<uint64_t>(*at - '0');
  *to = value;
  if (*at != ' ' && *at != '\n') return false;
  if (end != nullptr) *end = *at;
  ++at;
  return true;
}

struct MarkText {
  char path[kTierBytes + 64], unfinished[kTierBytes + 64], text[4096];
};

long rename_over(const char* from, const char* to) {
  return base::system_call(SYS_renameat2, AT_FDCWD, text_of(from), AT_FDCWD, text_of(to), 0);
}

bool parse_mark(const char* text, Mark* to) {
  if (strlen(text) < 5) return false;
  to->state = static_cast<State>(text[0]);
  to->mode = static_cast<Mode>(text[1]);
  to->closed = text[2] == '.';
  to->brought = text[3] == '=';  // a blank in marks of earlier versions
  const char* at = text + 4;
  uint64_t time = 0;
  char ended_by = 0;
  if (!take_number(at, &to->generation) || !take_number(at, &to->changes) ||
      !take_number(at, &to->real.device) ||
      !take_number(at, &to->real.inode) || !take_number(at, &to->real.bytes) ||
      !take_number(at, &time, &ended_by))
    return false;
  to->run = 0;  // which marks of earlier versions do not have
  if (ended_by == ' ' && !take_number(at, &to->run)) return false;
  to->real.mtime_ns = static_cast<int64_t>(time);
  const char* const end = strchr(at, '\n');
  const size_t n = end != nullptr ? static_cast<size_t>(end - at) : strlen(at);
  base::Writer key(to->key, sizeof to->key), other(to->other, sizeof to->other);
  key.add({at, n});
  if (end != nullptr) other.add(end + 1);
  return !key.cut() && !other.cut() && to->key[0] == '/';
}

}  // namespace

Result read_mark(const Tier& tier, uint64_t inode, Mark* to) {
  const Mapped<MarkText> room;
  if (!room) return -ENOMEM;
  if (!mark_path(tier, inode, "", room->path)) return -ENAMETOOLONG;
  const long n = base::read_link(room->path, room->text, sizeof room->text - 1);
  if (base::failed(n)) return n;
  room->text[n] = 0;
  return parse_mark(room->text, to) ? 0 : -EIO;
}

Result write_mark(const Tier& tier, uint64_t inode, const Mark& mark) {
  const Mapped<MarkText> room;
  if (!room) return -ENOMEM;
  const char kinds[] = {static_cast<char>(mark.state), static_cast<char>(mark.mode),
                        mark.closed ? '.' : '+', mark.brought ? '=' : ' ', 0};
  base::Writer writer(room->text, sizeof room->text);
  writer.add(kinds).add_number(mark.generation).add(" ").add_number(mark.changes);
  writer.add(" ").add_number(mark.real.device);
  writer.add(" ").add_number(mark.real.inode).add(" ").add_number(mark.real.bytes);
  writer.add(" ").add_number(static_cast<uint64_t>(mark.real.mtime_ns));
  writer.add(" ").add_number(mark.run).add("\n").add(mark.key);
  if (mark.other[0] != 0) writer.add("\n").add(mark.other);
  if (writer.cut() || !mark_path(tier, inode, "", room->path) ||
      !mark_path(tier, inode, ".new", room->unfinished))
    return -ENAMETOOLONG;
  base::unlink_path(room->unfinished);  // of one that was killed: the name's lock is held
  long made;
  do {
    made = base::system_call(SYS_symlinkat, text_of(room->text), AT_FDCWD,
                             text_of(room->unfinished));
  } while (made == -ENOSPC && use_reserve(tier));
  if (base::failed(made)) return made;
  return rename_over(room->unfinished, room->path);
}

void remove_mark(const Tier& tier, uint64_t inode) {
  char path[kTierBytes + 64];
  if (mark_path(tier, inode, "", path)) base::unlink_path(path);
  forget_failure(tier, inode);
}

uint64_t next_generation(const Tier& tier) {
  return base::fetch_add(&tier.control->generation, uint64_t{1}) + 1;
}

Real real_of(const struct stat& about) {
  return {about.st_dev, about.st_ino, static_cast<uint64_t>(about.st_size),
          about.st_mtim.tv_sec * 1'000'000'000 + about.st_mtim.tv_nsec};
}

bool is_copy_of(const Mark& mark, const struct stat& about) {
  return about.st_nlink == 1 && real_of(about) == mark.real;
}

void find(const Tier& tier, const char* key, Found* to) {
  struct stat about;
  to->there = tree_path(tier, key, to->tree) && stat_path(to->tree, &about) == 0 &&
              S_ISREG(about.st_mode) && read_mark(tier, about.st_ino, &to->mark) == 0;
  if (!to->there) return;
  to->device = about.st_dev;
  to->inode = about.st_ino;
  to->changed = about.st_ctim;
  to->bytes = static_cast<uint64_t>(about.st_size);
  to->mode = about.st_mode & 07777;
  to->user = about.st_uid;
  to->group = about.st_gid;
}

// Who opens the file meanwhile waits, and the kernel notifies this process, by a signal that ends
// no program.
bool may_lease(int fd, int kind) {
  if (base::system_call(SYS_fcntl, fd, F_SETSIG, SIGURG) != 0 ||
      base::system_call(SYS_fcntl, fd, F_SETLEASE, kind) != 0)
    return false;
  base::system_call(SYS_fcntl, fd, F_SETLEASE, F_UNLCK);
  return true;
}

void count_bytes(const Tier& tier, uint64_t bytes) {
  base::fetch_add(&tier.control->used_bytes, bytes);
}

void uncount_bytes(const Tier& tier, uint64_t bytes) {
  uint64_t* const used = &tier.control->used_bytes;
  uint64_t is = base::load(used);
  while (!base::compare_exchange(used, &is, bytes < is ? is - bytes : 0)) {}
}

void drop(const Tier& tier, const Found& found) {
  const CountChange change(tier);
  remove_mark(tier, found.inode);  // first: afterwards the number may be another file's
  base::unlink_path(found.tree);
  if (is_counted(found.mark)) uncount_bytes(tier, found.bytes);
  refill_reserve(tier);
}

namespace {

// `mark.key` was being renamed to `mark.other`.
void settle_renamed(const Tier& tier, Found& found, bool moved) {
  Mark& mark = found.mark;
  if (moved) {
    rename_over(mark.key, mark.other);
    memcpy(mark.key, mark.other, sizeof mark.key);
  }
  mark.other[0] = 0;
  write_mark(tier, found.inode, mark);
}

bool is_that(const char* path, uint64_t inode) {
  struct stat about;
  return stat_path(path, &about) == 0 && about.st_ino == inode;
}

}  // namespace

void settle(const Tier& tier, Found& found) {
  if (!found.there || found.mark.other[0] == 0) return;
  if (found.mark.state == State::kSuperseded) {
    struct stat about;
    if (stat_path(found.mark.other, &about) == -ENOENT) {
      drop(tier, found);
      found.there = false;
      return;
    }
    found.mark.state = State::kWritten;
    found.mark.other[0] = 0;
    write_mark(tier, found.inode, found.mark);
    return;
  }
  const Mapped<Found> moved;
  if (moved) settle_renamed(tier, found, tree_path(tier, found.mark.other, moved->tree) &&
                                             is_that(moved->tree, found.inode));
}

void note_closed(const Tier& tier, uint64_t inode, uint64_t generation, uint64_t bytes) {
  const Mapped<Mark> mark;
  if (!mark || read_mark(tier, inode, &*mark) != 0) return;
  const Lock lock(tier, mark->key);
  if (!lock.held() || read_mark(tier, inode, &*mark) != 0 || mark->generation != generation ||
      mark->closed)
    return;
  const CountChange change(tier);
  if (!is_counted(*mark)) count_bytes(tier, bytes);
  mark->closed = true;
  write_mark(tier, inode, *mark);
}

namespace {

struct Freeing {
  const Tier& tier;
  uint64_t bytes;
  Found* found;
};

bool free_copy(void* with, const char* name) {
  const Freeing& f = *static_cast<Freeing*>(with);
  uint64_t inode = 0;
  for (const char* at = name; *at != 0; ++at) {
    if (*at < '0' || *at > '9') return true;
    inode = inode * 10 + static_cast<uint64_t>(*at - '0');
  }
  Mark& mark = f.found->mark;
  if (read_mark(f.tier, inode, &mark) != 0 || mark.state != State::kCopy) return true;
  const Mapped<char[kKeyBytes]> key;
  if (!key) return false;
  memcpy(*key, mark.key, sizeof mark.key);
  const Lock lock(f.tier, *key);
  find(f.tier, *key, f.found);
  if (lock.held() && f.found->there && f.found->inode == inode && !is_newer(*f.found))
    drop(f.tier, *f.found);
  return free_bytes(f.tier) < f.bytes;
}

}  // namespace

bool make_free(const Tier& tier, uint64_t bytes) {
  const Mapped<Found> found;
  const Mapped<char[kTierBytes + 16]> marks;
  if (!found || !marks) return false;
  base::Writer(*marks, kTierBytes + 16).add({tier.path, tier.length}).add("/marks");
  Freeing freeing{tier, bytes, &*found};
  for_each_name(*marks, free_copy, &freeing);
  return free_bytes(tier) >= bytes;
}

}  // namespace weir::stage
