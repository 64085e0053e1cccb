// SPDX-License-Identifier: Apache-2.0
// Formatted text: stdio/format.cc.
#include "seen.h"

extern int __vfprintf_chk(FILE *, int, const char *, va_list),
    __vprintf_chk(int, const char *, va_list), __vdprintf_chk(int, int, const char *, va_list);
extern int __fprintf_chk(FILE *, int, const char *, ...), __printf_chk(int, const char *, ...),
    __dprintf_chk(int, int, const char *, ...);

// Calls a function that takes a list.
#define LISTED(symbol, signature, last, ...)            \
  static int list_##symbol signature {                  \
    va_list more;                                       \
    va_start(more, last);                               \
    const int n = CALL(symbol)(__VA_ARGS__, more);      \
    va_end(more);                                       \
    return n;                                           \
  }

#define PRINTING(symbol, call)                                  \
  SEEN(symbol, "fopen @0; fprintf 12; fclose") {                   \
    FILE *f = writer(file);                                     \
    tell(call(f, "%s %d %.2f\n", "abc", 42, 1.25));             \
    fclose(f);                                                  \
  }
#define PRINTING_OUT(symbol, ...)                               \
  SEEN(symbol, "freopen @0; fprintf 12; fflush") {                 \
    freopen(file, "w", stdout);                                 \
    tell(__VA_ARGS__("%s %d %.2f\n", "abc", 42, 1.25));         \
    fflush(stdout);                                             \
  }
#define PRINTING_TO(symbol, call)                               \
  SEEN(symbol, "creat; dprintf 12 @0; dprintf 1 @12; close") {  \
    const int fd = creat(file, 0600);                           \
    tell(call(fd, "%s %d %.2f\n", "abc", 42, 1.25));            \
    tell(call(fd, "%s", "x"));                                  \
    close(fd);                                                  \
  }
#define CHECKED_FPRINTF(f, ...) CALL(__fprintf_chk)(f, 1, __VA_ARGS__)
#define CHECKED_PRINTF(...) CALL(__printf_chk)(1, __VA_ARGS__)
#define CHECKED_DPRINTF(fd, ...) CALL(__dprintf_chk)(fd, 1, __VA_ARGS__)

LISTED(vfprintf, (FILE *f, const char *format, ...), format, f, format)
LISTED(__vfprintf_chk, (FILE *f, const char *format, ...), format, f, 1, format)
LISTED(vprintf, (const char *format, ...), format, format)
LISTED(__vprintf_chk, (const char *format, ...), format, 1, format)
LISTED(vdprintf, (int fd, const char *format, ...), format, fd, format)
LISTED(__vdprintf_chk, (int fd, const char *format, ...), format, fd, 1, format)

PRINTING(fprintf, CALL(fprintf))
PRINTING(vfprintf, list_vfprintf)
PRINTING(__fprintf_chk, CHECKED_FPRINTF)
PRINTING(__vfprintf_chk, list___vfprintf_chk)
PRINTING_OUT(printf, CALL(printf))
PRINTING_OUT(vprintf, list_vprintf)
PRINTING_OUT(__printf_chk, CHECKED_PRINTF)
PRINTING_OUT(__vprintf_chk, list___vprintf_chk)
PRINTING_TO(dprintf, CALL(dprintf))
PRINTING_TO(vdprintf, list_vdprintf)
PRINTING_TO(__dprintf_chk, CHECKED_DPRINTF)
PRINTING_TO(__vdprintf_chk, list___vdprintf_chk)
ALSO(fprintf, refused, "fopen @0; fprintf error=EBADF; fclose") {
  FILE *f = reader(file);
  tell(CALL(fprintf)(f, "%d", 42));
  fclose(f);
}
ALSO(dprintf, refused, "dprintf on=- error=EBADF") { tell(CALL(dprintf)(299, "%d", 42)); }
ALSO(fprintf, large, "fopen @0; setvbuf 64; fprintf 100000; fclose") {
  FILE *f = writer(file);
  setvbuf(f, NULL, _IOFBF, 64);
  tell(CALL(fprintf)(f, "%100000d", 42));
  fclose(f);
}

// Two words of the text, then a number, which is not there.
#define SCANNING(symbol, call)                                          \
  SEEN(symbol, "fopen @0; fscanf 10; fscanf 1; fclose") {                  \
    char a[16] = "", b[16] = "";                                        \
    int n = 0;                                                          \
    FILE *f = reader(file);                                             \
    tell(call(f, "%15s %15s", a, b));                                   \
    tell(call(f, "%d", &n));                                            \
    say("  %s %s %d %d", a, b, n, getc_unlocked(f));                    \
    fclose(f);                                                          \
  }
#define SCANNING_INPUT(symbol, call)                                    \
  SEEN(symbol, "freopen @0; fscanf 10; fscanf 1") {                        \
    char a[16] = "", b[16] = "";                                        \
    int n = 0;                                                          \
    freopen(file, "r", stdin);                                          \
    tell(call("%15s %15s", a, b));                                      \
    tell(call("%d", &n));                                               \
    say("  %s %s %d", a, b, n);                                         \
  }
#define SCANNED(prefix)                                                                 \
  LISTED(prefix##vfscanf, (FILE *f, const char *format, ...), format, f, format)        \
  LISTED(prefix##vscanf, (const char *format, ...), format, format)                     \
  SCANNING(prefix##fscanf, CALL(prefix##fscanf))                                        \
  SCANNING(prefix##vfscanf, list_##prefix##vfscanf)                                     \
  SCANNING_INPUT(prefix##scanf, CALL(prefix##scanf))                                    \
  SCANNING_INPUT(prefix##vscanf, list_##prefix##vscanf)

// The names behind the header's redirection: fscanf in standard C is __isoc99_fscanf to the linker.
extern int __isoc99_fscanf(FILE *, const char *, ...),
    __isoc99_vfscanf(FILE *, const char *, va_list);
extern int __isoc99_scanf(const char *, ...), __isoc99_vscanf(const char *, va_list);
extern int __isoc23_fscanf(FILE *, const char *, ...),
    __isoc23_vfscanf(FILE *, const char *, va_list);
extern int __isoc23_scanf(const char *, ...), __isoc23_vscanf(const char *, va_list);
SCANNED()
SCANNED(__isoc99_)
SCANNED(__isoc23_)
ALSO(fscanf, end, "fopen @0; fseek @25; fscanf short; fclose") {
  int n = 0;
  FILE *f = reader(file);
  fseek(f, 0, SEEK_END);
  tell(CALL(fscanf)(f, "%d", &n));
  fclose(f);
}
ALSO(fscanf, refused, "fopen @0; fscanf error=EBADF; fclose") {
  int n = 0;
  FILE *f = writer(file);
  tell(CALL(fscanf)(f, "%d", &n));
  fclose(f);
}
// A buffer of eight bytes ends within the second word.
ALSO(fscanf, refilled, "fopen @0; setvbuf 8; fscanf 5; fscanf 5; fclose") {
  char word[16], buffer[8];
  FILE *f = reader(file);
  setvbuf(f, buffer, _IOFBF, sizeof buffer);
  tell(CALL(fscanf)(f, "%15s", word));
  tell(CALL(fscanf)(f, "%15s", word));
  say("  %s", word);
  fclose(f);
}
