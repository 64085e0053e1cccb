// SPDX-License-Identifier: Apache-2.0
#include "hook/stdio/layered_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hook/real.h"
#include "base/syscall.h"
#include "layers/machinery/stack/busy.h"
#include "layers/machinery/stack/cancel.h"
#include "layers/machinery/stack/posix.h"

WEIR_DECLARE(FILE*, fdopen, int fd, const char* mode);
WEIR_DECLARE(int, fclose, FILE* f);
WEIR_DECLARE(int, fflush, FILE* f);
WEIR_DECLARE(int, setvbuf, FILE* f, char* buffer, int mode, size_t size);
WEIR_DECLARE(size_t, fread_unlocked, void* to, size_t size, size_t count, FILE* f);

namespace weir::hook {

// A stream's memory besides glibc's own: its buffer, and what it needs should it become wide.
struct LayeredStream {
  const void* plain_functions;  // of a stream on a file
  FILE* stream;
  uint32_t next_free;
  alignas(64) char wide[1024];
  alignas(4096) char buffer[BUFSIZ];
};

namespace {

constexpr uint32_t kStreams = 4096;  // at once; the files of more are left to the kernel
constexpr size_t kLargestWide = sizeof(LayeredStream::wide);

// FILE::_flags and _flags2.
constexpr int kBufferGiven = 1, kNoReads = 4, kNoWrites = 8, kEof = 0x10, kError = 0x20,
              kBackup = 0x100, kAppending = 0x1000;
constexpr int kClosedOnExec = 64;
constexpr int kNotCancelled = 2;           // asked for by the program (fopen, mode c)
constexpr int kKept2 = kNotCancelled | kClosedOnExec;

constinit uint32_t used = 0;               // slots that were ever in use
constinit uint32_t first_free = 0;         // number + 1
WEIR_BUSY(busy);
constinit bool unfit = false;              // a C library whose streams are not as expected

using Busy = stack::BusyWith<&busy>;

LayeredStream* take_slot() {
  const Busy hold;
  if (stream_slots == kNoSlots) {  // address space; only the pages of slots in use become memory
    static_assert(kStreams * sizeof(LayeredStream) <= kSlotsBytes);
    const long at =
        base::map(kSlotsBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    if (base::failed(at)) return nullptr;
    begin_streams();
    stream_slots = static_cast<uintptr_t>(at);
  }
  auto* const slots = reinterpret_cast<LayeredStream*>(stream_slots);
  if (first_free != 0) {
    LayeredStream* s = &slots[first_free - 1];
    first_free = s->next_free;
    return s;
  }
  return used < kStreams ? &slots[used++] : nullptr;
}

void give_back(LayeredStream* s) {
  const Busy hold;
  s->stream = nullptr;
  s->next_free = first_free;
  first_free = static_cast<uint32_t>(s - reinterpret_cast<LayeredStream*>(stream_slots)) + 1;
}

ssize_t with_errno(long result) {
  if (!base::failed(result)) return result;
  errno = static_cast<int>(-result);
  return -1;
}

FILE* stream_of(void* slot) { return static_cast<LayeredStream*>(slot)->stream; }

// glibc's functions that come here give up the stream's lock when they are unwound.
void stream_cancellation_point(const FILE* f) {
  if ((f->_flags2 & kNotCancelled) == 0) stack::cancellation_point();
}

// What glibc's own functions of these names do, by way of the file's stack as long as it has one.
ssize_t read_file(void* slot, char* to, size_t n) {
  stream_cancellation_point(stream_of(slot));
  const int fd = stream_of(slot)->_fileno;
  stack::File* const file = stack::file_at(fd);
  return file != nullptr ? stack::read(file, fd, to, n) : with_errno(base::read_fd(fd, to, n));
}

ssize_t write_file(void* slot, const char* from, size_t n) {
  FILE* const f = stream_of(slot);
  const int fd = f->_fileno;
  stream_cancellation_point(f);
  size_t done = 0;
  while (done < n) {
    stack::File* const file = stack::file_at(fd);
    const ssize_t written = file != nullptr ? stack::write(file, fd, from + done, n - done)
                                            : with_errno(base::write_fd(fd, from + done, n - done));
    if (written < 0) break;
    done += static_cast<size_t>(written);
  }
  if (f->_offset >= 0)
    f->_offset +=
        static_cast<off64_t>(done);  // glibc does it for files, and forgets cookie streams
  return static_cast<ssize_t>(done);
}

int seek_file(void* slot, off64_t* offset, int whence) {
  const int fd = stream_of(slot)->_fileno;
  stack::File* const file = stack::file_at(fd);
  const int64_t at = file != nullptr
                         ? stack::lseek(file, fd, *offset, whence)
                         : with_errno(base::system_call(SYS_lseek, fd, *offset, whence));
  if (at < 0) return -1;
  *offset = at;
  return 0;
}

int close_number(int fd) {
  return stack::closing(fd, [fd] { return static_cast<int>(with_errno(base::close_fd(fd))); });
}

int close_file(void* slot) { return close_number(stream_of(slot)->_fileno); }

// Also of a stream that became a plain one; null: it never was weir's.
LayeredStream* slot_of(const FILE* f) {
  LayeredStream* const s = cookie_of(f);
  return is_slot(s) ? s : nullptr;
}

constexpr cookie_io_functions_t kFunctions = {read_file, write_file, seek_file, close_file};

const char* mode_of(const FILE* f) {
  if ((f->_flags & kAppending) != 0) return (f->_flags & kNoReads) != 0 ? "a" : "a+";
  if ((f->_flags & kNoReads) != 0) return "w";
  return (f->_flags & kNoWrites) != 0 ? "r" : "r+";
}

// As glibc chooses the size of a file's buffer.
size_t buffer_bytes(int fd) {
  const stack::File* file = stack::file_at(fd);
  const uint64_t block = file != nullptr ? file->block_bytes : 0;
  return block > 0 && block < BUFSIZ ? block : BUFSIZ;
}

// The stream that glibc made goes, its descriptor stays.
void drop_plain(FILE* plain) {
  plain->_fileno = -1;
  WEIR_REAL(fclose)(plain);
}

bool only_appends(const FILE* f) {
  return (f->_flags & (kAppending | kNoReads)) == (kAppending | kNoReads);
}

// A stream that only appends stands at the end of the file from the beginning: that which programs
// see, not where glibc has found it.
void go_to_end(const FILE* f) {
  if (!only_appends(f)) return;
  const int before = errno;
  if (stack::File* file = stack::file_at(f->_fileno); file != nullptr)
    stack::lseek(file, f->_fileno, 0, SEEK_END);
  else if (stack::known_at(f->_fileno) != nullptr)
    base::system_call(SYS_lseek, f->_fileno, 0, SEEK_END);
  errno = before;
}

// Copies what glibc has prepared of a stream for wide characters; behind it nothing of the stream's
// is read.
bool copy_wide(LayeredStream* s, const FILE* plain) {
  const auto begin = reinterpret_cast<uintptr_t>(plain),
             wide = reinterpret_cast<uintptr_t>(plain->_wide_data);
  const size_t whole = malloc_usable_size(const_cast<FILE*>(plain));
  if (wide < begin || wide >= begin + whole) return false;
  const size_t n = begin + whole - wide;
  memset(s->wide, 0, sizeof s->wide);
  memcpy(s->wide, plain->_wide_data, n < kLargestWide ? n : kLargestWide);
  return true;
}

FILE* make_stream(LayeredStream* s, const FILE* plain) {
  if (!copy_wide(s, plain)) return nullptr;
  FILE* const f = fopencookie(s, mode_of(plain), kFunctions);
  if (f == nullptr) return nullptr;
  f->_fileno = plain->_fileno;
  if (fileno(f) != plain->_fileno || cookie_of(f) != s || functions_of(f) == functions_of(plain)) {
    unfit = true;
    drop_plain(f);
    return nullptr;
  }
  s->stream = f;
  s->plain_functions = functions_of(plain);
  f->_wide_data = reinterpret_cast<_IO_wide_data*>(s->wide);
  f->_mode = 0;
  f->_flags2 |= plain->_flags2 & kKept2;
  WEIR_REAL(setvbuf)(f, s->buffer, _IOFBF, buffer_bytes(f->_fileno));
  base::store(&cookie_functions, functions_of(f));
  weigh_streams();
  return f;
}

}  // namespace

constinit const void* cookie_functions = nullptr;
constinit uintptr_t stream_slots = kNoSlots;

int flags_of_mode(const char* mode) {
  int access, more;
  switch (*mode) {
    case 'r': access = O_RDONLY, more = 0; break;
    case 'w': access = O_WRONLY, more = O_CREAT | O_TRUNC; break;
    case 'a': access = O_WRONLY, more = O_CREAT | O_APPEND; break;
    default: return -1;
  }
  for (int i = 1; i < 7 && mode[i] != 0; ++i) {
    switch (mode[i]) {
      case '+': access = O_RDWR; break;
      case 'x': more |= O_EXCL; break;
      case 'e': more |= O_CLOEXEC; break;
    }
  }
  return access | more;
}

FILE* with_layers(FILE* plain, bool at_end) {
  const int fd = plain->_fileno;
  if (stack::file_at(fd) == nullptr) {
    if (at_end) go_to_end(plain);  // fdopen does not go there where O_APPEND is set already
    return plain;
  }
  const int before = errno;
  LayeredStream* s = nullptr;
  FILE* f = nullptr;
  // Numbers below 3 are those of the standard streams, which write to them by themselves.
  if (fd > STDERR_FILENO && plain->_mode == 0 && !unfit) s = take_slot();
  if (s != nullptr) f = make_stream(s, plain);
  if (f != nullptr) {
    drop_plain(plain);
    if (at_end) go_to_end(f);
  } else {
    if (s != nullptr) give_back(s);
    stack::leave(fd, stack::Reason::kUnsupported);
    f = plain;
    if (at_end && only_appends(f)) base::system_call(SYS_lseek, fd, 0, SEEK_END);
  }
  errno = before;
  return f;
}

FILE* open_by_layers(stack::Ticket& t, const char* path, const char* mode) {
  const int fd = stack::finish_open(t, stack::open_ordered(t, 0666), path);
  if (fd < 0) return nullptr;
  const long flags = base::system_call(SYS_fcntl, fd, F_GETFL);
  FILE* const plain = WEIR_REAL(fdopen)(fd, mode);
  base::system_call(SYS_fcntl, fd, F_SETFL,
                    flags);  // fdopen sets O_APPEND where a layer does without it
  if (plain != nullptr) {
    FILE* const f = with_layers(plain, true);
    if ((flags_of_mode(mode) & O_CLOEXEC) != 0)
      f->_flags2 |= kClosedOnExec;  // fdopen does not; freopen asks
    return f;
  }
  const int before = errno;
  close_number(fd);
  errno = before;
  return nullptr;
}

namespace {

// The stream is a plain one on its new file by now; its slot is still its own.
void serve_again(LayeredStream* s, FILE* f) {
  if (stack::file_at(f->_fileno) == nullptr) return go_to_end(f);
  if (f->_mode != 0) {
    stack::leave(f->_fileno, stack::Reason::kUnsupported);
    return;
  }
  *reinterpret_cast<const void**>(f + 1) = cookie_functions;
  WEIR_REAL(setvbuf)(f, s->buffer, _IOFBF, buffer_bytes(f->_fileno));
  go_to_end(f);
}

// The layers open; the stream turns to the file by way of one that is always there.
FILE* turn_to(int fd, const char* mode, FILE* old, FILE* (*real)(const char*, const char*, FILE*)) {
  const int error = errno;
  const int flags = flags_of_mode(mode);
  const char* access = (flags & O_ACCMODE) == O_RDWR     ? "r+"
                       : (flags & O_ACCMODE) == O_RDONLY ? "r"
                                                         : "w";
  if ((flags & O_APPEND) != 0) access = (flags & O_ACCMODE) == O_RDWR ? "a+" : "a";
  FILE* const f = real(fd >= 0 ? "/dev/null" : "", access, old);
  if (fd >= 0 && f != nullptr) {
    base::system_call(SYS_dup3, fd, f->_fileno,
                      (flags & O_CLOEXEC) | ((f->_flags2 & kClosedOnExec) != 0 ? O_CLOEXEC : 0));
    stack::copied(fd, f->_fileno);
  }
  if (fd >= 0) close_number(fd);
  errno = error;
  return f;
}

}  // namespace

FILE* reopen_layered(const char* path, const char* mode, FILE* old,
                     FILE* (*real)(const char*, const char*, FILE*)) {
  LayeredStream* const s = is_layered(old) ? slot_of(old) : nullptr;
  const int flags = path != nullptr ? flags_of_mode(mode) : -1;
  if (stack::known_at(old->_fileno) != nullptr) {
    WEIR_REAL(fflush)(old);
    stack::before_close(old->_fileno);
  }
  if (flags < 0) return real(path, mode, old);
  stack::Ticket t;
  bool ordered = stack::begin_open(t, AT_FDCWD, path, flags);
  if (ordered && s == nullptr && (t.parked || !stack::has_layer_with_names(t.file))) {
    // A stream of glibc's own: no layers, but others are notified of it.
    if (t.parked) close_number(t.file->descriptor);
    else stack::finish_open(t, -1, path);
    t = stack::unordered(path, flags);
    ordered = false;
  }
  FILE* f;
  if (ordered) {
    f = turn_to(stack::finish_open(t, stack::open_ordered(t, 0666), path), mode, old, real);
  } else {
    f = opening_by_name(AT_FDCWD, path, flags,
                        [&](int, const char* there) { return real(there, mode, old); });
    if (f != nullptr && !t.skip) stack::after_opening(f->_fileno, path, flags);
    stack::finish_open(t, f != nullptr ? f->_fileno : -1, path);
  }
  if (f == nullptr) return nullptr;
  if (s != nullptr) {
    serve_again(s, f);
  } else {
    go_to_end(f);
    stack::leave(f->_fileno,
                 stack::Reason::kUnsupported);  // which puts it where the layers have it
  }
  return f;
}

int close_stream(FILE* f, int (*real)(FILE*)) {
  LayeredStream* const s = slot_of(f);
  const int fd = f->_fileno;
  int error = 0;
  if (!is_layered(f) && fd >= 0 && stack::known_at(fd) != nullptr) {
    const int before = errno;
    // What it holds comes first; its bytes are gone then, error or not.
    const int flushed = (f->_flags & kPutting) != 0 && WEIR_REAL(fflush)(f) != 0 ? errno : 0;
    errno = before;
    const int deferred = stack::before_close(fd);
    error = flushed != 0 ? flushed : deferred;
  }
  const int result = real(f);
  const int after = errno;
  if (s != nullptr) give_back(s);
  errno = result != 0 || error == 0 ? after : error;
  return error != 0 ? EOF : result;
}

namespace {

// glibc makes the buffer of wide characters a quarter as large where the stream's own was given to
// it, and loses its place at fflush then: this one becomes glibc's to make.
void give_buffer_back(FILE* f, const LayeredStream* s) {
  if (f->_IO_buf_base != s->buffer || (f->_flags & kPutting) != 0) return;
  const long ahead = f->_IO_read_end - f->_IO_read_ptr;
  if (ahead > 0) {
    const long at = base::system_call(SYS_lseek, f->_fileno, -ahead, SEEK_CUR);
    if (base::failed(at)) return;
    f->_offset = at;
  }
  f->_IO_read_base = f->_IO_read_ptr = f->_IO_read_end = nullptr;
  f->_IO_write_base = f->_IO_write_ptr = f->_IO_write_end = nullptr;
  f->_IO_buf_base = f->_IO_buf_end = nullptr;
  f->_flags &= ~kBufferGiven;
}

}  // namespace

void make_wide(FILE* f) {
  if (f->_mode != 0) return;  // it is one of bytes already, and says so
  if (!stack::leave(f->_fileno, stack::Reason::kUnsupported)) {
    f->_mode = -1;  // what lies in the file is not what the program wrote: no characters
    return;
  }
  give_buffer_back(f, slot_of(f));
  *reinterpret_cast<const void**>(f + 1) = slot_of(f)->plain_functions;
}

size_t read_layered(FILE* f, void* to, size_t n) {
  char* at = static_cast<char*>(to);
  size_t wanted = n;
  stream_cancellation_point(f);
  flockfile(f);
  const int flags2 = f->_flags2;
  f->_flags2 |= kNotCancelled;  // nobody would give up this lock
  while (wanted > 0) {
    const size_t have = static_cast<size_t>(f->_IO_read_end - f->_IO_read_ptr);
    const size_t now = have < wanted ? have : wanted;
    if (now > 0) memcpy(at, f->_IO_read_ptr, now);
    f->_IO_read_ptr += now, at += now, wanted -= now;
    if (wanted == 0) break;
    const size_t room = static_cast<size_t>(f->_IO_buf_end - f->_IO_buf_base);
    const bool holds_written = (f->_flags & kPutting) != 0 && f->_IO_write_ptr > f->_IO_write_base;
    if (room == 0 || wanted < room || holds_written || (f->_flags & kBackup) != 0) {
      wanted -= WEIR_REAL(fread_unlocked)(at, 1, wanted, f);
      break;
    }
    // The buffer is empty and would only be passed through.
    f->_mode = -1;
    f->_IO_read_base = f->_IO_read_ptr = f->_IO_read_end = f->_IO_buf_base;
    f->_IO_write_base = f->_IO_write_ptr = f->_IO_write_end = f->_IO_buf_base;
    f->_offset = -1;
    const ssize_t got = read_file(slot_of(f), at, room >= 128 ? wanted - wanted % room : wanted);
    if (got <= 0) {
      f->_flags |= got == 0 ? kEof : kError;
      break;
    }
    at += got, wanted -= static_cast<size_t>(got);
  }
  f->_flags2 = flags2;
  funlockfile(f);
  return n - wanted;
}

}  // namespace weir::hook
