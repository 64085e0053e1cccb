// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/reach.h"

#include "base/memory.h"

namespace weir::stack {

constinit uint64_t memory_epoch = 1;
WEIR_THREAD SeenPages seen_pages;

namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kLowest = 1u << 16,
                   kHighest = uint64_t{1} << 47;  // no program has memory elsewhere
constexpr uint64_t kMostFilled = 256;  // pages of a read that are checked: to check for writing
                                       // makes them present, and the file may be short
// Pages: from here on they are checked by one system call, where the kernel has it.
constexpr uint64_t kLong = 32;

bool can_copy(uint64_t page, Access access) {
  const uintptr_t at = page * kPage;
  return access == Access::kWrites ? base::can_write(at) : base::can_read(at);
}

bool check(uint64_t page, Access access) {
  if (is_seen(page, access)) return true;
  if (!can_copy(page, access)) return false;
  seen_pages.pages[page % kPagesSeen] = page << 2 | 2 | (access == Access::kWrites ? 1 : 0);
  return true;
}

bool is_long_and_seen(uint64_t first, uint64_t last, Access access) {
  return first >= seen_pages.low && last < seen_pages.high &&
         (seen_pages.written || access == Access::kReads);
}

// Pages [first, last] are copied to or from, [first, end) are readable at least.
bool check_long(uint64_t first, uint64_t last, uint64_t end, Access access) {
  if (!base::can_copy_all(first * kPage, (last + 1 - first) * kPage, access == Access::kWrites))
    return false;
  seen_pages.low = first;
  seen_pages.high = last + 1;
  seen_pages.end = end;
  seen_pages.written = access == Access::kWrites;
  return true;
}

void forget_pages() {
  seen_pages = {};
  seen_pages.epoch = base::load(&memory_epoch);
}

void begin_epoch() {
  if (seen_pages.epoch != base::load(&memory_epoch)) forget_pages();
}

// The first page from `first` on that is not mapped or cannot be read, or `end`. Nothing takes
// memory for the answer.
uint64_t readable_until(uint64_t first, uint64_t end) {
  if (base::is_readable(first * kPage, (end - first) * kPage)) return end;
  while (end - first > 1) {
    const uint64_t middle = first + (end - first) / 2;
    if (base::is_readable(first * kPage, (middle - first) * kPage)) first = middle;
    else end = middle;
  }
  return first;
}

// Pages of a long buffer that were checked, all of them and not changed by a call that is seen, are
// mapped still.
bool is_long_and_mapped(uint64_t first, uint64_t last, uint64_t end, Access access) {
  const bool seen =
      access == Access::kReads ? first >= seen_pages.low : is_long_and_seen(first, last, access);
  if (!seen || end > seen_pages.end) return false;
  return base::is_mapped(first * kPage, (end - first) * kPage);
}

}  // namespace

uint64_t find_reach(const void* p, uint64_t bytes, Access access) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  if (at < kLowest || at >= kHighest || bytes >= kHighest - at) return 0;
  if (base::sealed()) return bytes;
  begin_epoch();
  const uint64_t first = at / kPage;
  uint64_t last = (at + bytes - 1) / kPage, end = last + 1;
  if (access == Access::kWrites && last - first >= kMostFilled) last = first + kMostFilled - 1;
  if (last - first >= kLong && is_long_and_mapped(first, last, end, access)) return bytes;
  if (const uint64_t rest = last + 1; rest < end) {
    uint64_t until = readable_until(rest, end);
    until = base::writable_until(rest * kPage, until * kPage) / kPage;
    if (until < end) bytes = (end = until) * kPage - at;
  }
  if (last - first < kLong) {
    if (is_long_and_seen(first, last, access)) return bytes;
  } else {
    // The C library unmaps large blocks by itself when they are freed: what is as large is checked
    // each time.
    if (check_long(first, last, end, access)) return bytes;
    forget_pages();
  }
  for (uint64_t page = first; page <= last; ++page) {
    if (!check(page, access)) return page == first ? 0 : page * kPage - at;
  }
  return bytes;
}

}  // namespace weir::stack
