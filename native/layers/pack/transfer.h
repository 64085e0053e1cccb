// SPDX-License-Identifier: Apache-2.0
// Requests of this layer to the container and to contents in memory. The trace has the program's
// calls alone, so bytes of these are counted as weir's own: the report compares the others with
// what the kernel counted.
#pragma once

#include <errno.h>
#include <sys/uio.h>

#include "base/apart.h"
#include "base/atomic.h"
#include "base/syscall.h"

namespace weir::layers::pack {

inline long counted_in(uint64_t* bytes, long done) {
  if (done > 0) base::fetch_add(bytes, static_cast<uint64_t>(done));
  return done;
}

// As the functions of base/syscall.h.
inline long read_at(int fd, void* to, size_t bytes, uint64_t at) {
  return counted_in(&base::own_bytes_read, base::read_at(fd, to, bytes, at));
}
inline long write_at(int fd, const void* from, size_t bytes, uint64_t at) {
  return counted_in(&base::own_bytes_written, base::write_at(fd, from, bytes, at));
}
inline long write_vector_at(int fd, const iovec* pieces, int count, uint64_t at) {
  return counted_in(&base::own_bytes_written, base::write_vector_at(fd, pieces, count, at));
}
// False: the file is shorter than that, by now.
inline bool read_whole(int from, char* to, uint64_t bytes, uint64_t at) {
  for (uint64_t done = 0; done < bytes;) {
    const long got = read_at(from, to + done, bytes - done, at + done);
    if (got == -EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<uint64_t>(got);
  }
  return true;
}
// 0 or an errno.
inline int write_whole(int to, const char* from, uint64_t bytes, uint64_t at) {
  for (uint64_t done = 0; done < bytes;) {
    const long put = write_at(to, from + done, bytes - done, at + done);
    if (put == -EINTR) continue;
    if (put <= 0) return put < 0 ? static_cast<int>(-put) : EIO;
    done += static_cast<uint64_t>(put);
  }
  return 0;
}
// sendfile(2): from `*at` on, to the descriptor's position.
inline long send_from(int from, off_t* at, int to, size_t bytes) {
  const long done = base::system_call(SYS_sendfile, to, from, reinterpret_cast<long>(at),
                                      static_cast<long>(bytes));
  return counted_in(&base::own_bytes_written, counted_in(&base::own_bytes_read, done));
}

}  // namespace weir::layers::pack
