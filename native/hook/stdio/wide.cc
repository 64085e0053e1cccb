// SPDX-License-Identifier: Apache-2.0
// Wide characters in and out of streams. Sizes count characters, which are bytes in the file as
// long as they are ASCII: the length of any other depends on the stream's encoding, which only the
// C library knows.
#include <stdarg.h>
#include <wchar.h>

#include "hook/stdio/layered_stream.h"
#include "hook/stdio/stream.h"

using namespace weir::hook;
namespace wire = weir::wire;

namespace {

template <typename Real>
inline wint_t reading_character(FILE* f, Real real) {
  before_wide(f);
  return on_stream(Op::kFgetc, f, real, [=](Call& call, wint_t got) {
    if (WEIR_LIKELY(got != WEOF)) call.size = 1;
    else nothing_read(call, f, 1);
  });
}

template <typename Real>
inline wint_t writing_character(FILE* f, Real real) {
  before_wide(f);
  return on_stream(Op::kFputc, f, real, [](Call& call, wint_t result) {
    call.size = 1;
    set_outcome(call, result == WEOF);
  });
}

template <typename Real>
inline wchar_t* reading_line(FILE* f, Real real) {
  before_wide(f);
  return on_stream(Op::kFgets, f, real, [=](Call& call, const wchar_t* line) {
    if (WEIR_LIKELY(line != nullptr)) call.size = wcslen(line);
    else nothing_read(call, f, 0);
  });
}

template <typename Real>
inline int writing_text(FILE* f, const wchar_t* text, Real real) {
  before_wide(f);
  return on_stream(Op::kFputs, f, real, [=](Call& call, int result) {
    if (WEIR_LIKELY(result >= 0)) call.size = wcslen(text);
    else nothing_written(call, wcslen(text));
  });
}

template <typename Real>
inline int printing(FILE* f, Real real) {
  before_wide(f);
  return on_stream(Op::kFprintf, f, real, [](Call& call, int result) {
    if (WEIR_LIKELY(result >= 0)) call.size = static_cast<uint64_t>(result);
    else set_outcome(call, true);
  });
}

template <typename Real>
inline int scanning(FILE* f, Real real) {
  before_wide(f);
  return on_stream(Op::kFscanf, f, real, [=](Call& call, int result) {
    if (result == EOF) nothing_read(call, f, 0);
  });
}

}  // namespace

#define WEIR_FGETWC(symbol)                                                             \
  WEIR_HOOK(wint_t, symbol, FILE* f) {                                                  \
    return reading_character(f, [=] { return WEIR_REAL(symbol)(f); });                  \
  }
WEIR_FGETWC(fgetwc)
WEIR_FGETWC(getwc)
WEIR_FGETWC(fgetwc_unlocked)
WEIR_FGETWC(getwc_unlocked)

#define WEIR_GETWCHAR(symbol)                                                           \
  WEIR_HOOK(wint_t, symbol) {                                                           \
    return reading_character(stdin, [] { return WEIR_REAL(symbol)(); });                \
  }
WEIR_GETWCHAR(getwchar)
WEIR_GETWCHAR(getwchar_unlocked)

#define WEIR_FPUTWC(symbol)                                                             \
  WEIR_HOOK(wint_t, symbol, wchar_t c, FILE* f) {                                       \
    return writing_character(f, [=] { return WEIR_REAL(symbol)(c, f); });               \
  }
WEIR_FPUTWC(fputwc)
WEIR_FPUTWC(putwc)
WEIR_FPUTWC(fputwc_unlocked)
WEIR_FPUTWC(putwc_unlocked)

#define WEIR_PUTWCHAR(symbol)                                                           \
  WEIR_HOOK(wint_t, symbol, wchar_t c) {                                                \
    return writing_character(stdout, [=] { return WEIR_REAL(symbol)(c); });             \
  }
WEIR_PUTWCHAR(putwchar)
WEIR_PUTWCHAR(putwchar_unlocked)

#define WEIR_FGETWS(symbol)                                                             \
  WEIR_HOOK(wchar_t*, symbol, wchar_t* to, int size, FILE* f) {                         \
    return reading_line(f, [=] { return WEIR_REAL(symbol)(to, size, f); });             \
  }
WEIR_FGETWS(fgetws)
WEIR_FGETWS(fgetws_unlocked)

#define WEIR_FGETWS_CHK(symbol)                                                         \
  WEIR_HOOK(wchar_t*, symbol, wchar_t* to, size_t room, int size, FILE* f) {            \
    return reading_line(f, [=] { return WEIR_REAL(symbol)(to, room, size, f); });       \
  }
WEIR_FGETWS_CHK(__fgetws_chk)
WEIR_FGETWS_CHK(__fgetws_unlocked_chk)

#define WEIR_FPUTWS(symbol)                                                             \
  WEIR_HOOK(int, symbol, const wchar_t* text, FILE* f) {                                \
    return writing_text(f, text, [=] { return WEIR_REAL(symbol)(text, f); });           \
  }
WEIR_FPUTWS(fputws)
WEIR_FPUTWS(fputws_unlocked)

#define ON(f) [&](auto real) { return printing(f, real); }
#define FROM(f) [&](auto real) { return scanning(f, real); }

WEIR_HOOK(int, vfwprintf, FILE* f, const wchar_t* format, va_list more) {
  return printing(f, [&] { return WEIR_REAL(vfwprintf)(f, format, more); });
}
WEIR_HOOK(int, __vfwprintf_chk, FILE* f, int check, const wchar_t* format, va_list more) {
  return printing(f, [&] { return WEIR_REAL(__vfwprintf_chk)(f, check, format, more); });
}
WEIR_HOOK(int, vwprintf, const wchar_t* format, va_list more) {
  return printing(stdout, [&] { return WEIR_REAL(vwprintf)(format, more); });
}
WEIR_HOOK(int, __vwprintf_chk, int check, const wchar_t* format, va_list more) {
  return printing(stdout, [&] { return WEIR_REAL(__vwprintf_chk)(check, format, more); });
}
WEIR_VARIADIC(fwprintf, WEIR_LIST(FILE* f, const wchar_t* format), ON(f),
              WEIR_REAL(vfwprintf)(f, format, more))
WEIR_VARIADIC(__fwprintf_chk, WEIR_LIST(FILE* f, int check, const wchar_t* format), ON(f),
              WEIR_REAL(__vfwprintf_chk)(f, check, format, more))
WEIR_VARIADIC(wprintf, WEIR_LIST(const wchar_t* format), ON(stdout),
              WEIR_REAL(vwprintf)(format, more))
WEIR_VARIADIC(__wprintf_chk, WEIR_LIST(int check, const wchar_t* format), ON(stdout),
              WEIR_REAL(__vwprintf_chk)(check, format, more))

#define WEIR_WSCANF(prefix)                                                           \
  WEIR_HOOK(int, prefix##vfwscanf, FILE* f, const wchar_t* format, va_list more) {    \
    return scanning(f, [&] { return WEIR_REAL(prefix##vfwscanf)(f, format, more); }); \
  }                                                                                   \
  WEIR_HOOK(int, prefix##vwscanf, const wchar_t* format, va_list more) {              \
    return scanning(stdin, [&] { return WEIR_REAL(prefix##vwscanf)(format, more); }); \
  }                                                                                   \
  WEIR_VARIADIC(prefix##fwscanf, WEIR_LIST(FILE* f, const wchar_t* format), FROM(f),  \
                WEIR_REAL(prefix##vfwscanf)(f, format, more))                         \
  WEIR_VARIADIC(prefix##wscanf, WEIR_LIST(const wchar_t* format), FROM(stdin),        \
                WEIR_REAL(prefix##vwscanf)(format, more))
WEIR_WSCANF()
WEIR_WSCANF(__isoc99_)
WEIR_WSCANF(__isoc23_)

// Not recorded: no bytes move. But they decide what the stream's characters are.
WEIR_HOOK(int, fwide, FILE* f, int mode) {
  if (mode > 0) before_wide(f);
  return WEIR_REAL(fwide)(f, mode);
}
WEIR_HOOK(wint_t, ungetwc, wint_t c, FILE* f) {
  before_wide(f);
  return WEIR_REAL(ungetwc)(c, f);
}
