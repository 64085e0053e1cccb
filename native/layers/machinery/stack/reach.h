// SPDX-License-Identifier: Apache-2.0
// How much of a buffer that the program gave can be copied by the process itself. The kernel
// answers a bad address with EFAULT; a copy here would be a crash. Each thread remembers the pages
// that it has checked, until memory is unmapped or protected by a call that is seen, so that the
// usual call costs two loads and two comparisons; a page that is new costs one system call. A
// buffer of more than 32 pages costs one at each call, which looks at mappings alone when its pages
// were checked before: the C library unmaps memory of that size by itself.
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

namespace weir::stack {

enum class Access : uint8_t { kReads, kWrites };  // what the copy does to the buffer

inline constexpr uint32_t kPagesSeen = 64;  // a power of two
struct SeenPages {
  uint64_t epoch;
  uint64_t pages[kPagesSeen];  // number of the page, then two bits: one that is set, and whether it
                               // was written to; 0: none
  uint64_t low, high;          // a long buffer that was checked as one
  uint64_t end;                // until there its pages are known to be readable; >= high
  bool written;                // whether [low, high) was checked for writing
};
extern WEIR_OWN WEIR_THREAD SeenPages seen_pages;
extern WEIR_OWN uint64_t memory_epoch;

// Memory of the program is unmapped, moved or protected.
WEIR_INLINE void memory_changes() { base::fetch_add(&memory_epoch, uint64_t{1}); }

// The bytes from `p` on that can be copied, at most `bytes`.
// Changes no byte of it. Threads: any, and signal handlers; what another thread unmaps after
// the answer is not seen.
WEIR_COLD uint64_t find_reach(const void* p, uint64_t bytes, Access access);

WEIR_INLINE bool is_seen(uint64_t page, Access access) {
  const uint64_t wanted = page << 2 | 3;
  const uint64_t is = seen_pages.pages[page % kPagesSeen];
  return (access == Access::kWrites ? is : is | 1) == wanted;
}

// Whether all of it can be.
WEIR_INLINE bool within_reach(const void* p, uint64_t bytes, Access access) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  const uint64_t first = at >> 12, last = (at + bytes - 1) >> 12;
  if (WEIR_LIKELY(last - first <= 1 && seen_pages.epoch == base::load_relaxed(&memory_epoch)) &&
      is_seen(first, access) && is_seen(last, access)) {
    return true;
  }
  return bytes == 0 || find_reach(p, bytes, access) == bytes;
}

}  // namespace weir::stack
