// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/openings.h"

namespace weir::stack {

constinit File* buckets[kBuckets] = {};

namespace {

File** bucket_of(const File* f) {
  return &buckets[static_cast<uint32_t>((f->inode * 0x9e3779b97f4a7c15u ^ f->device) >> 13) %
                  kBuckets];
}

// Where the list's first is named; null: it is the first of none.
File** place_of_first(const File* f) {
  for (File** at = bucket_of(f); *at != nullptr; at = &(*at)->next_list) {
    if (*at == f) return at;
  }
  return nullptr;
}

}  // namespace

void add_opening(File* f) {
  f->alike = alike_of(f);
  f->previous_alike = nullptr;
  File* const first =
      find_list(f->device, f->inode, [f](const File* other) { return other->alike == f->alike; });
  if (first == nullptr) {
    f->next_alike = nullptr;
    File** const bucket = bucket_of(f);
    f->next_list = *bucket;
    base::store(bucket, f);
    return;
  }
  f->previous_alike = first;
  f->next_alike = first->next_alike;
  if (f->next_alike != nullptr) f->next_alike->previous_alike = f;
  base::store(&first->next_alike, f);
}

void remove_opening(File* f) {
  File* const next = f->next_alike;
  if (f->previous_alike != nullptr) {
    if (f->previous_alike->next_alike == f) base::store(&f->previous_alike->next_alike, next);
    if (next != nullptr && next->previous_alike == f) next->previous_alike = f->previous_alike;
  } else if (File** const place = place_of_first(f); place != nullptr) {
    if (next != nullptr) {
      next->previous_alike = nullptr;
      next->next_list = f->next_list;
    }
    base::store(place, next != nullptr ? next : f->next_list);
  }
  f->previous_alike = f->next_alike = f->next_list = nullptr;
}

void renew_opening(File* f) {
  if (f->alike == alike_of(f)) return;
  remove_opening(f);
  add_opening(f);
}

void mend_openings() {
  for (File* first : buckets) {
    for (; first != nullptr; first = first->next_list) {
      first->previous_alike = nullptr;
      for (File* f = first; f->next_alike != nullptr; f = f->next_alike)
        f->next_alike->previous_alike = f;
    }
  }
}

}  // namespace weir::stack
