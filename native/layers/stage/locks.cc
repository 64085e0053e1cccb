// SPDX-License-Identifier: Apache-2.0
// Locks of the tier: byte ranges of one file, of the open file (fcntl(2), F_OFD_SETLK), which the
// kernel ends with whoever has them.
#include "layers/stage/tier.h"

#include <string.h>

namespace weir::stage {
namespace {

bool lock_path(const Tier& tier, char* to, size_t size) {
  return !base::Writer(to, size).add({tier.path, tier.length}).add("/lock").cut();
}

}  // namespace

void Lock::begin(const Tier& tier) {
  char path[kTierBytes + 16];
  if (!lock_path(tier, path, sizeof path)) return;
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
  if (!lock_path(tier, path, sizeof path)) return -ENAMETOOLONG;
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

}  // namespace weir::stage
