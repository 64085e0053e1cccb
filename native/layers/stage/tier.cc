// SPDX-License-Identifier: Apache-2.0
#include "layers/stage/tier.h"

#include <initializer_list>
#include <string.h>

#include "base/atomic.h"
#include "base/directory_path.h"

namespace weir::stage {
namespace {

long text_of(const char* s) { return reinterpret_cast<long>(s); }

bool inside(const Tier& tier, const char* name, char* to, size_t size) {
  return !base::Writer(to, size).add({tier.path, tier.length}).add(name).cut();
}

// The user's alone: what another may change there would become files of the user.
const char* refused(const char* path) {
  struct stat about;
  if (stat_path(path, &about) != 0) return "cannot be made";
  if (!S_ISDIR(about.st_mode)) return "not a directory";
  const auto user = static_cast<uid_t>(base::system_call(SYS_geteuid));
  if (about.st_uid != user) return "of another user";
  if ((about.st_mode & 022) != 0) return "others may write to it (chmod go-w)";
  return nullptr;
}

long make_directory(const Tier& tier, const char* name) {
  char path[kTierBytes + 16];
  if (!inside(tier, name, path, sizeof path)) return -ENAMETOOLONG;
  const long made = base::system_call(SYS_mkdirat, AT_FDCWD, text_of(path), 0700);
  return made == -EEXIST ? 0 : made;
}

uint64_t half_of_free(const Tier& tier) {
  struct statfs about;
  if (base::system_call(SYS_statfs, text_of(tier.path), reinterpret_cast<long>(&about)) != 0)
    return 0;
  return static_cast<uint64_t>(about.f_bavail) * static_cast<uint64_t>(about.f_bsize) / 2;
}

// Several may do it at once: what they write is the same, but for the number, of which one stays.
void initialize(const Tier& tier, Control* control) {
  uint64_t id = 0, none = 0;
  base::system_call(SYS_getrandom, reinterpret_cast<long>(&id), sizeof id, 0);
  base::compare_exchange(&control->id, &none, id | 1);
  none = 0;
  base::compare_exchange(&control->capacity_bytes, &none, half_of_free(tier));
  base::store(&control->version, kVersion);
  base::store(&control->magic, kMagic);
}

const char* map_control(Tier& tier) {
  char path[kTierBytes + 16];
  if (!inside(tier, "/control", path, sizeof path)) return "its path is too long";
  const base::SignalsBlocked blocked;
  const base::HoldsDescriptor held;
  const long fd = base::open_at(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (base::failed(fd)) return fd == -ENOSPC ? "no space on it" : "it cannot be written";
  long at = base::allocate(static_cast<int>(fd), 0, sizeof(Control));
  if (at == -EOPNOTSUPP) at = base::resize(static_cast<int>(fd), sizeof(Control));
  if (at == 0)
    at = base::map(sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(fd));
  // A lease says whether anybody writes a file, dead or alive, by whatever descriptor.
  const long lease = base::system_call(SYS_fcntl, fd, F_GETLEASE);
  base::close_fd(static_cast<int>(fd));
  if (base::failed(at)) return at == -ENOSPC ? "no space on it" : "it cannot be mapped";
  auto* const control = reinterpret_cast<Control*>(at);
  if (base::load(&control->magic) == 0) initialize(tier, control);
  const char* mistake = nullptr;
  if (lease < 0) mistake = "its file system has no leases (fcntl(2))";
  if (base::load(&control->magic) != kMagic || control->version != kVersion)
    mistake = "it is of another version of weir";
  if (mistake != nullptr) base::unmap(control, sizeof(Control));
  else tier.control = control;
  return mistake;
}

uint32_t bit_of(base::Text last, uint64_t seed) {
  return static_cast<uint32_t>(base::hash(last, seed) % kNameBits);
}

bool mark_path(const Tier& tier, uint64_t inode, const char* suffix, char* to) {
  return !base::Writer(to, kTierBytes + 64)
              .add({tier.path, tier.length})
              .add("/marks/")
              .add_number(inode)
              .add(suffix)
              .cut();
}

// A number and what ends it.
bool take_number(const char*& at, uint64_t* to) {
  uint64_t value = 0;
  if (*at < '0' || *at > '9') return false;
  for (; *at >= '0' && *at <= '9'; ++at) value = value * 10 + static_cast<uint64_t>(*at - '0');
  *to = value;
  if (*at != ' ' && *at != '\n') return false;
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
  const char* at = text + 4;
  uint64_t time = 0;
  if (!take_number(at, &to->generation) || !take_number(at, &to->changes) ||
      !take_number(at, &to->real.device) ||
      !take_number(at, &to->real.inode) || !take_number(at, &to->real.bytes) ||
      !take_number(at, &time))
    return false;
  to->real.mtime_ns = static_cast<int64_t>(time);
  const char* const end = strchr(at, '\n');
  const size_t n = end != nullptr ? static_cast<size_t>(end - at) : strlen(at);
  base::Writer key(to->key, sizeof to->key), other(to->other, sizeof to->other);
  key.add({at, n});
  if (end != nullptr) other.add(end + 1);
  return !key.cut() && !other.cut() && to->key[0] == '/';
}

}  // namespace

const char* attach(Tier& tier, base::Text path, bool make) {
  if (tier.control != nullptr) return nullptr;
  base::Writer writer(tier.path, sizeof tier.path);
  if (writer.add(path).cut()) return "its path is too long";
  tier.length = writer.view().size;
  if (make) base::system_call(SYS_mkdirat, AT_FDCWD, text_of(tier.path), 0700);
  if (const char* const why = refused(tier.path); why != nullptr) return why;
  if (!make) {
    char control[kTierBytes + 16];
    struct stat about;
    if (!inside(tier, "/control", control, sizeof control) || stat_path(control, &about) != 0)
      return "no rule with the layer stage has used it";
  }
  if (make_directory(tier, "/tree") != 0 || make_directory(tier, "/marks") != 0)
    return "it cannot be written";
  return map_control(tier);
}

bool may_have(const Tier& tier, base::Text last) {
  const uint64_t* const names = tier.control->names;
  for (const uint64_t seed : {uint64_t{1}, uint64_t{2}}) {
    const uint32_t bit = bit_of(last, seed);
    if ((base::load_relaxed(&names[bit / 64]) >> (bit % 64) & 1) == 0) return false;
  }
  return true;
}

void remember(const Tier& tier, const char* key) {
  while (*key == '/') {
    const char* const end = strchrnul(++key, '/');
    for (const uint64_t seed : {uint64_t{1}, uint64_t{2}}) {
      const uint32_t bit = bit_of({key, static_cast<size_t>(end - key)}, seed);
      __atomic_fetch_or(&tier.control->names[bit / 64], uint64_t{1} << (bit % 64),
                        __ATOMIC_ACQ_REL);
    }
    key = end;
  }
}

bool key_of(int directory, const char* path, char* key) {
  const base::Text last = last_of(path);
  if (last.size == 0 || (last.size == 1 && last.data[0] == '.') ||
      (last.size == 2 && last.data[0] == '.' && last.data[1] == '.') ||
      memchr(path, '\n', strlen(path)) != nullptr)
    return false;
  const size_t above = static_cast<size_t>(last.data - path);
  base::Writer parent(key, kKeyBytes);
  parent.add({path, above}).add(".");
  if (parent.cut()) return false;
  const base::SignalsBlocked blocked;
  const base::HoldsDescriptor held;
  const long fd = base::open_at(directory, key, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (base::failed(fd)) return false;
  const base::Text real = base::directory_path(static_cast<int>(fd), key, kKeyBytes);
  struct stat about;
  const bool linked = stat_fd(static_cast<int>(fd), &about) == 0 && about.st_nlink != 0;
  base::close_fd(static_cast<int>(fd));
  if (real.size == 0 || real.size >= kKeyBytes || key[0] != '/' || !linked) return false;
  base::Writer rest(key + real.size, kKeyBytes - real.size);
  if (real.size > 1) rest.add("/");
  return !rest.add(last).cut();
}

bool tree_path(const Tier& tier, const char* key, char* to) {
  return !base::Writer(to, kPathBytes).add({tier.path, tier.length}).add("/tree").add(key).cut();
}

Result make_above(const Tier& tier, char* tree) {
  char* const last = strrchr(tree, '/');
  *last = 0;
  long made = base::system_call(SYS_mkdirat, AT_FDCWD, text_of(tree), 0700);
  if (made == -ENOENT) {
    for (char* at = tree + tier.length + 6; (at = strchr(at, '/')) != nullptr; ++at) {
      *at = 0;
      base::system_call(SYS_mkdirat, AT_FDCWD, text_of(tree), 0700);
      *at = '/';
    }
    made = base::system_call(SYS_mkdirat, AT_FDCWD, text_of(tree), 0700);
  }
  *last = '/';
  return made == -EEXIST ? 0 : made;
}

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
                        mark.closed ? '.' : '+', ' ', 0};
  base::Writer writer(room->text, sizeof room->text);
  writer.add(kinds).add_number(mark.generation).add(" ").add_number(mark.changes);
  writer.add(" ").add_number(mark.real.device);
  writer.add(" ").add_number(mark.real.inode).add(" ").add_number(mark.real.bytes);
  writer.add(" ").add_number(static_cast<uint64_t>(mark.real.mtime_ns)).add("\n").add(mark.key);
  if (mark.other[0] != 0) writer.add("\n").add(mark.other);
  if (writer.cut() || !mark_path(tier, inode, "", room->path) ||
      !mark_path(tier, inode, ".new", room->unfinished))
    return -ENAMETOOLONG;
  base::unlink_path(room->unfinished);  // of one that was killed: the name's lock is held
  const long made =
      base::system_call(SYS_symlinkat, text_of(room->text), AT_FDCWD, text_of(room->unfinished));
  if (base::failed(made)) return made;
  return rename_over(room->unfinished, room->path);
}

void remove_mark(const Tier& tier, uint64_t inode) {
  char path[kTierBytes + 64];
  if (mark_path(tier, inode, "", path)) base::unlink_path(path);
}

uint64_t next_generation(const Tier& tier) {
  return base::fetch_add(&tier.control->generation, uint64_t{1}) + 1;
}

Real real_of(const struct stat& about) {
  return {about.st_dev, about.st_ino, static_cast<uint64_t>(about.st_size),
          about.st_mtim.tv_sec * 1'000'000'000 + about.st_mtim.tv_nsec};
}

void find(const Tier& tier, const char* key, Found* to) {
  struct stat about;
  to->there = tree_path(tier, key, to->tree) && stat_path(to->tree, &about) == 0 &&
              S_ISREG(about.st_mode) && read_mark(tier, about.st_ino, &to->mark) == 0;
  if (!to->there) return;
  to->inode = about.st_ino;
  to->bytes = static_cast<uint64_t>(about.st_size);
}

void drop(const Tier& tier, const Found& found) {
  remove_mark(tier, found.inode);  // first: afterwards the number may be another file's
  base::unlink_path(found.tree);
  const uint64_t used = base::load(&tier.control->used_bytes);
  base::fetch_add(&tier.control->used_bytes, ~(found.bytes < used ? found.bytes : used) + 1);
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

namespace {

struct Entry {  // struct linux_dirent64
  uint64_t inode, offset;
  uint16_t bytes;
  uint8_t type;
  char name[];
};
struct Entries {
  alignas(8) char bytes[32 << 10];
};

}  // namespace

bool for_each_name(const char* directory, bool (*each)(void* with, const char* name), void* with) {
  const Mapped<Entries> room;
  const base::HoldsDescriptor held;
  const long fd = base::open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (base::failed(fd) || !room) return false;
  long n = 0;
  bool on = true;
  while (on && (n = base::system_call(SYS_getdents64, fd, text_of(room->bytes),
                                      sizeof room->bytes)) > 0) {
    for (long at = 0; on && at < n;) {
      const auto* const entry = reinterpret_cast<const Entry*>(room->bytes + at);
      at += entry->bytes;
      if (strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0)
        on = each(with, entry->name);
    }
  }
  base::close_fd(static_cast<int>(fd));
  return on && n == 0;
}

void Lock::begin(const Tier& tier) {
  char path[kTierBytes + 16];
  if (!inside(tier, "/lock", path, sizeof path)) return;
  fd_ = base::open_at(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

void Lock::take(uint64_t at) {
  struct flock range{};
  range.l_type = F_WRLCK;
  range.l_start = static_cast<off_t>(at);
  range.l_len = 1;
  long taken = 0;
  while (fd_ >= 0 && (taken = base::system_call(SYS_fcntl, fd_, F_OFD_SETLKW,
                                                reinterpret_cast<long>(&range))) == -EINTR) {}
  if (fd_ < 0 || taken == 0) return;
  base::close_fd(static_cast<int>(fd_));
  fd_ = -1;
}

namespace {
uint64_t place_of(const char* key, Lock::Kind kind) {
  return base::hash(base::text(key), 7) % (1ull << 40) * 2 + kind;
}
constexpr off_t kDaemonAt = off_t{1} << 60;
}  // namespace

Lock::Lock(const Tier& tier, const char* key, Kind kind) {
  begin(tier);
  take(place_of(key, kind));
}

Lock::Lock(const Tier& tier, const char* key, const char* other) {
  const uint64_t a = place_of(key, kName), b = place_of(other, kName);
  begin(tier);
  take(a < b ? a : b);
  if (a != b) take(a < b ? b : a);
}

Lock::~Lock() {
  if (fd_ >= 0) base::close_fd(static_cast<int>(fd_));
}

namespace {

long daemon_lock(const Tier& tier, int* fd, int command) {
  char path[kTierBytes + 16];
  if (!inside(tier, "/lock", path, sizeof path)) return -ENAMETOOLONG;
  const long opened =
      base::open_at(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (base::failed(opened)) return opened;
  struct flock range{};
  range.l_type = F_WRLCK;
  range.l_start = kDaemonAt;
  range.l_len = 1;
  const long result = base::system_call(SYS_fcntl, opened, command, reinterpret_cast<long>(&range));
  if (command == F_OFD_GETLK || result != 0) base::close_fd(static_cast<int>(opened));
  else *fd = static_cast<int>(opened);
  return result != 0 ? result : range.l_type == F_UNLCK ? 0 : 1;
}

}  // namespace

bool has_daemon(const Tier& tier) {
  const base::SignalsBlocked blocked;
  const base::HoldsDescriptor held;
  return daemon_lock(tier, nullptr, F_OFD_GETLK) == 1;
}

bool become_daemon(const Tier& tier, int* fd) { return daemon_lock(tier, fd, F_OFD_SETLK) == 1; }

void note_closed(const Tier& tier, uint64_t inode, uint64_t generation) {
  const Mapped<Mark> mark;
  if (!mark || read_mark(tier, inode, &*mark) != 0) return;
  const Lock lock(tier, mark->key);
  if (!lock.held() || read_mark(tier, inode, &*mark) != 0 || mark->generation != generation ||
      mark->closed)
    return;
  mark->closed = true;
  write_mark(tier, inode, *mark);
}

void wake_daemon(const Tier& tier) { base::fetch_add(&tier.control->changes, 1u); }

}  // namespace weir::stage
