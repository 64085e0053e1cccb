// SPDX-License-Identifier: Apache-2.0
// Two kinds of indivisible update: between threads (the compiler's atomics) and against the
// thread's own signal handlers alone (one instruction without a bus lock, several times cheaper).
// Platform: x86-64; elsewhere the former serves as the latter.
#pragma once

#include <stdint.h>

//
// Threads: any, and signal handlers; words in memory that processes share too, but for own_*, whose
// word one thread alone changes. No call here waits, fails or makes a system call.
namespace weir::base {

template <typename T>
inline T load(const T* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }

// By way of volatile, which is one instruction with gcc and clang too, and which gcc addresses
// directly.
template <typename T>
inline T load_relaxed(const T* p) {
  static_assert(sizeof(T) <= sizeof(void*));
  return *static_cast<const volatile T*>(p);
}

template <typename T>
inline void store(T* p, T value) { __atomic_store_n(p, value, __ATOMIC_RELEASE); }

template <typename T>
inline void store_relaxed(T* p, T value) { __atomic_store_n(p, value, __ATOMIC_RELAXED); }

template <typename T>
inline T fetch_add(T* p, T value) { return __atomic_fetch_add(p, value, __ATOMIC_ACQ_REL); }

// In one order with all others of these two: of two threads that each announce themselves and then
// look for the other, one sees it.
template <typename T>
inline T fetch_add_all(T* p, T value) { return __atomic_fetch_add(p, value, __ATOMIC_SEQ_CST); }

template <typename T>
inline T load_all(const T* p) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }

template <typename T>
inline T exchange(T* p, T value) { return __atomic_exchange_n(p, value, __ATOMIC_ACQ_REL); }

template <typename T>
inline bool compare_exchange(T* p, T* expected, T value) {
  return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

// Returns the old value. Indivisible for signal handlers of the calling thread, not for other
// threads.
inline uint64_t own_fetch_add(uint64_t* p, uint64_t value) {
#if defined(__x86_64__)
  __asm__ volatile("xaddq %0, %1" : "+r"(value), "+m"(*p) : : "memory");
  return value;
#else
  return __atomic_fetch_add(p, value, __ATOMIC_RELAXED);
#endif
}

inline void own_add(uint64_t* p, uint64_t value) {
#if defined(__x86_64__)
  __asm__ volatile("addq %1, %0" : "+m"(*p) : "er"(value) : "memory");
#else
  __atomic_fetch_add(p, value, __ATOMIC_RELAXED);
#endif
}

}  // namespace weir::base
