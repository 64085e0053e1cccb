// SPDX-License-Identifier: Apache-2.0
// The directory that a relative path begins in, as system calls with a descriptor (openat) take it.
#pragma once

#include "base/text.h"
#include "base/syscall.h"

namespace weir::base {

// directory: a descriptor, or AT_FDCWD. Lies in `to`. Empty: not known.
// Threads: any, and signal handlers. The result lives as long as `to`. Cost: a system call.
inline base::Text directory_path(int directory, char* to, size_t size) {
  if (directory == AT_FDCWD) {
    const long n = working_directory(to, size);  // counts the final zero
    return failed(n) || n < 2 ? base::Text{} : base::Text{to, static_cast<size_t>(n) - 1};
  }
  char link[32];
  base::Writer(link, sizeof link)
      .add("/proc/self/fd/")
      .add_number(static_cast<uint64_t>(directory));
  const long n = read_link(link, to, size);
  return failed(n) ? base::Text{} : base::Text{to, static_cast<size_t>(n)};
}

}  // namespace weir::base
