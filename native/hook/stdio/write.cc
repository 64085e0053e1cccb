// SPDX-License-Identifier: Apache-2.0
// Bytes into streams: blocks, texts and single characters.
#include "hook/stdio/layered_stream.h"
#include "hook/stdio/stream.h"

using namespace weir::hook;
namespace wire = weir::wire;

namespace {

template <typename Real>
inline size_t writing_items(FILE* f, size_t size, size_t count, Real real) {
  return on_stream(Op::kFwrite, f, real, [=](Call& call, size_t done) {
    if (WEIR_LIKELY(done == count)) {
      call.size = clip(size * done);
    } else if (done == 0 && size != 0) {
      nothing_written(call, size * count);
    } else if (size != 0) {
      call.size = clip(size * done);
      call.flags |= wire::kShort;
    }
  });
}

// more: what the call adds to the text (the line's end of puts).
template <typename Real>
inline int writing_text(FILE* f, const char* text, size_t more, Real real) {
  return on_stream(Op::kFputs, f, real, [=](Call& call, int result) {
    const size_t length = strlen(text) + more;
    if (WEIR_LIKELY(result != EOF)) call.size = length;
    else nothing_written(call, length);
  });
}

template <typename Real>
inline int writing_character(FILE* f, size_t size, Real real) {
  return on_stream(Op::kFputc, f, real, [=](Call& call, int result) {
    call.size = size;
    set_outcome(call, result == EOF);
  });
}

}  // namespace

// mine: the caller needs no lock. Cookie streams have functions of their own, so that the path of
// plain ones is short.
#define WEIR_FWRITE(symbol, mine)                                                                  \
  static size_t cookie_##symbol(const void* from, size_t size, size_t count, FILE* f);             \
  WEIR_HOOK(size_t, symbol, const void* from, size_t size, size_t count, FILE* f) {                \
    if (is_cookie(f)) return cookie_##symbol(from, size, count, f);                                \
    return writing_items(f, size, count, [=] { return WEIR_REAL(symbol)(from, size, count, f); }); \
  }                                                                                                \
  WEIR_COLD size_t cookie_##symbol(const void* from, size_t size, size_t count, FILE* f) {         \
    return writing_items(f, size, count, [=] {                                                     \
      return write_items(from, size, count, f, mine,                                               \
                         [=] { return WEIR_REAL(symbol)(from, size, count, f); });                 \
    });                                                                                            \
  }
WEIR_FWRITE(fwrite, false)
WEIR_FWRITE(fwrite_unlocked, true)

#define WEIR_FPUTS(symbol)                                                       \
  WEIR_HOOK(int, symbol, const char* text, FILE* f) {                            \
    return writing_text(f, text, 0, [=] { return WEIR_REAL(symbol)(text, f); }); \
  }
WEIR_FPUTS(fputs)
WEIR_FPUTS(fputs_unlocked)

WEIR_HOOK(int, puts, const char* text) {
  return writing_text(stdout, text, 1, [=] { return WEIR_REAL(puts)(text); });
}

#define WEIR_FPUTC(symbol, mine)                                                   \
  static int cookie_##symbol(int c, FILE* f);                                      \
  WEIR_HOOK(int, symbol, int c, FILE* f) {                                         \
    if (is_cookie(f)) return cookie_##symbol(c, f);                                \
    return writing_character(f, 1, [=] { return WEIR_REAL(symbol)(c, f); });       \
  }                                                                                \
  WEIR_COLD int cookie_##symbol(int c, FILE* f) {                                  \
    return writing_character(f, 1, [=] {                                           \
      return write_character(c, f, mine, [=] { return WEIR_REAL(symbol)(c, f); }); \
    });                                                                            \
  }
WEIR_FPUTC(fputc, false)
WEIR_FPUTC(putc, false)
WEIR_FPUTC(_IO_putc, false)
WEIR_FPUTC(fputc_unlocked, true)
WEIR_FPUTC(putc_unlocked, true)

#define WEIR_PUTCHAR(symbol)                                                   \
  WEIR_HOOK(int, symbol, int c) {                                              \
    return writing_character(stdout, 1, [=] { return WEIR_REAL(symbol)(c); }); \
  }
WEIR_PUTCHAR(putchar)
WEIR_PUTCHAR(putchar_unlocked)

WEIR_HOOK(int, putw, int word, FILE* f) {
  return writing_character(f, sizeof word, [=] { return WEIR_REAL(putw)(word, f); });
}

// The message of errno is glibc's to word, in the language of the program.
WEIR_HOOK(void, perror, const char* prefix) {
  const int number = errno;
  on_stream(
      Op::kFputs, stderr,
      [=] {
        WEIR_REAL(perror)(prefix);
        return 0;
      },
      [=](Call& call, int) {
        const int after = errno;
        char room[256];
        call.size = strlen(strerror_r(number, room, sizeof room)) + 1;
        if (prefix != nullptr && *prefix != 0) call.size += strlen(prefix) + 2;
        errno = after;
      });
}
