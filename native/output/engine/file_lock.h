// SPDX-License-Identifier: Apache-2.0
// One process writes a file at a time: it holds a lock (flock) on a small file of its own beside
// the temporary one. The kernel lets it go with the process, so what a job that was killed has left
// is in nobody's way. Where a file system has no locks (ENOSYS, ENOLCK), nobody is kept away.
#pragma once

#include <string>

#include "output/core/status.h"

namespace weir::output {

class FileLock {
 public:
  FileLock() = default;
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  FileLock(const FileLock&) = delete;
  ~FileLock();  // releases

  // `path`: of the lock; `target`: of the file that is to be written, for the message; `owner`:
  // one word. A lock that the same owner holds in another process is taken from it: it belongs to
  // a server that the others have given up.
  // fails: WEIR_E_FILE, another process holds it, or it cannot be made.
  Status take(const std::string& path, const std::string& target, const std::string& owner);
  bool held() const { return fd_ >= 0; }
  // Who holds a lock of this path: "process 12 on node7", or empty when nobody does (or nobody that
  // this node sees: see above).
  static std::string holder(const std::string& path);
  // The file of the lock is removed, unless another process has put its own in the place.
  void release();

 private:
  int fd_ = -1;
  std::string path_;
};

}  // namespace weir::output
