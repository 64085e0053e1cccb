// SPDX-License-Identifier: Apache-2.0
#include "layers/bufa/patterns.h"

namespace weir::layers::bufa {

const History::Request* History::find(uint64_t offset, uint64_t bytes, uint32_t older_than,
                                      uint32_t* age) const {
  for (uint32_t i = older_than; i < known(); ++i) {
    const Request& r = aged(i);
    if (r.offset == offset && r.bytes == bytes) {
      *age = i;
      return &r;
    }
  }
  return nullptr;
}

Found History::look(uint64_t offset, uint64_t bytes) const {
  for (uint32_t i = 0; i < known(); ++i) {
    if (aged(i).offset + aged(i).bytes == offset) return {Shape::kForward, 0};
  }
  for (uint32_t i = 0; i < known(); ++i) {
    const Request& later = aged(i);
    if (offset + bytes != later.offset) continue;
    for (uint32_t k = i + 1; k < known(); ++k) {
      if (later.offset + later.bytes == aged(k).offset) return {Shape::kBackward, 0};
    }
  }
  for (uint32_t i = 0; i < known(); ++i) {
    const Request& one = aged(i);
    if (one.bytes != bytes || one.offset == offset) continue;
    const auto step = static_cast<int64_t>(offset - one.offset);
    uint32_t at = 0;
    if (find(one.offset - static_cast<uint64_t>(step), bytes, i + 1, &at) == nullptr) continue;
    if (find(one.offset - 2 * static_cast<uint64_t>(step), bytes, at + 1, &at) == nullptr) continue;
    if (!dense(step, bytes)) return {Shape::kStrided, step};
    return {step > 0 ? Shape::kForward : Shape::kBackward, step};
  }
  return {Shape::kNone, 0};
}

Found History::add(uint64_t offset, uint64_t bytes) {
  const Found found = look(offset, bytes);
  ring_[count_ % kRequests] = {offset, bytes};
  // A wrap to 0 would forget all; it stays above.
  if (++count_ == 0) count_ = kRequests;
  return found;
}

}  // namespace weir::layers::bufa
