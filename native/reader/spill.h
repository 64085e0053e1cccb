// SPDX-License-Identifier: Apache-2.0
// Vectors of the library that grow with the records of a run: their memory is that of large arrays
// (weir_spill.h).
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#include "reader/weir_spill.h"

namespace weir::reader {

template <class T>
struct SpillAllocator {
  using value_type = T;
  SpillAllocator() = default;
  template <class U>
  SpillAllocator(const SpillAllocator<U>&) {}  // NOLINT: allocators of all types are one

  T* allocate(size_t count) {
    void* const made = weir_spill_get_handler(nullptr)->allocate(nullptr, count * sizeof(T));
    if (made == nullptr) throw std::bad_alloc();
    return static_cast<T*>(made);
  }
  void deallocate(T* array, size_t count) {
    weir_spill_get_handler(nullptr)->release(nullptr, array, count * sizeof(T));
  }
  bool operator==(const SpillAllocator&) const { return true; }
};

template <class T>
using SpillVector = std::vector<T, SpillAllocator<T>>;

}  // namespace weir::reader
