// SPDX-License-Identifier: Apache-2.0
// A tier: a directory on a fast file system with the files that the layer stage keeps there, and
// what is known of each. Programs, the daemon weir-stage and its recovery use these functions alone
// on it; docs/decisions/0032 has the reasons, README.md the states after a crash.
//
//   TIER/tree/<path of the file>   its bytes
//   TIER/marks/<inode>             a symbolic link whose text says what the file is: Mark below
//   TIER/failed/<inode>       why a file could not go to its place; made when one could not
//   TIER/lock                      locks of names (byte ranges), which end with who has them
//   TIER/control                   Control below, mapped by all
//   TIER/reserve                   space for marks when everything else is used
//
// Threads: any, and signal handlers but for what copies. No allocation. -errno for failures.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/atomic.h"
#include "base/syscall.h"
#include "base/text.h"

namespace weir::stage {

using Result = int64_t;

inline constexpr uint64_t kMagic = 0x3167617473726577;  // "wersstag1"
inline constexpr uint32_t kVersion = 1;
inline constexpr size_t kTierBytes = 512;
inline constexpr size_t kKeyBytes = 3072;  // of a file's path; longer ones are not staged
inline constexpr size_t kPathBytes = kTierBytes + kKeyBytes + 64;
inline constexpr uint32_t kNameBits = 1u << 20;

struct Control {
  uint64_t magic;  // last, when the rest is there
  uint32_t version, changes;  // counts closes of files that were written
  uint64_t id;                // random: in names of unfinished files
  uint64_t capacity_bytes, bytes_per_s;
  // Of files that nobody writes: one that is open to be written counts when it is closed. The
  // daemon counts them anew now and then.
  uint64_t used_bytes;
  uint64_t generation;        // the last that a mark got
  uint64_t compares;          // 1: what is at its place is read back
  uint64_t reserve_used;      // 1: some of it was given up
  // How often somebody has begun, and ended, to change used_bytes and a mark that goes with it.
  uint64_t changes_begun, changes_ended;
  uint64_t any_failed;  // 1: there may be something in failed/
  char job[32];         // which had files here last, cut; capture/tier.py reads it here
  uint64_t names[kNameBits / 64];  // bits of last components that were ever staged
};

static_assert(offsetof(Control, job) == 96);

struct Tier {
  char path[kTierBytes];
  size_t length;
  Control* control;  // null: not attached
};

// The file at its real place, as it was when that was last seen.
struct Real {
  uint64_t device, inode, bytes;
  int64_t mtime_ns;
  bool operator==(const Real&) const = default;
};
inline constexpr Real kNoReal{};

enum class State : char {
  kWritten = 'w',     // newer than at its place
  kCopy = 'c',        // equal to what `real` was
  kSuperseded = 's',  // was written, and `other` is being renamed over it: gone when `other` is
};
enum class Mode : char { kAsync = 'a', kEnd = 'e', kNever = 'n' };

struct Mark {
  State state;
  Mode mode;
  // By whom it was last opened to write; else, when nobody writes it any more, that one was killed.
  bool closed;
  bool brought;         // publish() made `real` and its name: both are on the disk
  uint64_t generation;  // of the last opening to write
  uint64_t changes;     // of the last other change: a copy begun before is out of date
  uint64_t run;         // whose program last opened it to write (node::run_number())
  Real real;            // kNoReal: none
  char key[kKeyBytes];
  char other[kKeyBytes];  // while it is renamed: the second name; else empty
};

// Maps the tier, making what is not there. Null, or why it cannot be used.
const char* attach(Tier& tier, base::Text path, bool make);
// Of a directory that is not there: null, or why it cannot be made.
const char* why_not_makeable(const char* path);

// Whether a name with this last component may be on the tier. Two loads.
bool may_have(const Tier& tier, base::Text last);
void remember(const Tier& tier, const char* key);  // all components of it
inline base::Text last_of(const char* path) {
  const char* const slash = strrchr(path, '/');
  return base::text(slash != nullptr ? slash + 1 : path);
}

// A descriptor of weir's own, closed at the end; its holder has a base::HoldsDescriptor.
class Descriptor {
 public:
  explicit Descriptor(long fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) base::close_fd(static_cast<int>(fd_));
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  long error() const { return fd_ < 0 ? fd_ : 0; }
  int get() const { return static_cast<int>(fd_); }
  void reset(long fd) {
    if (fd_ >= 0) base::close_fd(static_cast<int>(fd_));
    fd_ = fd;
  }
  int release() {
    const int fd = get();
    fd_ = -1;
    return fd;
  }

 private:
  long fd_;
};

// The directory of a name, open (O_PATH), so that the file system is asked for its path once
// however much is to be known of the name; signals are held back for the lifetime of the object.
class Above {
 public:
  Above(int directory, const char* path);
  // The path that the kernel has for the name: links of its directory followed, its own not. False:
  // it has no such directory, ends in no name, or is too long.
  bool key(char* to) const;
  // What is there under the name; links are not followed.
  long about(struct stat* to) const;
  // access(2) of the name itself, and whether names can be made in the directory. The latter is
  // asked of the file system once a second for each process and directory.
  bool may_write() const;
  bool may_make(const char* key) const;
  // Whether nobody on this node has the file open; false where its file system does not say.
  bool is_unused() const;

 private:
  base::SignalsBlocked blocked_;
  base::HoldsDescriptor holds_;
  static constexpr int kNowhere = -1;
  base::Text last_;
  int at_ = kNowhere;
  Descriptor own_;
};
inline bool key_of(int directory, const char* path, char* key) {
  return Above(directory, path).key(key);
}
// In the tree.
bool tree_path(const Tier& tier, const char* key, char* to);
// The directories above a file of the tree.
Result make_above(const Tier& tier, char* tree);

Result read_mark(const Tier& tier, uint64_t inode, Mark* to);
Result write_mark(const Tier& tier, uint64_t inode, const Mark& mark);
void remove_mark(const Tier& tier, uint64_t inode);
uint64_t next_generation(const Tier& tier);

// Why the bytes of that generation could not go to their place when that was last tried; 0: nothing
// is known of it. forget_failure: they did, or are no more.
Result failure_of(const Tier& tier, uint64_t inode, uint64_t generation);
void note_failure(const Tier& tier, uint64_t inode, uint64_t generation, Result why);
void forget_failure(const Tier& tier, uint64_t inode);

inline long stat_path(const char* path, struct stat* to, int flags = AT_SYMLINK_NOFOLLOW) {
  return base::system_call(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(path),
                           reinterpret_cast<long>(to), flags);
}
inline long stat_fd(int fd, struct stat* to) {
  return base::system_call(SYS_fstat, fd, reinterpret_cast<long>(to));
}
Real real_of(const struct stat& about);
// Whether the kernel gives a lease of that kind, which ends at once, on a file that is open to
// read. F_RDLCK: no descriptor of any process, and no mapping, may write it. F_WRLCK: nor read it.
bool may_lease(int fd, int kind);
inline bool is_idle(int fd) { return may_lease(fd, F_RDLCK); }
// Whether a copy on the tier stands for that file at its place: it is what was copied, and has no
// other name. By that one programs see the file at its place, and both must be one file.
bool is_copy_of(const Mark& mark, const struct stat& about);

// What is on the tier under a name, to be looked at with its lock held.
struct Found {
  bool there;  // with a mark
  uint64_t device, inode, bytes;
  uint32_t mode, user, group;
  struct timespec changed;
  char tree[kPathBytes];
  Mark mark;
};
void find(const Tier& tier, const char* key, Found* to);
inline bool is_newer(const Found& found) {
  return found.there && found.mark.state != State::kCopy;
}
// Whether its bytes are among Control::used_bytes.
inline bool is_counted(const Mark& mark) { return mark.closed || mark.state == State::kCopy; }
// They are from now on; they are not.
void count_bytes(const Tier& tier, uint64_t bytes);
void uncount_bytes(const Tier& tier, uint64_t bytes);
// While that, and the mark, are changed: who counts all files meanwhile does it once more.
class CountChange {
 public:
  explicit CountChange(const Tier& tier) : control_(*tier.control) {
    base::fetch_add(&control_.changes_begun, uint64_t{1});
  }
  ~CountChange() { base::fetch_add(&control_.changes_ended, uint64_t{1}); }
  CountChange(const CountChange&) = delete;
  CountChange& operator=(const CountChange&) = delete;

 private:
  Control& control_;
};
// Takes it off the tier.
void drop(const Tier& tier, const Found& found);
// Finishes or takes back what a process that was killed had begun with it.
void settle(const Tier& tier, Found& found);

// Room for what is too large for the stack of a signal handler. Null when there is no memory.
template <typename T>
class Mapped {
 public:
  Mapped() : at_(base::map(sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS)) {}
  ~Mapped() {
    if (!base::failed(at_)) base::unmap(reinterpret_cast<void*>(at_), sizeof(T));
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  explicit operator bool() const { return !base::failed(at_); }
  T& operator*() const { return *reinterpret_cast<T*>(at_); }
  T* operator->() const { return reinterpret_cast<T*>(at_); }

 private:
  long at_;
};

// A lock of the tier, held for the lifetime of the object; signals are held back meanwhile.
class Lock {
 public:
  enum Kind : uint64_t { kName, kPublishing };
  Lock(const Tier& tier, const char* key, Kind kind = kName);
  // Of two names, in one order; they may be one.
  Lock(const Tier& tier, const char* key, const char* other);
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  bool held() const { return fd_ >= 0; }

 private:
  void begin(const Tier& tier);
  void take(uint64_t at);
  base::SignalsBlocked blocked_;
  base::HoldsDescriptor holds_;
  long fd_ = -1;
};

// Whether a daemon lives; take: becomes it (the lock lasts as long as *fd).
bool has_daemon(const Tier& tier);
bool become_daemon(const Tier& tier, int* fd);
// Whoever has it open to write is about to close it, or to hand it on to another program, with so
// many bytes.
void note_closed(const Tier& tier, uint64_t inode, uint64_t generation, uint64_t bytes);
void wake_daemon(const Tier& tier);  // a file was closed

// How files begin that are being written beside their place.
inline constexpr char kUnfinished[] = ".weir-stage-";

// Calls each(with, name) for the names in a directory but `.` and `..`, while that returns true.
// False: it did not, or the directory cannot be read.
bool for_each_name(const char* directory, bool (*each)(void* with, const char* name), void* with);

// Copies what is on the tier to the file's place: complete, on the disk, and then by rename.
struct Publishing {
  // -EBUSY while anybody has it open for writing; it is a copy afterwards. Else the bytes that are
  // there at some time during the call, which stay newer.
  bool only_idle;
  bool keep;        // the copy stays on the tier
  bool unfinished;  // also of a writer that was killed
  bool compares;    // reads back what was written; -EBADMSG when it differs
  // After each piece that was written; null: nothing.
  void (*moved)(void* with, uint64_t bytes);
  void* with;
  // For who goes on at the file's place: flags of open(2), and the descriptor. Null: nobody.
  int flags = 0;
  long* opened = nullptr;
};
// 0; -EAGAIN: it was changed meanwhile; -ENOENT: it is not newer (any more); -EOWNERDEAD: its
// writer was killed. Not in a signal handler.
Result publish(const Tier& tier, const char* key, const Publishing& how);

// Free bytes of the tier's file system.
uint64_t free_bytes(const Tier& tier);
// Gives up some of the reserve: a mark's text takes a page where the path of its file is long.
// False: there is none left. refill_reserve: after something was taken off the tier.
bool use_reserve(const Tier& tier);
void refill_reserve(const Tier& tier);
// Whether files that are made go to their place: as many bytes are there as may be, or its file
// system is nearly full, which leaves room for open files to grow.
bool is_full(const Tier& tier);
// Takes copies off the tier, in no order, until so many bytes are free. False: they are not.
bool make_free(const Tier& tier, uint64_t bytes);

}  // namespace weir::stage
