// SPDX-License-Identifier: Apache-2.0
// Space of the file system for what a close will have accepted: the range of the records, and the
// archive's directory behind it, as it will be when all that is accepted has been written. It is
// allocated before the first of these closes returns, so that a full disk is reported by that
// close and not by nobody.
#include <errno.h>
#include <string.h>

#include "layers/pack/container.h"
#include "layers/pack/transfer.h"

namespace weir::layers::pack {
namespace {

class LockedSpace {  // of who makes the file longer
 public:
  explicit LockedSpace(Shared* s)
      : shared_(s), taken_(node::take(s->space) != node::Taken::kNot) {}
  ~LockedSpace() {
    if (taken_) node::release(shared_->space);
  }
  LockedSpace(const LockedSpace&) = delete;
  LockedSpace& operator=(const LockedSpace&) = delete;
  bool taken() const { return taken_; }

 private:
  Shared* shared_;
  bool taken_;
};

// Where the file system cannot allocate: zeros, and the server's word that it has them (a client
// of NFS accepts bytes that the server has no room for).
int write_zeros(int fd, uint64_t from, uint64_t until) {
  const uint64_t bytes = until - from;
  const long zeros = base::map(bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
  if (base::failed(zeros)) return ENOMEM;
  int error = 0;
  for (uint64_t done = 0; done < bytes && error == 0;) {
    const long put = write_at(fd, reinterpret_cast<const char*>(zeros) + done, bytes - done,
                                    from + done);
    if (put == -EINTR) continue;
    if (put <= 0) error = put < 0 ? static_cast<int>(-put) : EIO;
    else done += static_cast<uint64_t>(put);
  }
  base::unmap(reinterpret_cast<void*>(zeros), bytes);
  if (error == 0) error = static_cast<int>(-base::system_call(SYS_fdatasync, fd));
  return error;
}

long allocate(int fd, uint64_t from, uint64_t until) {
  long done = 0;
  do done = base::allocate(fd, from, until - from);
  while (done == -EINTR);
  return done;
}

void cut(int fd, uint64_t bytes) {
  base::system_call(SYS_ftruncate, fd, static_cast<long>(bytes));
}

// As much again as there is, so that a container of many files takes few calls: each is a request
// to the metadata server. The end of the process that finishes the container cuts what is left.
constexpr uint64_t kLeastAhead = 1 << 20, kMostAhead = 16 << 20;
uint64_t ahead_of(uint64_t from, uint64_t until) {
  const uint64_t ahead = from < kLeastAhead ? kLeastAhead : from < kMostAhead ? from : kMostAhead;
  return until - from < ahead ? from + ahead : until;
}

// The lock is held. Nobody has bytes behind `allocated`.
int allocate_until(Container& c, uint64_t until) {
  Shared* const s = c.segment.shared;
  const uint64_t from = base::load(&s->allocated);
  if (until <= from) return 0;
  long done = -EOPNOTSUPP;
  if (base::load(&s->no_allocation) == 0) {
    const uint64_t further = ahead_of(from, until);
    done = allocate(c.file, from, further);
    if (done == 0) {
      until = further;
    } else if (further != until && done != -EOPNOTSUPP && done != -ENOSYS) {
      cut(c.file, from);  // what there was room for
      done = allocate(c.file, from, until);
    }
  }
  if (done == -EOPNOTSUPP || done == -ENOSYS) {
    base::store(&s->no_allocation, 1u);
    done = -write_zeros(c.file, from, until);
  }
  if (done == 0) {
    base::store(&s->allocated, until);
    return 0;
  }
  cut(c.file, from);
  return static_cast<int>(-done);
}

}  // namespace

int reserve(Container& c, uint64_t bytes, uint64_t directory, uint64_t* at) {
  Shared* const s = c.segment.shared;
  const LockedSpace locked(s);
  if (!locked.taken()) return EBUSY;
  const uint64_t begin = base::fetch_add(&s->end, bytes);
  const uint64_t rows = base::fetch_add(&s->directory_bytes, directory) + directory;
  const int error = allocate_until(c, begin + bytes + rows + kTailBytes);
  if (error == 0) {
    base::store(&s->changed, 1u);  // it is longer
    *at = begin;
    return 0;
  }
  give_back(c, begin + bytes, begin, directory);
  return error;
}

void give_back(Container& c, uint64_t end, uint64_t filled, uint64_t directory) {
  give_back_rows(c, directory);
  base::compare_exchange(&c.segment.shared->end, &end, filled);
}

bool is_mostly_old(const Container& c) {
  // The names are counted seldom: each time that the container is 32 MiB longer.
  constexpr uint64_t kLarge = 256u << 20, kPartInUse = 8, kCountedEach = kLarge / kPartInUse;
  Shared* const s = c.segment.shared;
  const uint64_t end = base::load(&s->end);
  if (end < kLarge) return false;
  if (end < base::load(&s->counted_until)) return base::load(&s->mostly_old) != 0;
  uint64_t in_use = 0;
  Cursor at;
  while (const Name* const n = next_name(c.segment, &at)) {
    const Version v = current(n);
    if (v.state == kPacked && v.container == 0) in_use += local_bytes(n->bytes) + v.bytes;
  }
  base::store(&s->mostly_old, in_use < end / kPartInUse ? 1u : 0u);
  base::store(&s->counted_until, end + kCountedEach);
  return base::load(&s->mostly_old) != 0;
}

void give_back_rows(Container& c, uint64_t bytes) {
  base::fetch_add(&c.segment.shared->directory_bytes, ~bytes + 1);
}

}  // namespace weir::layers::pack
