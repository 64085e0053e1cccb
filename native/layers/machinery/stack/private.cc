// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "base/syscall.h"
#include "layers/machinery/stack/busy.h"
#include "layers/machinery/stack/carried_locks.h"

namespace weir::stack {
namespace {

constexpr int kMost = 512;
constexpr uint64_t kRoom = 1024;     // numbers below the limit that are tried first
constexpr uint64_t kHighest = 8192;  // the kernel's table of descriptors grows with the highest

struct Kept {
  int number;  // 0: free
  int* place;
};
constinit Kept kept[kMost] = {};
constinit int used = 0;  // no row above it was ever used
WEIR_BUSY(busy);

using Busy = BusyWith<&busy>;

// A copy of fd at a high number.
long raise(int fd) {
  rlimit limit{};
  base::system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, reinterpret_cast<long>(&limit));
  uint64_t from = limit.rlim_cur > kRoom ? limit.rlim_cur - kRoom : limit.rlim_cur / 2;
  if (from > kHighest) from = kHighest;
  const long high = base::system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, static_cast<long>(from));
  return base::failed(high) ? base::system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3) : high;
}

Kept* row_of(int fd) {
  for (int i = 0; i < used; ++i) {
    if (base::load_relaxed(&kept[i].number) == fd) return &kept[i];
  }
  return nullptr;
}

}  // namespace

constinit uint32_t private_count = 0;

bool keep_private(int fd, int* place) {
  const long high = raise(fd);
  close_keeping_locks(fd);
  *place = -1;
  if (base::failed(high)) return false;
  const Busy hold;
  for (int i = 0; i < kMost; ++i) {
    if (kept[i].number != 0) continue;
    kept[i].place = place;
    *place = static_cast<int>(high);
    base::store(&kept[i].number, static_cast<int>(high));
    if (i >= used) used = i + 1;
    base::fetch_add(&private_count, 1u);
    return true;
  }
  close_keeping_locks(static_cast<int>(high));
  return false;
}

bool adopt_private(int fd, int* place) {
  const Busy hold;
  for (int i = 0; i < kMost; ++i) {
    if (kept[i].number != 0) continue;
    kept[i].place = place;
    base::store(&kept[i].number, fd);
    if (i >= used) used = i + 1;
    base::fetch_add(&private_count, 1u);
    return true;
  }
  return false;
}

bool move_up(int* place) {
  const int old = *place;
  {
    const Busy hold;
    Kept* row = row_of(old);
    const long high = row != nullptr ? raise(old) : -EBADF;
    if (base::failed(high)) return false;
    base::store(place, static_cast<int>(high));
    base::store(&row->number, static_cast<int>(high));
  }
  base::close_fd(old);
  return true;
}

bool move_down(int* place) {
  const int old = *place;
  const long lowest = base::system_call(SYS_fcntl, old, F_DUPFD_CLOEXEC, 0);
  if (base::failed(lowest)) return false;
  const int other = static_cast<int>(lowest);
  if (other > old) {
    base::close_fd(other);
    return true;
  }
  {
    const Busy hold;
    if (Kept* row = row_of(old); row != nullptr) base::store(&row->number, other);
    base::store(place, other);
  }
  base::close_fd(old);
  return true;
}

void release_private(int fd) {
  const Busy hold;
  if (Kept* row = row_of(fd); row != nullptr) {
    base::store(&row->number, 0);
    base::fetch_add(&private_count, ~0u);
  }
}

void close_private(int* place) {
  if (*place < 0) return;
  const Busy hold;
  if (Kept* row = row_of(*place); row != nullptr) {
    base::store(&row->number, 0);
    base::fetch_add(&private_count, ~0u);
  }
  close_keeping_locks(*place);
  *place = -1;
}

bool find_private(int fd) { return fd > 0 && row_of(fd) != nullptr; }

void make_way(int fd) {
  if (!is_private(fd)) return;
  const Busy hold;
  Kept* row = row_of(fd);
  if (row == nullptr) return;
  const long other = raise(fd);
  *row->place = base::failed(other) ? -1 : static_cast<int>(other);
  base::store(&row->number, base::failed(other) ? 0 : static_cast<int>(other));
  if (base::failed(other)) base::fetch_add(&private_count, ~0u);
}

int next_private(unsigned from) {
  int lowest = -1;
  for (int i = 0; i < used; ++i) {
    const int number = base::load_relaxed(&kept[i].number);
    if (number > 0 && static_cast<unsigned>(number) >= from && (lowest < 0 || number < lowest))
      lowest = number;
  }
  return lowest;
}

}  // namespace weir::stack
