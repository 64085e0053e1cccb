// SPDX-License-Identifier: Apache-2.0
// Whether memory at an address can be read or written, asked of the kernel without changing a byte
// of it.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "base/syscall.h"

//
// Threads: any, and signal handlers. The answer holds until another thread unmaps or protects the
// memory. Cost: one system call each, two where populate() is not known to the kernel.
namespace weir::base {

// Whether the aligned word around an address can be written: the kernel ors zero to it (futex(2),
// FUTEX_WAKE_OP). A thread that waits for this very word with the value 0x7ff is woken, as any may
// be for nothing.
inline bool can_write(uintptr_t at) {
  const valgrind::Unreported unreported;  // below a stack pointer, where the page of a buffer may
                                          // begin, it allows no access
  uint32_t nobody = 0;
  const long all = static_cast<long>(FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0x7ff));
  const long result =
      system_call(SYS_futex, reinterpret_cast<long>(&nobody), FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 1,
                  1, static_cast<long>(at & ~uintptr_t{3}), all);
  return !failed(result);
}

// Whether no page of it is missing; one that is there may still refuse a copy (mprotect).
inline bool is_mapped(uintptr_t at, size_t bytes) {
  const valgrind::Unreported unreported;
  return system_call(SYS_msync, static_cast<long>(at), static_cast<long>(bytes), MS_ASYNC) == 0;
}

// The answer of madvise(2) for an aligned range: its pages are made present by reading or writing
// them. -EINVAL before Linux 5.14, and for a protected page.
inline long populate(uintptr_t at, uint64_t bytes, bool writes) {
  return system_call(SYS_madvise, static_cast<long>(at), static_cast<long>(bytes),
                     writes ? 23 /* POPULATE_WRITE */ : 22 /* POPULATE_READ */);
}

// Whether no page of an aligned range is missing, and all can be read where the kernel can tell
// (since Linux 5.14). What was never written takes no memory by that.
inline bool is_readable(uintptr_t at, uint64_t bytes) {
  const long all = populate(at, bytes, false);
  if (all != -EINVAL) return all == 0;
  return populate(at, 0, false) == -EINVAL &&
         is_mapped(at, bytes);  // else the kernel has it, and a page is protected
}

// One mapping of /proc/self/maps (PROCMAP_QUERY, since Linux 6.11).
struct MappingQuery {
  uint64_t size, wanted, at, begin, end, flags, page_bytes, offset, inode;
  uint32_t device[2], name_bytes, build_id_bytes;
  uint64_t name, build_id;
};
static_assert(sizeof(MappingQuery) == 104);

// Where the mappings end that an aligned range begins with and that may be written; `end` also
// where the kernel cannot tell. No page is made present by that.
inline uintptr_t writable_until(uintptr_t at, uintptr_t end) {
  constexpr uint64_t kWritable = 2;
  const HoldsDescriptor held;
  const long fd = open_at(AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (failed(fd)) return end;
  while (at < end) {
    MappingQuery query{};
    query.size = sizeof query;
    query.wanted = kWritable;
    query.at = at;
    const long result = system_call(SYS_ioctl, fd, static_cast<long>(_IOWR('f', 17, MappingQuery)),
                                    reinterpret_cast<long>(&query));
    if (result == -ENOENT) break;
    at = result == 0 && query.end > at ? query.end : end;
  }
  close_fd(static_cast<int>(fd));
  return at < end ? at : end;
}

// Whether all pages of an aligned range can be read or written: they are made present. False also
// where the kernel cannot tell.
inline bool can_copy_all(uintptr_t at, uint64_t bytes, bool writes) {
  return populate(at, bytes, writes) == 0;
}

}  // namespace weir::base
