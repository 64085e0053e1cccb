// SPDX-License-Identifier: Apache-2.0
// Streams of wide characters: stdio/wide.cc.
#include "seen.h"

extern wchar_t *__fgetws_chk(wchar_t *, size_t, int, FILE *),
    *__fgetws_unlocked_chk(wchar_t *, size_t, int, FILE *);
extern int __vfwprintf_chk(FILE *, int, const wchar_t *, va_list),
    __vwprintf_chk(int, const wchar_t *, va_list);
extern int __fwprintf_chk(FILE *, int, const wchar_t *, ...),
    __wprintf_chk(int, const wchar_t *, ...);
extern int __isoc99_fwscanf(FILE *, const wchar_t *, ...),
    __isoc99_vfwscanf(FILE *, const wchar_t *, va_list);
extern int __isoc99_wscanf(const wchar_t *, ...), __isoc99_vwscanf(const wchar_t *, va_list);
extern int __isoc23_fwscanf(FILE *, const wchar_t *, ...),
    __isoc23_vfwscanf(FILE *, const wchar_t *, va_list);
extern int __isoc23_wscanf(const wchar_t *, ...), __isoc23_vwscanf(const wchar_t *, va_list);

static wchar_t text[64];

#define CHARACTERS(symbol)                                                      \
  SEEN(symbol, "fopen @0; fgetc 1; fgetc 1; fseek; fgetc short; fclose") {         \
    FILE *f = reader(file);                                                     \
    tell(CALL(symbol)(f));                                                      \
    tell(CALL(symbol)(f));                                                      \
    fseek(f, 0, SEEK_END);                                                      \
    tell(CALL(symbol)(f));                                                      \
    fclose(f);                                                                  \
  }
CHARACTERS(fgetwc)
CHARACTERS(getwc)
CHARACTERS(fgetwc_unlocked)
CHARACTERS(getwc_unlocked)
#define CHARACTER_OF_INPUT(symbol)              \
  SEEN(symbol, "freopen @0; fgetc 1; fgetc 1") {   \
    freopen(file, "r", stdin);                  \
    tell(CALL(symbol)());                       \
    tell(CALL(symbol)());                       \
  }
CHARACTER_OF_INPUT(getwchar)
CHARACTER_OF_INPUT(getwchar_unlocked)

#define PUTTING(symbol)                                 \
  SEEN(symbol, "fopen @0; fputc 1; fputc 1; fclose") {     \
    FILE *f = writer(file);                             \
    tell(CALL(symbol)(L'a', f));                        \
    tell(CALL(symbol)(L'b', f));                        \
    fclose(f);                                          \
  }
PUTTING(fputwc)
PUTTING(putwc)
PUTTING(fputwc_unlocked)
PUTTING(putwc_unlocked)
ALSO(fputwc, refused, "fopen @0; fputc 1 error=EBADF; fclose") {
  FILE *f = reader(file);
  tell((int)CALL(fputwc)(L'a', f));
  fclose(f);
}
#define PUTTING_OUT(symbol)                             \
  SEEN(symbol, "freopen @0; fputc 1; fflush") {            \
    freopen(file, "w", stdout);                         \
    tell(CALL(symbol)(L'a'));                           \
    fflush(stdout);                                     \
  }
PUTTING_OUT(putwchar)
PUTTING_OUT(putwchar_unlocked)

#define LINES(symbol, ...)                                                      \
  SEEN(symbol, "fopen @0; fgets 11; fgets 4; fgets 5; fgets 5; fgets short; fclose") { \
    FILE *f = reader(file);                                                     \
    for (int i = 0; i < 5; ++i) {                                               \
      wchar_t *got = CALL(symbol)(text, __VA_ARGS__ i != 1 ? 20 : 5, f);        \
      say("  %ls", got != NULL ? got : L"null");                                \
    }                                                                           \
    fclose(f);                                                                  \
  }
LINES(fgetws)
LINES(fgetws_unlocked)
#define ROOM sizeof text / sizeof text[0],
LINES(__fgetws_chk, ROOM)
LINES(__fgetws_unlocked_chk, ROOM)

#define TEXTS(symbol)                                   \
  SEEN(symbol, "fopen @0; fputs 5; fputs; fclose") {       \
    FILE *f = writer(file);                             \
    tell(CALL(symbol)(L"hello", f));                    \
    tell(CALL(symbol)(L"", f));                         \
    fclose(f);                                          \
  }
TEXTS(fputws)
TEXTS(fputws_unlocked)

#define LISTED(symbol, signature, ...)                  \
  static int list_##symbol signature {                  \
    va_list more;                                       \
    va_start(more, format);                             \
    const int n = CALL(symbol)(__VA_ARGS__, more);      \
    va_end(more);                                       \
    return n;                                           \
  }
#define PRINTING(symbol, call)                                  \
  SEEN(symbol, "fopen @0; fprintf 12; fclose") {                   \
    FILE *f = writer(file);                                     \
    tell(call(f, L"%s %d %.2f\n", "abc", 42, 1.25));            \
    fclose(f);                                                  \
  }
#define PRINTING_OUT(symbol, call)                              \
  SEEN(symbol, "freopen @0; fprintf 12; fflush") {                 \
    freopen(file, "w", stdout);                                 \
    tell(call(L"%s %d %.2f\n", "abc", 42, 1.25));               \
    fflush(stdout);                                             \
  }
#define CHECKED_FPRINTF(f, ...) CALL(__fwprintf_chk)(f, 1, __VA_ARGS__)
#define CHECKED_PRINTF(...) CALL(__wprintf_chk)(1, __VA_ARGS__)
LISTED(vfwprintf, (FILE *f, const wchar_t *format, ...), f, format)
LISTED(__vfwprintf_chk, (FILE *f, const wchar_t *format, ...), f, 1, format)
LISTED(vwprintf, (const wchar_t *format, ...), format)
LISTED(__vwprintf_chk, (const wchar_t *format, ...), 1, format)
PRINTING(fwprintf, CALL(fwprintf))
PRINTING(vfwprintf, list_vfwprintf)
PRINTING(__fwprintf_chk, CHECKED_FPRINTF)
PRINTING(__vfwprintf_chk, list___vfwprintf_chk)
PRINTING_OUT(wprintf, CALL(wprintf))
PRINTING_OUT(vwprintf, list_vwprintf)
PRINTING_OUT(__wprintf_chk, CHECKED_PRINTF)
PRINTING_OUT(__vwprintf_chk, list___vwprintf_chk)

#define SCANNING(symbol, call)                                  \
  SEEN(symbol, "fopen @0; fscanf; fscanf; fclose") {               \
    char a[16] = "", b[16] = "";                                \
    int n = 0;                                                  \
    FILE *f = reader(file);                                     \
    tell(call(f, L"%15s %15s", a, b));                          \
    tell(call(f, L"%d", &n));                                   \
    say("  %s %s %d", a, b, n);                                 \
    fclose(f);                                                  \
  }
#define SCANNING_INPUT(symbol, call)                            \
  SEEN(symbol, "freopen @0; fscanf; fscanf") {                     \
    char a[16] = "", b[16] = "";                                \
    int n = 0;                                                  \
    freopen(file, "r", stdin);                                  \
    tell(call(L"%15s %15s", a, b));                             \
    tell(call(L"%d", &n));                                      \
    say("  %s %s %d", a, b, n);                                 \
  }
#define SCANNED(prefix)                                                                 \
  LISTED(prefix##vfwscanf, (FILE *f, const wchar_t *format, ...), f, format)            \
  LISTED(prefix##vwscanf, (const wchar_t *format, ...), format)                         \
  SCANNING(prefix##fwscanf, CALL(prefix##fwscanf))                                      \
  SCANNING(prefix##vfwscanf, list_##prefix##vfwscanf)                                   \
  SCANNING_INPUT(prefix##wscanf, CALL(prefix##wscanf))                                  \
  SCANNING_INPUT(prefix##vwscanf, list_##prefix##vwscanf)
SCANNED()
SCANNED(__isoc99_)
SCANNED(__isoc23_)

// Not recorded: they move no bytes.
SEEN(fwide, "fopen @0; fclose") {
  FILE *f = reader(file);
  tell(CALL(fwide)(f, 0));
  tell(CALL(fwide)(f, 1));
  fclose(f);
}
SEEN(ungetwc, "fopen @0; fgetc 1; fgetc 1; fclose") {
  FILE *f = reader(file);
  tell(fgetwc(f));
  tell(CALL(ungetwc)(L'x', f));
  tell(fgetwc(f));
  fclose(f);
}
