// SPDX-License-Identifier: Apache-2.0
#include "layers/stage/tier.h"

#include <errno.h>
#include <string.h>

#include <initializer_list>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/directory_path.h"

namespace weir::stage {
namespace {

long text_of(const char* s) { return reinterpret_cast<long>(s); }

bool inside(const Tier& tier, const char* name, char* to, size_t size) {
  return !base::Writer(to, size).add({tier.path, tier.length}).add(name).cut();
}

const char* why_not_there(long error) {
  switch (error) {
    case -ENOENT: return "no such directory (ENOENT)";
    case -EACCES: return "permission denied (EACCES)";
    case -ENOTDIR: return "a part of its path is no directory (ENOTDIR)";
    case -ENAMETOOLONG: return "a part of its path is too long (ENAMETOOLONG)";
    case -ELOOP: return "its path has too many symbolic links (ELOOP)";
    default: return "it cannot be looked at (stat(2) failed)";
  }
}

const char* why_not_made(long error) {
  switch (error) {
    case -ENOENT:
      return "cannot be made: the directory above it is not there (ENOENT), and is not made";
    case -EACCES: return "cannot be made: permission denied (EACCES)";
    case -EROFS: return "cannot be made: a file system to read only (EROFS)";
    case -ENOSPC: return "cannot be made: no space (ENOSPC)";
    case -EDQUOT: return "cannot be made: the quota is used up (EDQUOT)";
    case -ENOTDIR: return "cannot be made: a part of its path is no directory (ENOTDIR)";
    default: return "cannot be made (mkdir(2) failed)";
  }
}

// The user's alone: what another may change there would become files of the user.
const char* refused(const char* path) {
  struct stat about;
  const long seen = stat_path(path, &about);
  if (seen != 0) return why_not_there(seen);
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

// Open, or -errno.
long open_reserve(const Tier& tier) {
  char path[kTierBytes + 16];
  if (!inside(tier, "/reserve", path, sizeof path)) return -ENAMETOOLONG;
  return base::open_at(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

constexpr uint64_t kReserve = 64 << 10, kReservePart = 8 << 10;

// Several may do it at once: what they write is the same, but for the number, of which one stays.
void initialize(const Tier& tier, Control* control) {
  uint64_t id = 0, none = 0;
  base::system_call(SYS_getrandom, reinterpret_cast<long>(&id), sizeof id, 0);
  base::compare_exchange(&control->id, &none, id | 1);
  base::store(&control->reserve_used, uint64_t{1});
  none = 0;
  base::compare_exchange(&control->capacity_bytes, &none, free_bytes(tier) / 2);
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
  if (mistake != nullptr) {
    base::unmap(control, sizeof(Control));
    return mistake;
  }
  tier.control = control;
  refill_reserve(tier);
  return nullptr;
}

// Directories in which names may be made: a hash of the path, and the second in which it was asked.
constexpr uint64_t kSeconds = 0xffff;
constexpr uint32_t kDirectories = 64;
constinit uint64_t allowed[kDirectories] = {};

bool ends_with(base::Text text, const char* end) {
  const size_t n = strlen(end);
  return text.size >= n && memcmp(text.data + text.size - n, end, n) == 0;
}

uint32_t bit_of(base::Text last, uint64_t seed) {
  return static_cast<uint32_t>(base::hash(last, seed) % kNameBits);
}

constexpr uint64_t kMostReserve = 1ull << 30;

struct Space {
  uint64_t free, all;
};
Space space_of(const Tier& tier) {
  struct statfs about;
  if (base::system_call(SYS_statfs, text_of(tier.path), reinterpret_cast<long>(&about)) != 0)
    return {0, 0};
  const auto block = static_cast<uint64_t>(about.f_bsize);
  return {static_cast<uint64_t>(about.f_bavail) * block,
          static_cast<uint64_t>(about.f_blocks) * block};
}

}  // namespace

uint64_t free_bytes(const Tier& tier) { return space_of(tier).free; }

bool use_reserve(const Tier& tier) {
  const base::HoldsDescriptor held;
  const Descriptor reserve(open_reserve(tier));
  struct stat about;
  if (reserve.error() != 0 || stat_fd(reserve.get(), &about) != 0 || about.st_size == 0)
    return false;
  const auto left = static_cast<uint64_t>(about.st_size);
  base::store(&tier.control->reserve_used, uint64_t{1});
  return base::resize(reserve.get(), left > kReservePart ? left - kReservePart : 0) == 0;
}

void refill_reserve(const Tier& tier) {
  if (base::load(&tier.control->reserve_used) == 0) return;
  const base::HoldsDescriptor held;
  const Descriptor reserve(open_reserve(tier));
  if (reserve.error() == 0 && base::allocate(reserve.get(), 0, kReserve) == 0)
    base::store(&tier.control->reserve_used, uint64_t{0});
}

bool is_full(const Tier& tier) {
  if (base::load(&tier.control->used_bytes) >= base::load(&tier.control->capacity_bytes))
    return true;
  const Space space = space_of(tier);
  const uint64_t reserve = space.all / 16 < kMostReserve ? space.all / 16 : kMostReserve;
  return space.free < reserve;
}

const char* attach(Tier& tier, base::Text path, bool make) {
  if (tier.control != nullptr) return nullptr;
  base::Writer writer(tier.path, sizeof tier.path);
  if (writer.add(path).cut()) return "its path is too long";
  tier.length = writer.view().size;
  const long made = make ? base::system_call(SYS_mkdirat, AT_FDCWD, text_of(tier.path), 0700) : 0;
  if (made != 0 && made != -EEXIST) return why_not_made(made);
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

const char* why_not_makeable(const char* path) {
  char above[kTierBytes];
  const size_t n = static_cast<size_t>(last_of(path).data - path);
  if (base::Writer(above, sizeof above).add({path, n}).add(".").cut())
    return "its path is too long";
  const long may = base::system_call(SYS_faccessat, AT_FDCWD, text_of(above), 2 | 1);
  return may != 0 ? why_not_made(may) : nullptr;
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

// A name without a slash lies in a directory that is open, or the working one.
Above::Above(int directory, const char* path) : last_(last_of(path)), own_(-ENOENT) {
  if (last_.size == 0 || (last_.size == 1 && last_.data[0] == '.') ||
      (last_.size == 2 && last_.data[0] == '.' && last_.data[1] == '.') ||
      memchr(path, '\n', strlen(path)) != nullptr)
    return;
  if (last_.data == path) {
    at_ = directory;
    return;
  }
  const Mapped<char[kKeyBytes]> parent;
  if (!parent) return;
  base::Writer writer(*parent, kKeyBytes);
  writer.add({path, static_cast<size_t>(last_.data - path)}).add(".");
  if (writer.cut()) return;
  own_.reset(base::open_at(directory, *parent, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (own_.error() == 0) at_ = own_.get();
}

bool Above::key(char* to) const {
  if (at_ == kNowhere) return false;
  const base::Text real = base::directory_path(at_, to, kKeyBytes);
  if (real.size == 0 || real.size >= kKeyBytes || to[0] != '/') return false;
  // The kernel says so of a directory that was removed; one may be called so.
  struct stat about;
  if (at_ != AT_FDCWD && ends_with(real, " (deleted)") &&
      (stat_fd(at_, &about) != 0 || about.st_nlink == 0))
    return false;
  base::Writer rest(to + real.size, kKeyBytes - real.size);
  if (real.size > 1) rest.add("/");
  return !rest.add(last_).cut();
}

long Above::about(struct stat* to) const {
  return base::system_call(SYS_newfstatat, at_, text_of(last_.data),
                           reinterpret_cast<long>(to), AT_SYMLINK_NOFOLLOW);
}

bool Above::may_write() const {
  return base::system_call(SYS_faccessat, at_, text_of(last_.data), 2) == 0;
}

bool Above::is_unused() const {
  const Descriptor at(base::open_at(at_, last_.data,
                                    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return at.error() == 0 && may_lease(at.get(), F_WRLCK);
}

bool Above::may_make(const char* key) const {
  const auto user = static_cast<uint64_t>(base::system_call(SYS_geteuid));
  const size_t above = static_cast<size_t>(last_of(key).data - key);
  const uint64_t hash = base::hash({key, above}, user + 11);
  const uint64_t second = base::now_ns() / 1'000'000'000 & kSeconds;
  uint64_t* const place = &allowed[hash % kDirectories];
  if (base::load_relaxed(place) == ((hash & ~kSeconds) | second)) return true;
  if (base::system_call(SYS_faccessat, at_, text_of("."), 2 | 1) != 0) return false;
  base::store(place, (hash & ~kSeconds) | second);
  return true;
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

void wake_daemon(const Tier& tier) { base::fetch_add(&tier.control->changes, 1u); }

}  // namespace weir::stage
