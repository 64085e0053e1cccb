// SPDX-License-Identifier: Apache-2.0
// Beyond the limit of file sizes (RLIMIT_FSIZE, ulimit -f) the kernel sends SIGXFSZ, which ends a
// process. While an object of this class is there, the calls of its thread return EFBIG alone.
#pragma once

#include <signal.h>
#include <time.h>

#include <cerrno>

namespace weir::output {

class FileSizeSignalBlocked {
 public:
  FileSizeSignalBlocked() {
    sigset_t before;
    sigemptyset(&mine_);
    sigaddset(&mine_, SIGXFSZ);
    blocks_ = pthread_sigmask(SIG_BLOCK, &mine_, &before) == 0 && !sigismember(&before, SIGXFSZ);
  }
  ~FileSizeSignalBlocked() {
    if (!blocks_) return;
    const int error = errno;
    const timespec at_once{};
    while (sigtimedwait(&mine_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_UNBLOCK, &mine_, nullptr);
    errno = error;
  }
  FileSizeSignalBlocked(const FileSizeSignalBlocked&) = delete;
  FileSizeSignalBlocked& operator=(const FileSizeSignalBlocked&) = delete;

 private:
  sigset_t mine_;
  bool blocks_;
};

}  // namespace weir::output
