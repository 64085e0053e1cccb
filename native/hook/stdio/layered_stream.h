// SPDX-License-Identifier: Apache-2.0
// Streams of the C library over files under layers. glibc's streams read and write by system calls
// of their own, which no hook sees; so such a file gets a stream whose reads and writes are
// functions (fopencookie), which hand them to the file's stack, and which has the file's descriptor
// all the same: C++ streams and fileno() want one. It is buffered as a plain stream would be, so
// that the same bytes have been written at any moment. Small requests are served from its buffer
// right here.
//
// Streams with wide characters, and standard streams reopened on another file, stay glibc's own:
// their files are left to the kernel.
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "hook/by_name.h"
#include "trace/process.h"
#include "layers/machinery/stack/table.h"

namespace weir::hook {

// The functions of glibc that serve streams made by fopencookie; null as long as weir has made
// none.
extern WEIR_OWN const void* cookie_functions;
// No other thread of the program can be at a stream (stdio/threads.cc): none was made by a call
// that weir sees, and either none at all or some of weir's own, which touch no streams.
enum ThreadsSeen : uint32_t { kNoThreads, kOwnThreads, kOtherThreads };
extern WEIR_OWN uint32_t threads_seen;
extern WEIR_OWN const char* single_threaded;
WEIR_INLINE bool alone() {
  const uint32_t seen = base::load_relaxed(&threads_seen);
  return WEIR_LIKELY(seen == kOwnThreads) ||
         (seen == kNoThreads && base::load_relaxed(single_threaded) != 0);
}

void begin_streams();  // before the first layered one

WEIR_INLINE const void* functions_of(const FILE* f) {
  return *reinterpret_cast<const void* const*>(f + 1);
}

// A stream's memory besides glibc's own; its address stands right behind the functions, as the
// first member of glibc's struct _IO_cookie_file.
struct LayeredStream;
WEIR_INLINE LayeredStream* cookie_of(const FILE* f) {
  return reinterpret_cast<LayeredStream* const*>(f + 1)[1];
}
inline constexpr uintptr_t kSlotsBytes = 50u << 20,
                           kNoSlots = uintptr_t{1} << 62;  // where nothing can be
extern WEIR_OWN uintptr_t stream_slots;  // where they begin
WEIR_INLINE bool is_slot(const LayeredStream* s) {
  return reinterpret_cast<uintptr_t>(s) - base::load_relaxed(&stream_slots) < kSlotsBytes;
}

// Served by the file's stack. A cookie stream of the program's own has a cookie of its own.
WEIR_INLINE bool is_layered(const FILE* f) {
  return WEIR_UNLIKELY(functions_of(f) == base::load_relaxed(&cookie_functions)) &&
         is_slot(cookie_of(f));
}

// The flags of open(2) that a stream's mode stands for, as glibc reads it; -1: it is none.
int flags_of_mode(const char* mode);

// The stream that the program gets for the one that glibc made. at_end: glibc has put one that
// appends at the end of the file.
FILE* with_layers(FILE* plain, bool at_end);
// Through layers that take part in the open.
FILE* open_by_layers(stack::Ticket& t, const char* path, const char* mode);
// freopen of a stream that is layered or on a file that is known.
FILE* reopen_layered(const char* path, const char* mode, FILE* old,
                     FILE* (*real)(const char*, const char*, FILE*));
// fclose. real: glibc's.
int close_stream(FILE* f, int (*real)(FILE*));
// The stream's next character is to be a wide one: it becomes a plain stream.
WEIR_COLD void make_wide(FILE* f);
inline void before_wide(FILE* f) {
  if (WEIR_UNLIKELY(stack::active()) && is_layered(f)) make_wide(f);
}

template <typename Real>
FILE* opening_layers(const char* path, const char* mode, Real real) {
  if (!stack::active()) return real(AT_FDCWD, path);
  const int flags = flags_of_mode(mode);
  if (flags < 0) return real(AT_FDCWD, path);
  return opening_target_too(AT_FDCWD, path, flags, [&](int, const char* there) -> FILE* {
    stack::Ticket t;
    if (stack::begin_open(t, AT_FDCWD, there, flags)) return open_by_layers(t, there, mode);
    FILE* const f = opening_by_name(AT_FDCWD, there, flags, real);
    if (f != nullptr && !t.skip) stack::after_opening(f->_fileno, there, flags);
    stack::finish_open(t, f != nullptr ? f->_fileno : -1, there);
    return f != nullptr ? with_layers(f, true) : nullptr;
  });
}

// Bytes out of a layered stream, as glibc's fread does it on a file: what the buffer does not have
// goes straight to the caller's memory.
size_t read_layered(FILE* f, void* to, size_t n);

// Small requests that the buffer can serve. `mine`: no lock is needed (the _unlocked forms).
WEIR_INLINE bool take_from_buffer(FILE* f, void* to, size_t n, bool mine) {
  if (WEIR_UNLIKELY(!mine && !alone())) return false;
  const char* const at = f->_IO_read_ptr;
  if (WEIR_UNLIKELY(static_cast<size_t>(f->_IO_read_end - at) < n)) return false;
  if (n == 1) *static_cast<char*>(to) = *at;
  else memcpy(to, at, n);
  f->_IO_read_ptr += n;
  return true;
}

inline constexpr int kPutting = 0x800;       // FILE::_flags, as glibc's libio.h has them
inline constexpr int kNotWholeBuffer = 0x202;  // by line, or without a buffer

WEIR_INLINE bool put_into_buffer(FILE* f, const void* from, size_t n, bool mine) {
  if (WEIR_UNLIKELY(!mine && !alone())) return false;
  if (WEIR_UNLIKELY((f->_flags & (kPutting | kNotWholeBuffer)) != kPutting)) return false;
  const auto room = f->_IO_write_end - f->_IO_write_ptr;  // negative after setvbuf, where a stream
                                                          // buffered by line holds a part of one
  if (WEIR_UNLIKELY(room <= 0 || static_cast<size_t>(room) < n)) return false;
  if (n == 1) *f->_IO_write_ptr = *static_cast<const char*>(from);
  else memcpy(f->_IO_write_ptr, from, n);
  f->_IO_write_ptr += n;
  return true;
}

// Made by fopencookie, by weir or by the program: the first question of a hook, since a plain
// stream needs no other.
WEIR_INLINE bool is_cookie(const FILE* f) {
  return WEIR_UNLIKELY(functions_of(f) == base::load_relaxed(&cookie_functions));
}

// Whether calls on cookie streams may take straight from the buffer, ahead of everything else.
enum Quick : uint32_t {
  kQuiet = 1,     // there is no trace, and no child that would take one up
  kUnshared = 2,  // that, and alone() without a question to libc
};
extern WEIR_OWN uint32_t quick_streams;  // bits of Quick; 0 before the first layered stream
void weigh_streams();                    // sets them

WEIR_INLINE bool is_quick(bool mine) {
  const uint32_t quick = base::load_relaxed(&quick_streams);
  if (WEIR_LIKELY((quick & (mine ? kQuiet : kUnshared)) != 0)) return true;
  return quick != 0 && alone();
}

// One byte of a cookie stream by a few instructions that need no frame. glibc would take it just so
// from the program's own, too.
WEIR_INLINE bool quick_byte(FILE* f, unsigned char* to, bool mine) {
  if (WEIR_UNLIKELY(!is_quick(mine)) || f->_IO_read_ptr == f->_IO_read_end) return false;
  *to = static_cast<unsigned char>(*f->_IO_read_ptr++);
  return true;
}

template <typename Real>
WEIR_INLINE size_t read_items(void* to, size_t size, size_t count, FILE* f, bool mine, Real real) {
  if (!is_layered(f)) return real();
  size_t n;
  if (WEIR_UNLIKELY(__builtin_mul_overflow(size, count, &n)) || n == 0) return real();
  if (WEIR_LIKELY(take_from_buffer(f, to, n, mine))) return count;
  return read_layered(f, to, n) / size;
}

template <typename Real>
WEIR_INLINE size_t write_items(const void* from, size_t size, size_t count, FILE* f, bool mine,
                               Real real) {
  if (!is_layered(f)) return real();
  size_t n;
  if (WEIR_UNLIKELY(__builtin_mul_overflow(size, count, &n)) || n == 0) return real();
  return put_into_buffer(f, from, n, mine) ? count : real();
}

template <typename Real>
WEIR_INLINE int read_character(FILE* f, bool mine, Real real) {
  unsigned char c;
  return is_layered(f) && take_from_buffer(f, &c, 1, mine) ? c : real();
}

template <typename Real>
WEIR_INLINE int write_character(int c, FILE* f, bool mine, Real real) {
  const auto byte = static_cast<unsigned char>(c);
  return is_layered(f) && put_into_buffer(f, &byte, 1, mine) ? byte : real();
}

}  // namespace weir::hook
