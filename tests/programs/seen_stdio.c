// SPDX-License-Identifier: Apache-2.0
// Streams of bytes: stdio/open.cc, stdio/read.cc, stdio/write.cc, stdio/position.cc.
#include "seen.h"

#include <stdio_ext.h>

extern size_t __fread_chk(void *, size_t, size_t, size_t, FILE *),
    __fread_unlocked_chk(void *, size_t, size_t, size_t, FILE *);
extern char *__fgets_chk(char *, size_t, int, FILE *),
    *__fgets_unlocked_chk(char *, size_t, int, FILE *);
extern char *gets(char *), *__gets_chk(char *, size_t);
extern int _IO_getc(FILE *), _IO_putc(int, FILE *);

static char text[64];

static void closed(FILE *f) {
  say("  %s fd %d", f != NULL ? "open" : "null", f != NULL ? fileno(f) : -1);
  if (f != NULL) fclose(f);
}

SEEN(fopen, "fopen @0; fclose") { closed(CALL(fopen)(file, "r")); }
ALSO(fopen, missing, "[nowhere/file] fopen error=ENOENT") {
  closed(CALL(fopen)("nowhere/file", "r"));
  tell(0);
}
ALSO(fopen, mode, "fopen on=- error=EINVAL") {
  closed(CALL(fopen)((const char *)8, "?"));
  tell(0);
}
ALSO(fopen, null, "fopen on=- error=EFAULT") {
  closed(CALL(fopen)(NULL, "r"));
  tell(0);
}
ALSO(fopen, append, "fopen; fputs 3; fclose; open; write 2; close") {
  FILE *f = CALL(fopen)(file, "a+");
  fputs("abc", f);
  closed(f);
  const int fd = open(file, O_WRONLY | O_APPEND);
  tell(write(fd, "de", 2));
  close(fd);
}
// The descriptor of a stream that is used without it, as C++ streams do, is followed; one used both
// ways is not.
ALSO(fopen, descriptor, "fopen @0; read 4 @0; read 4 @4; lseek @1; fread 2; read short; fclose") {
  FILE *f = CALL(fopen)(file, "r");
  tell(read(fileno(f), text, 4));
  tell(read(fileno(f), text, 4));
  tell(lseek(fileno(f), 1, SEEK_SET));
  tell((long)fread(text, 1, 2, f));
  tell(read(fileno(f), text, 10));
  closed(f);
}
SEEN(fopen64, "fopen @0; fclose") { closed(CALL(fopen64)(file, "r+")); }
SEEN(fdopen, "open; fdopen; fread 5; fclose") {
  FILE *f = CALL(fdopen)(open(file, O_RDONLY), "r");
  tell((long)fread(text, 1, 5, f));
  closed(f);
}
ALSO(fdopen, refused, "fdopen on=- error=EBADF") {
  closed(CALL(fdopen)(299, "r"));
  tell(0);
}
#define REOPENING(symbol)                                                                         \
  SEEN(symbol,                                                                                    \
       "fopen @0; fread 3; freopen @0 on=sub/a; fread 1 on=sub/a; "                               \
       "freopen on=sub/a; fclose on=sub/a") {                                                     \
    FILE *f = fopen(file, "r");                                                                   \
    tell((long)fread(text, 1, 3, f));                                                             \
    f = CALL(symbol)("sub/a", "r", f);                                                            \
    tell((long)fread(text, 1, 1, f));                                                             \
    closed(CALL(symbol)(NULL, "r", f));                                                           \
  }
REOPENING(freopen)
REOPENING(freopen64)
ALSO(freopen, missing, "fopen @0; freopen on=nowhere/file error=ENOENT; fopen @0; fclose") {
  closed(CALL(freopen)("nowhere/file", "r", fopen(file, "r")));
  tell(0);
  closed(fopen(file, "r"));
}
SEEN(fclose, "fopen @0; fclose") { tell(CALL(fclose)(fopen(file, "r"))); }
ALSO(fclose, full, "[/dev/full] fopen @0; fputs 5; fclose error=ENOSPC") {
  FILE *f = fopen("/dev/full", "w");
  tell(fputs("abcde", f));
  tell(CALL(fclose)(f));
}
SEEN(fcloseall, "fopen @0; fputs 3; fflush on=-; fclose") {
  FILE *f = writer(file);
  fputs("abc", f);
  tell(CALL(fcloseall)());
  closed(f);
}
#define TEMPORARY(symbol)                                                    \
  SEEN(symbol, "[/tmp/* (deleted)] tmpfile; fputs 3; rewind; fread 3; fclose") { \
    FILE *f = CALL(symbol)();                                                \
    fputs("abc", f);                                                         \
    rewind(f);                                                               \
    tell((long)fread(text, 1, 3, f));                                        \
    closed(f);                                                               \
  }
TEMPORARY(tmpfile)
TEMPORARY(tmpfile64)
SEEN(popen, "[pipe:*] fopen; fgets 6; fclose") {
  FILE *f = CALL(popen)("echo hello", "r");
  fgets(text, sizeof text, f);
  say("  %s", text);
  tell(pclose(f));
}
SEEN(pclose, "[pipe:*] fopen; fclose") { tell(CALL(pclose)(popen("exit 3", "r"))); }

#define READING(symbol, ...)                                                                    \
  SEEN(symbol, "fopen @0; fread 10; fread 12 short; fread short; fread; fclose") {                 \
    FILE *f = reader(file);                                                                     \
    for (int i = 0; i < 2; ++i) {                                                               \
      memset(text, 0, sizeof text);                                                             \
      const size_t size = i == 0 ? 1 : 4, count = i == 0 ? 10 : 8;                              \
      tell((long)CALL(symbol)(text, __VA_ARGS__ size, count, f));                               \
      say("  %s", text);                                                                        \
    }                                                                                           \
    tell((long)CALL(symbol)(text, __VA_ARGS__ 1, 10, f));                                       \
    tell((long)CALL(symbol)(text, __VA_ARGS__ 0, 10, f));                                       \
    closed(f);                                                                                  \
  }
#define ROOM sizeof text,
READING(fread)
READING(fread_unlocked)
READING(__fread_chk, ROOM)
READING(__fread_unlocked_chk, ROOM)
ALSO(fread, refused, "fopen; fread 10 error=EBADF; fclose") {
  FILE *f = fopen(file, "a");
  tell((long)CALL(fread)(text, 1, 10, f));
  closed(f);
}
#define LINES(symbol, ...)                                                      \
  SEEN(symbol, "fopen @0; fgets 11; fgets 9; fgets 4; fgets 1; fgets short; fclose") { \
    FILE *f = reader(file);                                                     \
    for (int i = 0; i < 5; ++i) {                                               \
      char *got = CALL(symbol)(text, __VA_ARGS__ i < 2 ? 20 : 5, f);            \
      say("  %s", got != NULL ? got : "null");                                  \
    }                                                                           \
    tell(0);                                                                    \
    closed(f);                                                                  \
  }
LINES(fgets)
LINES(fgets_unlocked)
LINES(__fgets_chk, ROOM)
LINES(__fgets_unlocked_chk, ROOM)
#define LINE_OF_INPUT(symbol, ...)                              \
  SEEN(symbol, "freopen @0; fgets 10; fgets 8") {                  \
    freopen(file, "r", stdin);                                  \
    say("  %s", CALL(symbol)(text __VA_ARGS__));                \
    say("  %s", CALL(symbol)(text __VA_ARGS__));                \
  }
LINE_OF_INPUT(gets)
LINE_OF_INPUT(__gets_chk, , sizeof text)

#define DELIMITED(symbol, expected, ...)                                \
  SEEN(symbol, expected) {                                              \
    char *line = NULL;                                                  \
    size_t room = 0;                                                    \
    FILE *f = reader(file);                                             \
    for (int i = 0; i < 4; ++i) {                                       \
      tell(CALL(symbol)(&line, &room __VA_ARGS__, f));                  \
      say("  %s", line);                                                \
    }                                                                   \
    free(line);                                                         \
    closed(f);                                                          \
  }
DELIMITED(getline, "fopen @0; getline 11; getline 9; getline 5; getline short; fclose")
DELIMITED(getdelim, "fopen @0; getline 6; getline 11; getline 8; getline short; fclose", , ' ')
DELIMITED(__getdelim, "fopen @0; getline 6; getline 11; getline 8; getline short; fclose", , ' ')

#define CHARACTERS(symbol)                                                      \
  SEEN(symbol, "fopen @0; fgetc 1; fgetc 1; fseek @25; fgetc short; fclose") {         \
    FILE *f = reader(file);                                                     \
    tell(CALL(symbol)(f));                                                      \
    tell(CALL(symbol)(f));                                                      \
    fseek(f, 0, SEEK_END);                                                      \
    tell(CALL(symbol)(f));                                                      \
    closed(f);                                                                  \
  }
CHARACTERS(fgetc)
CHARACTERS(getc)
CHARACTERS(_IO_getc)
CHARACTERS(fgetc_unlocked)
CHARACTERS(getc_unlocked)
ALSO(fgetc, refused, "fopen @0; fgetc 1 error=EBADF; fclose") {
  FILE *f = writer(file);
  tell(CALL(fgetc)(f));
  closed(f);
}
#define CHARACTER_OF_INPUT(symbol)              \
  SEEN(symbol, "freopen @0; fgetc 1; fgetc 1") {   \
    freopen(file, "r", stdin);                  \
    tell(CALL(symbol)());                       \
    tell(CALL(symbol)());                       \
  }
CHARACTER_OF_INPUT(getchar)
CHARACTER_OF_INPUT(getchar_unlocked)
SEEN(getw, "fopen @0; fputc 4; fseek @0; fgetc 4; fgetc short; fclose") {
  FILE *f = fopen(file, "w+");
  putw(-1, f);
  fseek(f, 0, SEEK_SET);
  tell(CALL(getw)(f));
  tell(CALL(getw)(f));
  closed(f);
}

#define BLOCKS(symbol)                                                  \
  SEEN(symbol, "fopen @0; fwrite 12; fwrite; fclose") {                    \
    FILE *f = writer(file);                                             \
    tell((long)CALL(symbol)("0123456789ab", 4, 3, f));                  \
    tell((long)CALL(symbol)("0123456789ab", 4, 0, f));                  \
    closed(f);                                                          \
  }
BLOCKS(fwrite)
BLOCKS(fwrite_unlocked)
ALSO(fwrite, full, "[/dev/full] fopen @0; setvbuf; fwrite 12 error=ENOSPC; fclose") {
  FILE *f = fopen("/dev/full", "w");
  setvbuf(f, NULL, _IONBF, 0);
  tell((long)CALL(fwrite)("0123456789ab", 12, 1, f));
  tell(fclose(f));
}
#define TEXTS(symbol)                                   \
  SEEN(symbol, "fopen @0; fputs 5; fputs; fclose") {       \
    FILE *f = writer(file);                             \
    tell(CALL(symbol)("hello", f));                     \
    tell(CALL(symbol)("", f));                          \
    closed(f);                                          \
  }
TEXTS(fputs)
TEXTS(fputs_unlocked)
ALSO(fputs, refused, "fopen @0; fputs 5 error=EBADF; fclose") {
  FILE *f = reader(file);
  tell(CALL(fputs)("hello", f));
  closed(f);
}
SEEN(puts, "freopen @0; fputs 6; fflush") {
  freopen(file, "w", stdout);
  tell(CALL(puts)("hello"));
  fflush(stdout);
}
#define PUTTING(symbol)                                 \
  SEEN(symbol, "fopen @0; fputc 1; fputc 1; fclose") {     \
    FILE *f = writer(file);                             \
    tell(CALL(symbol)('a', f));                         \
    tell(CALL(symbol)('b', f));                         \
    closed(f);                                          \
  }
PUTTING(fputc)
PUTTING(putc)
PUTTING(_IO_putc)
PUTTING(fputc_unlocked)
PUTTING(putc_unlocked)
#define PUTTING_OUT(symbol)                             \
  SEEN(symbol, "freopen @0; fputc 1; fflush") {            \
    freopen(file, "w", stdout);                         \
    tell(CALL(symbol)('a'));                            \
    fflush(stdout);                                     \
  }
PUTTING_OUT(putchar)
PUTTING_OUT(putchar_unlocked)
SEEN(putw, "fopen @0; fputc 4; fclose") {
  FILE *f = writer(file);
  tell(CALL(putw)(0x41424344, f));
  closed(f);
}
SEEN(perror, "freopen @0; fputs 32; fputs 26") {
  freopen(file, "w", stderr);
  errno = ENOENT;
  CALL(perror)("seen");
  errno = ENOENT;
  CALL(perror)(NULL);
  tell(0);
}

#define SEEKING(symbol)                                                         \
  SEEN(symbol, "fopen @0; fseek @6; fgetc 1; fseek @24; fseek error=EINVAL; fclose") { \
    FILE *f = reader(file);                                                     \
    tell(CALL(symbol)(f, 6, SEEK_SET));                                         \
    tell(fgetc(f));                                                             \
    tell(CALL(symbol)(f, -1, SEEK_END));                                        \
    tell(CALL(symbol)(f, -1, SEEK_SET));                                        \
    closed(f);                                                                  \
  }
SEEKING(fseek)
SEEKING(fseeko)
SEEKING(fseeko64)
#define TELLING(symbol)                                         \
  SEEN(symbol, "fopen @0; fgetc 1; ftell @1; fclose") {            \
    FILE *f = reader(file);                                     \
    tell(fgetc(f));                                             \
    tell(CALL(symbol)(f));                                      \
    closed(f);                                                  \
  }
TELLING(ftell)
TELLING(ftello)
TELLING(ftello64)
#define PLACING(get, set, type)                                                 \
  SEEN(get, "fopen @0; fgetc 1; ftell; fclose") {                                  \
    FILE *f = reader(file);                                                     \
    type at;                                                                    \
    tell(fgetc(f));                                                             \
    tell(CALL(get)(f, &at));                                                    \
    closed(f);                                                                  \
  }                                                                             \
  SEEN(set, "fopen @0; ftell; fgetc 1; fseek @0; fgetc 1; fclose") {                  \
    FILE *f = reader(file);                                                     \
    type at;                                                                    \
    get(f, &at);                                                                \
    tell(fgetc(f));                                                             \
    tell(CALL(set)(f, &at));                                                    \
    tell(fgetc(f));                                                             \
    closed(f);                                                                  \
  }
PLACING(fgetpos, fsetpos, fpos_t)
PLACING(fgetpos64, fsetpos64, fpos64_t)
SEEN(rewind, "fopen @0; fgetc 1; rewind; fgetc 1; fclose") {
  FILE *f = reader(file);
  tell(fgetc(f));
  CALL(rewind)(f);
  tell(fgetc(f));
  closed(f);
}
#define FLUSHING(symbol)                                                        \
  SEEN(symbol, "fopen @0; fputs 3; fflush; fputs 3; fflush on=-; fclose") {        \
    FILE *f = writer(file);                                                     \
    fputs("abc", f);                                                            \
    tell(CALL(symbol)(f));                                                      \
    fputs("def", f);                                                            \
    tell(CALL(symbol)(NULL));                                                   \
    closed(f);                                                                  \
  }
FLUSHING(fflush)
FLUSHING(fflush_unlocked)
#define BUFFERING(symbol, expected, ...)                                        \
  SEEN(symbol, "fopen @0; " expected "; fputs 3; fclose") {                        \
    static char buffer[BUFSIZ];                                                 \
    FILE *f = writer(file);                                                     \
    CALL(symbol)(__VA_ARGS__);                                                  \
    fputs("abc", f);                                                            \
    say("  %zu %d", __fbufsize(f), buffer[0]);                                  \
    closed(f);                                                                  \
  }
BUFFERING(setvbuf, "setvbuf 1000", f, buffer, _IOFBF, 1000)
BUFFERING(setbuf, "setvbuf 8192", f, buffer)
BUFFERING(setbuffer, "setvbuf 100", f, buffer, 100)
BUFFERING(setlinebuf, "setvbuf", f)

// Streams that are no files: nothing is recorded but what their functions do themselves.
static ssize_t cookie_write(__attribute__((unused)) void *cookie, const char *from, size_t n) {
  return write(*(int *)cookie, from, n);
}
ALSO(fwrite, memory, "") {
  char *made = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&made, &n);
  tell((long)CALL(fwrite)("abc", 1, 3, f));
  closed(f);
  say("  %s", made);
  free(made);
  f = fmemopen(text, sizeof text, "w");
  fprintf(f, "%d", 42);
  closed(f);
}
ALSO(fwrite, cookie, "creat; write 3 @0 nested; fflush on=-; write 3 @3; close") {
  int fd = creat(file, 0600);
  FILE *f = fopencookie(&fd, "w", (cookie_io_functions_t){NULL, cookie_write, NULL, NULL});
  tell((long)CALL(fwrite)("abc", 1, 3, f));
  tell(fflush(NULL));
  fputs("def", f);
  tell(fclose(f));
  close(fd);
}
