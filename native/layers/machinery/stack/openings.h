// SPDX-License-Identifier: Apache-2.0
// The openings of this process by (device, inode), in lists of those that are alike. Who looks for
// one that is in its way looks at the first of each list, of which a file has a few, and not at the
// openings, of which it may have thousands: adding and removing one costs the same with any number
// of them. The caller keeps other threads and its own signals out
// (layers/machinery/stack/sharing.cc does).
#pragma once

#include <fcntl.h>

#include "layers/machinery/stack/file.h"

namespace weir::stack {

// What the openings of a list have in common, beside the file. Above these bits: 1 + the rule whose
// layers they share, 0 for none.
enum Alike : uint32_t {
  kActive = 1,   // holds bytes and has not left
  kWriting = 2,  // open for writing
  kTells = 4,    // has published a size
  kChanging = 8, // its layers transform
  kCommon = 16,  // File::common
  kRuleShift = 8,
};

inline bool is_open_for(const File* f, int how) {
  return (f->flags & O_ACCMODE) == how || (f->flags & O_ACCMODE) == O_RDWR;
}

// As the opening is now.
inline uint32_t alike_of(const File* f) {
  const bool active = f->holds && !f->left;
  return (active ? kActive : 0u) | (is_open_for(f, O_WRONLY) ? kWriting : 0u) |
         (f->published != 0 ? kTells : 0u) | (f->transforms ? kChanging : 0u) |
         (f->common ? kCommon : 0u) |
         (active && f->shares ? (uint32_t{f->rule} + 1) << kRuleShift : 0u);
}

void add_opening(File* f);
// Nothing happens to one that is in no list.
void remove_opening(File* f);
// After a change of what alike_of() says.
void renew_opening(File* f);

// The first of each list of a bucket; first->next_list leads on.
inline constexpr uint32_t kBuckets = 4096;
extern WEIR_OWN File* buckets[kBuckets];
inline File* first_list(uint64_t device, uint64_t inode) {
  return buckets[static_cast<uint32_t>((inode * 0x9e3779b97f4a7c15u ^ device) >> 13) % kBuckets];
}

// The first of a list of the file of which wanted(first) is true; null: none.
template <typename Wanted>
File* find_list(uint64_t device, uint64_t inode, Wanted wanted) {
  for (File* first = first_list(device, inode); first != nullptr; first = first->next_list) {
    if (first->inode == inode && first->device == device && wanted(first)) return first;
  }
  return nullptr;
}

// each(opening) of all, which may not change lists.
template <typename Each>
void for_each_opening(Each each) {
  for (File* first : buckets) {
    for (; first != nullptr; first = first->next_list) {
      for (File* f = first; f != nullptr; f = f->next_alike) each(f);
    }
  }
}

// In a forked child, which may have come into being while a thread of the parent changed a list:
// its forward links are sound then.
void mend_openings();

}  // namespace weir::stack
