// SPDX-License-Identifier: Apache-2.0
// Bytes out of streams: blocks, lines and single characters.
#include "hook/stdio/layered_stream.h"
#include "hook/stdio/stream.h"

using namespace weir::hook;
namespace wire = weir::wire;

namespace {

// Whole items count; what is left of a broken one is lost to the caller too.
template <typename Real>
inline size_t reading_items(FILE* f, size_t size, size_t count, Real real) {
  return on_stream(Op::kFread, f, real, [=](Call& call, size_t got) {
    if (WEIR_LIKELY(got == count)) {
      call.size = clip(size * got);
    } else if (got == 0 && size != 0) {
      nothing_read(call, f, size * count);
    } else if (size != 0) {
      call.size = clip(size * got);
      call.flags |= wire::kShort;
    }
  });
}

// The line's length is that of the text: a zero byte within it hides the rest.
template <typename Real>
inline char* reading_line(FILE* f, Real real) {
  return on_stream(Op::kFgets, f, real, [=](Call& call, const char* line) {
    if (WEIR_LIKELY(line != nullptr)) call.size = strlen(line);
    else nothing_read(call, f, 0);
  });
}

template <typename Real>
inline ssize_t reading_delimited(FILE* f, Real real) {
  return on_stream(Op::kGetline, f, real, [=](Call& call, ssize_t got) {
    if (WEIR_LIKELY(got >= 0)) call.size = static_cast<uint64_t>(got);
    else nothing_read(call, f, 0);
  });
}

template <typename Real>
inline int reading_character(FILE* f, Real real) {
  return on_stream(Op::kFgetc, f, real, [=](Call& call, int got) {
    if (WEIR_LIKELY(got != EOF)) call.size = 1;
    else nothing_read(call, f, 1);
  });
}

}  // namespace

// mine: the caller needs no lock. Cookie streams and plain ones have a function each, so that
// neither pays for the other, and one byte out of a buffer needs no frame.
#define WEIR_FREAD(symbol, mine)                                                                   \
  static size_t cookie_##symbol(void* to, size_t size, size_t count, FILE* f);                     \
  static size_t plain_##symbol(void* to, size_t size, size_t count, FILE* f);                      \
  WEIR_HOOK(size_t, symbol, void* to, size_t size, size_t count, FILE* f) {                        \
    if (!is_cookie(f)) return plain_##symbol(to, size, count, f);                                  \
    if (size == 1 && count == 1 && quick_byte(f, static_cast<unsigned char*>(to), mine)) return 1; \
    return cookie_##symbol(to, size, count, f);                                                    \
  }                                                                                                \
  WEIR_COLD size_t plain_##symbol(void* to, size_t size, size_t count, FILE* f) {                  \
    return reading_items(f, size, count, [=] { return WEIR_REAL(symbol)(to, size, count, f); });   \
  }                                                                                                \
  WEIR_COLD size_t cookie_##symbol(void* to, size_t size, size_t count, FILE* f) {                 \
    return reading_items(f, size, count, [=] {                                                     \
      return read_items(to, size, count, f, mine,                                                  \
                        [=] { return WEIR_REAL(symbol)(to, size, count, f); });                    \
    });                                                                                            \
  }
WEIR_FREAD(fread, false)
WEIR_FREAD(fread_unlocked, true)

// A request that is too large for its memory is glibc's to refuse.
#define WEIR_FREAD_CHK(symbol, mine)                                                        \
  WEIR_HOOK(size_t, symbol, void* to, size_t room, size_t size, size_t count, FILE* f) {    \
    return reading_items(f, size, count, [=] {                                              \
      const auto real = [=] { return WEIR_REAL(symbol)(to, room, size, count, f); };        \
      return size != 0 && count > room / size ? real()                                      \
                                              : read_items(to, size, count, f, mine, real); \
    });                                                                                     \
  }
WEIR_FREAD_CHK(__fread_chk, false)
WEIR_FREAD_CHK(__fread_unlocked_chk, true)

#define WEIR_FGETS(symbol)                                                  \
  WEIR_HOOK(char*, symbol, char* to, int size, FILE* f) {                   \
    return reading_line(f, [=] { return WEIR_REAL(symbol)(to, size, f); }); \
  }
WEIR_FGETS(fgets)
WEIR_FGETS(fgets_unlocked)

#define WEIR_FGETS_CHK(symbol)                                                    \
  WEIR_HOOK(char*, symbol, char* to, size_t room, int size, FILE* f) {            \
    return reading_line(f, [=] { return WEIR_REAL(symbol)(to, room, size, f); }); \
  }
WEIR_FGETS_CHK(__fgets_chk)
WEIR_FGETS_CHK(__fgets_unlocked_chk)

WEIR_HOOK(char*, gets, char* to) {
  return reading_line(stdin, [=] { return WEIR_REAL(gets)(to); });
}
WEIR_HOOK(char*, __gets_chk, char* to, size_t room) {
  return reading_line(stdin, [=] { return WEIR_REAL(__gets_chk)(to, room); });
}

WEIR_HOOK(ssize_t, getline, char** line, size_t* room, FILE* f) {
  return reading_delimited(f, [=] { return WEIR_REAL(getline)(line, room, f); });
}
#define WEIR_GETDELIM(symbol)                                                                 \
  WEIR_HOOK(ssize_t, symbol, char** line, size_t* room, int delimiter, FILE* f) {             \
    return reading_delimited(f, [=] { return WEIR_REAL(symbol)(line, room, delimiter, f); }); \
  }
WEIR_GETDELIM(getdelim)
WEIR_GETDELIM(__getdelim)

#define WEIR_FGETC(symbol, mine)                                                           \
  static int cookie_##symbol(FILE* f);                                                     \
  static int plain_##symbol(FILE* f);                                                      \
  WEIR_HOOK(int, symbol, FILE* f) {                                                        \
    if (!is_cookie(f)) return plain_##symbol(f);                                           \
    unsigned char c;                                                                       \
    return quick_byte(f, &c, mine) ? c : cookie_##symbol(f);                               \
  }                                                                                        \
  WEIR_COLD int plain_##symbol(FILE* f) {                                                  \
    return reading_character(f, [=] { return WEIR_REAL(symbol)(f); });                     \
  }                                                                                        \
  WEIR_COLD int cookie_##symbol(FILE* f) {                                                 \
    return reading_character(                                                              \
        f, [=] { return read_character(f, mine, [=] { return WEIR_REAL(symbol)(f); }); }); \
  }
WEIR_FGETC(fgetc, false)
WEIR_FGETC(getc, false)
WEIR_FGETC(_IO_getc, false)
WEIR_FGETC(fgetc_unlocked, true)
WEIR_FGETC(getc_unlocked, true)

WEIR_HOOK(int, getchar) {
  return reading_character(stdin, [] { return WEIR_REAL(getchar)(); });
}
WEIR_HOOK(int, getchar_unlocked) {
  return reading_character(stdin, [] { return WEIR_REAL(getchar_unlocked)(); });
}

// A word of -1 looks like the end: the stream's marks decide.
WEIR_HOOK(int, getw, FILE* f) {
  return on_stream(Op::kFgetc, f, [=] { return WEIR_REAL(getw)(f); }, [=](Call& call, int got) {
    if (got != EOF || (f->_flags & (kEofSeen | kErrorSeen)) == 0) call.size = sizeof got;
    else nothing_read(call, f, sizeof got);
  });
}
