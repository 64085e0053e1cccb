// SPDX-License-Identifier: Apache-2.0
#include "layers/writeback/daemon/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace weir::daemon {
namespace {

constexpr int kTries = 4;                              // of a write that fails, 100 ms apart
constexpr uint64_t kSearchBytes = uint64_t{64} << 20;  // how far others' appends are looked through

void pause_ms(long ms) {
  const timespec time{0, ms * 1'000'000};
  nanosleep(&time, nullptr);
}

// What passes by itself is waited for; what may (a full disk) is tried again; a file system that
// hangs is waited for.
template <typename Write>
int write_all(uint64_t bytes, uint64_t* done, Write write) {
  *done = 0;
  for (int tries = 0; *done < bytes;) {
    const ssize_t n = write(*done);
    if (n > 0) {
      *done += static_cast<uint64_t>(n);
      continue;
    }
    const int error = n == 0 ? EIO : errno;
    if (error == EINTR) continue;
    if (++tries == (error == EAGAIN ? 100 : kTries)) return error;
    pause_ms(error == EAGAIN ? 10 : 100);
  }
  return 0;
}

}  // namespace

uint64_t born_ns(int descriptor) {
  struct statx about;
  if (statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BTIME, &about) != 0 ||
      (about.stx_mask & STATX_BTIME) == 0)
    return 0;
  return static_cast<uint64_t>(about.stx_btime.tv_sec) * 1'000'000'000 + about.stx_btime.tv_nsec;
}

Output::~Output() {
  for (const int fd : {opened_, positioned_, appending_, reading_}) {
    if (fd >= 0) close(fd);
  }
}

int Output::prepare() {
  if (given_ >= 0 || opened_ >= 0) return 0;
  // Not opened before it is known to be the file: somebody may have put a device or a pipe there.
  const int found = open(slot_.path, O_PATH | O_CLOEXEC);
  if (found < 0) return errno;
  int error = ESTALE;
  if (is_the_file(found)) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", found);
    opened_ = open(path, O_RDWR | O_CLOEXEC);
    if (opened_ < 0 && errno == EACCES) opened_ = open(path, O_WRONLY | O_CLOEXEC);
    error = opened_ < 0 ? errno : 0;
  }
  close(found);
  return error;
}

bool Output::is_the_file(int descriptor) const {
  struct stat about;
  if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode) || about.st_dev != slot_.device ||
      about.st_ino != slot_.inode)
    return false;
  return slot_.born_ns == 0 || slot_.born_ns == born_ns(descriptor);
}

int Output::reopen(int flags) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", given_ >= 0 ? given_ : opened_);
  return open(path, flags | O_CLOEXEC);
}

int Output::for_positions() {
  const int usual = given_ >= 0 ? given_ : opened_;
  const int flags = fcntl(usual, F_GETFL);
  if ((flags & O_APPEND) == 0) return usual;
  if (positioned_ < 0) positioned_ = reopen(O_WRONLY);
  if (positioned_ >= 0) return positioned_;
  fcntl(usual, F_SETFL,
        flags & ~O_APPEND);  // its other users, if any, are children of a process that was killed
  return usual;
}

int Output::for_appending() {
  const int usual = given_ >= 0 ? given_ : opened_;
  if ((fcntl(usual, F_GETFL) & O_APPEND) != 0) return usual;
  if (appending_ < 0) appending_ = reopen(O_WRONLY | O_APPEND);
  return appending_ >= 0 ? appending_ : usual;
}

int Output::write_at(const char* from, uint64_t bytes, uint64_t offset, uint64_t* done) {
  *done = 0;
  if (const int error = prepare(); error != 0) return error;
  const int fd = for_positions();
  return write_all(bytes, done, [&](uint64_t at) {
    return pwrite(fd, from + at, bytes - at, static_cast<off_t>(offset + at));
  });
}

int Output::append(const char* from, uint64_t bytes, uint64_t* done) {
  *done = 0;
  if (const int error = prepare(); error != 0) return error;
  const int fd = for_appending();
  if ((fcntl(fd, F_GETFL) & O_APPEND) == 0 && lseek(fd, 0, SEEK_END) < 0) return errno;
  return write_all(bytes, done, [&](uint64_t at) { return write(fd, from + at, bytes - at); });
}

int Output::size(uint64_t* bytes) {
  if (const int error = prepare(); error != 0) return error;
  struct stat about;
  if (fstat(given_ >= 0 ? given_ : opened_, &about) != 0) return errno;
  *bytes = static_cast<uint64_t>(about.st_size);
  return 0;
}

int Output::find_appended(const char* from, uint64_t tried, uint64_t expected, uint64_t* there) {
  *there = 0;
  uint64_t end = 0;
  if (const int error = size(&end); error != 0) return error;
  if (end <= expected) return 0;
  if (reading_ < 0) reading_ = reopen(O_RDONLY);
  if (reading_ < 0) {  // by length alone
    *there = std::min(end - expected, tried);
    return 0;
  }
  std::string now(std::min(end - expected, kSearchBytes + tried), 0);
  uint64_t got = 0;
  while (got < now.size()) {
    const ssize_t n =
        pread(reading_, now.data() + got, now.size() - got, static_cast<off_t>(expected + got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    got += static_cast<uint64_t>(n);
  }
  now.resize(got);
  const std::string_view piece(from, tried);
  if (now.find(piece) != std::string::npos) *there = tried;
  // Cut off by the kill, and nobody else has appended since.
  else if (piece.substr(0, got) == now) *there = got;
  return 0;
}

}  // namespace weir::daemon
