// SPDX-License-Identifier: Apache-2.0
// A tier without room for what is written. Copies are removed from it first; then the open file
// goes to its place, and the program's descriptors name that one from there on. The file must be
// this process's alone, by one open: others would go on with the one on the tier.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/futex.h"
#include "layers/machinery/stack/carried_locks.h"
#include "layers/machinery/stack/file.h"
#include "layers/machinery/stack/mapped.h"
#include "layers/machinery/stack/replace.h"
#include "layers/stage/declared.h"
#include "layers/stage/state.h"

namespace weir::layers::stage {
namespace {

using namespace stack;
using namespace stage_declared;
namespace tiers = weir::stage;
using tiers::Mapped;
using tiers::Tier;

constexpr uint32_t kMoving = 1u << 31;
// For other threads to come out of their calls. One that a signal handler of this thread has
// interrupted does not.
constexpr uint64_t kPatienceNs = 1'000'000'000, kStepNs = 1'000'000;
constexpr int kYields = 1000;
constexpr uint64_t kLeast = 64 << 10;  // free bytes beside those of a write
constexpr uint64_t kCopied = 1 << 20;  // free bytes for a copy within the kernel
constexpr int kPieces = 1024;      // IOV_MAX

// A call that changes the bytes of the file, of any number of threads at a time.
class Within {
 public:
  explicit Within(State& s) : at_(&s.within) {
    for (;;) {
      uint32_t is = base::load(at_);
      if ((is & kMoving) != 0) base::yield();
      else if (base::compare_exchange(at_, &is, is + 1)) return;
    }
  }
  ~Within() { base::fetch_add(at_, ~0u); }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  uint32_t* at_;
};

// No thread is in such a call for the lifetime of the object. Another that moves the file, which no
// handler interrupts, is waited for until it has.
class Alone {
 public:
  explicit Alone(State& s) : at_(&s.within) {
    for (;;) {
      uint32_t is = base::load(at_);
      if ((is & kMoving) != 0) base::futex_wait(at_, is, kStepNs);
      else if (base::compare_exchange(at_, &is, is | kMoving)) break;
    }
    const uint64_t begun = base::now_ns();
    for (int turns = 0; !is() && base::now_ns() - begun < kPatienceNs; ++turns) {
      if (turns < kYields) base::yield();
      else base::futex_wait(at_, base::load(at_), kStepNs);
    }
  }
  ~Alone() { __atomic_fetch_and(at_, ~kMoving, __ATOMIC_ACQ_REL); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  bool is() const { return base::load(at_) == kMoving; }

 private:
  base::SignalsBlocked blocked_;
  uint32_t* at_;
};

struct Users {
  uint64_t device, inode;
  const File* file;  // numbers of it in this process are not others
  bool own, others;
  char directory[32];
};

bool see_descriptor(void* with, const char* name) {
  Users& users = *static_cast<Users*>(with);
  char path[sizeof users.directory + 32];
  struct stat about;
  int number = 0;
  for (const char* at = name; *at >= '0' && *at <= '9'; ++at) number = number * 10 + (*at - '0');
  if (base::Writer(path, sizeof path).add(users.directory).add("/").add(name).cut() ||
      tiers::stat_path(path, &about, 0) != 0 || about.st_ino != users.inode ||
      about.st_dev != users.device)
    return true;
  users.others |= !users.own || known_at(number) != users.file;
  return !users.others;
}

bool see_process(void* with, const char* name) {
  Users& users = *static_cast<Users*>(with);
  if (*name < '0' || *name > '9') return true;
  base::Writer(users.directory, sizeof users.directory).add("/proc/").add(name).add("/fd");
  char own[16];
  base::Writer(own, sizeof own).add_number(static_cast<uint64_t>(base::process_id()));
  users.own = strcmp(own, name) == 0;
  tiers::for_each_name(users.directory, see_descriptor, with);
  return !users.others;
}

// Whether nobody else has the file open, and nobody a mapping of it. Processes of other users
// cannot: the tier is this user's alone.
bool is_used_by_others(const Layer& layer) {
  struct stat about;
  if (tiers::stat_fd(layer.file->descriptor, &about) != 0) return true;
  Users users{about.st_dev, about.st_ino, layer.file, false, false, {}};
  tiers::for_each_name("/proc", see_process, &users);
  return users.others || is_mapped(about.st_dev, about.st_ino);
}

bool move_to_place(Layer& layer) {
  State& s = state(layer);
  File* const f = layer.file;
  const Tier& tier = *s.tier;
  const Mapped<tiers::Mark> mark;
  if (!mark || is_used_by_others(layer)) return false;
  const base::HoldsDescriptor held;
  long opened = -1;
  const CarriedLocks locks(f->descriptor);  // what is read for the copy is closed again
  const tiers::Publishing how{
      .only_idle = false, .keep = false, .unfinished = true, .compares = false, .moved = nullptr,
      .with = nullptr, .flags = f->flags, .opened = &opened};
  for (int tries = 0; tries < 3; ++tries) {
    if (tiers::read_mark(tier, s.inode, &*mark) != 0) return false;  // it has no name any more
    if (tiers::publish(tier, mark->key, how) != 0) continue;  // it was renamed meanwhile
    {
      const tiers::Descriptor there(opened);
      const long at = base::system_call(SYS_lseek, f->descriptor, 0, SEEK_CUR);
      base::system_call(SYS_lseek, there.get(), at, SEEK_SET);
      locks.set_of_open_file(there.get());
      replace_descriptors(f, there.get());
    }
    locks.set_again();
    base::store(&s.tier, static_cast<const Tier*>(nullptr));
    return true;
  }
  return false;
}

bool is_short_of(const Tier& tier, uint64_t bytes) {
  return tiers::free_bytes(tier) < bytes + kLeast;
}

// The part of a write that is still to be done.
Result write_rest(Layer& layer, const Transfer& t, uint64_t done) {
  const Mapped<iovec[kPieces]> room;
  if (!room || t.count > kPieces) return -ENOSPC;
  int count = 0;
  uint64_t skip = done;
  for (int i = 0; i < t.count; ++i) {
    const iovec piece = t.pieces[i];
    const uint64_t here = skip < piece.iov_len ? skip : piece.iov_len;
    skip -= here;
    if (here == piece.iov_len) continue;
    (*room)[count++] = {static_cast<char*>(piece.iov_base) + here, piece.iov_len - here};
  }
  const uint64_t offset = t.offset == kKernelOffset ? kKernelOffset : t.offset + done;
  return write_below(layer, {*room, count, t.bytes - done, offset, t.descriptor});
}

Result write_within(Layer& layer, const Transfer& t) {
  const Within within(state(layer));
  return write_below(layer, t);
}

bool is_no_space(Result r) { return r == -ENOSPC || r == -EDQUOT; }

bool make_space_for(Layer& layer, uint64_t bytes) {
  State& s = state(layer);
  const int process = base::process_id();
  const Tier* const tier = base::load(&s.tier);
  if (tier == nullptr || s.process != process) return tier == nullptr;
  if (tiers::make_free(*tier, bytes + kLeast)) return true;
  const Alone alone(s);
  if (!alone.is()) return false;
  if (s.tier == nullptr) return true;  // another thread was faster
  if (!move_to_place(layer)) return false;
  base::fetch_add(&layer.statistics[kMoved], uint64_t{1});
  note_bypass(layer, Reason::kTierFull);
  return true;
}

// What the system took at first is `r`. The rest, once there is room.
WEIR_COLD Result write_when_full(Layer& layer, const Transfer& t, Result r) {
  const Tier* const tier = base::load(&state(layer).tier);
  const uint64_t done = r > 0 ? static_cast<uint64_t>(r) : 0;
  if (tier != nullptr && !is_no_space(r) && !is_short_of(*tier, t.bytes - done)) return r;
  // Null: another thread has moved it meanwhile.
  if (tier != nullptr && !make_space_for(layer, t.bytes - done)) return r;
  const Result rest = write_rest(layer, t, done);
  if (rest < 0) return done > 0 ? r : rest;
  return static_cast<Result>(done) + rest;
}

}  // namespace

bool make_space(Layer& layer) { return make_space_for(layer, kCopied); }

// The bytes that the file has: behind its end a store is an error anyway.
Result reserve(Layer& layer, uint64_t at, uint64_t bytes) {
  const int fd = layer.file->descriptor;
  struct stat about;
  if (base::load(&state(layer).tier) == nullptr || tiers::stat_fd(fd, &about) != 0) return 0;
  const auto size = static_cast<uint64_t>(about.st_size);
  if (at >= size || static_cast<uint64_t>(about.st_blocks) * 512 >= size) return 0;  // no holes
  const uint64_t here = bytes < size - at ? bytes : size - at;
  const auto allocate = [=] {
    return base::system_call(SYS_fallocate, fd, FALLOC_FL_KEEP_SIZE, static_cast<long>(at),
                             static_cast<long>(here));
  };
  if (!is_no_space(allocate())) return 0;
  if (!make_space_for(layer, here)) return -ENOMEM;
  if (base::load(&state(layer).tier) == nullptr) return 0;  // it is at its place now
  return is_no_space(allocate()) ? -ENOMEM : 0;
}

Result write(Layer& layer, const Transfer& t) {
  if (base::load_relaxed(&state(layer).tier) == nullptr) return write_below(layer, t);
  const Result r = write_within(layer, t);
  if (WEIR_LIKELY(r == static_cast<Result>(t.bytes))) return r;
  return is_no_space(r) || r >= 0 ? write_when_full(layer, t, r) : r;
}

Result truncate(Layer& layer, uint64_t bytes) {
  const Within within(state(layer));
  return truncate_below(layer, bytes);
}

}  // namespace weir::layers::stage
