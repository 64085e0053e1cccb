// SPDX-License-Identifier: Apache-2.0
// Operations on streams. A slot without a stream prints nothing more than its name.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include "player.h"

static FILE** slot(const struct op* op) { return &streams[(unsigned long)op->n[0] % kStreams]; }
static size_t size(const struct op* op, int word) {
  return (size_t)op->n[word] <= kLargest ? (size_t)op->n[word] : kLargest;
}

#define STREAM              \
  FILE* const f = *slot(op); \
  if (f == NULL) return

static void marks(FILE* f) { say("%s%s", feof(f) ? " eof" : "", ferror(f) ? " error" : ""); }

static void take(const struct op* op, FILE* f) {
  const int number = errno;
  *slot(op) = f;
  errno = number;
  result(f != NULL ? fileno(f) : -1, f == NULL);
  if (f != NULL) marks(f);
}
static void do_fclose(const struct op* op) {
  STREAM;
  *slot(op) = NULL;
  errno = 0;
  const int done = fclose(f);
  result(done, done != 0);
}
static void do_fopen(const struct op* op) {
  if (*slot(op) != NULL) fclose(*slot(op)), *slot(op) = NULL;
  errno = 0;
  take(op, op->n[3] == 1 ? fopen64(op->words[1], op->words[2]) : fopen(op->words[1], op->words[2]));
}
// fdopen STREAM SLOT MODE: the slot's descriptor is the stream's from then on
static void do_fdopen(const struct op* op) {
  int* fd = &fds[(unsigned long)op->n[1] % kSlots];
  if (*slot(op) != NULL) fclose(*slot(op)), *slot(op) = NULL;
  errno = 0;
  FILE* f = fdopen(*fd, op->words[2]);
  take(op, f);
  if (f != NULL) *fd = -1;
}
static void do_freopen(const struct op* op) {
  STREAM;
  take(op, freopen(op->words[1], op->words[2], f));
}

static void do_fread(const struct op* op) {
  STREAM;
  const size_t whole = size(op, 1) * size(op, 2) <= kLargest ? size(op, 1) * size(op, 2) : 0;
  if (whole == 0) return;
  char* to = room(whole);
  const size_t n = fread(to, size(op, 1), size(op, 2), f);
  result_of((long)n, ferror(f) != 0, to, (long)(n * size(op, 1)));
  marks(f);
}
static void do_fwrite(const struct op* op) {
  STREAM;
  const size_t whole = size(op, 1) * size(op, 2) <= kLargest ? size(op, 1) * size(op, 2) : 0;
  if (whole == 0) return;
  const size_t n = fwrite(bytes_of(op, whole), size(op, 1), size(op, 2), f);
  result((long)n, n != size(op, 2));
  marks(f);
}
static void do_fgetc(const struct op* op) {
  STREAM;
  uint32_t sum = 0;
  long i = 0;
  for (int c; i < op->n[1] && (c = i % 2 == 0 ? fgetc(f) : getc(f)) != EOF; ++i)
    sum = sum * 31 + (unsigned)c;
  result(i, 0);
  say(" #%08x", sum);
  marks(f);
}
static void do_fputc(const struct op* op) {
  STREAM;
  const char* from = bytes_of(op, size(op, 1));
  long i = 0;
  for (; i < (long)size(op, 1) && fputc(from[i], f) != EOF; ++i) {}
  result(i, i < (long)size(op, 1));
  marks(f);
}
static void do_fgets(const struct op* op) {
  STREAM;
  char line[512];
  const char* got = fgets(line, op->n[1] > 0 && op->n[1] < 512 ? (int)op->n[1] : 80, f);
  result_of(got != NULL, 0, line, got != NULL ? (long)strlen(line) : 0);
  marks(f);
}
static void do_getline(const struct op* op) {
  STREAM;
  char* line = NULL;
  size_t have = 0;
  const ssize_t n = getline(&line, &have, f);
  result_of(n, 0, line, n);
  marks(f);
  free(line);
}
static void do_fputs(const struct op* op) {
  STREAM;
  char* text = bytes_of(op, size(op, 1) + 1);
  text[size(op, 1)] = 0;
  const int done = fputs(text, f);
  result(done != EOF, done == EOF);
  marks(f);
}
static void do_fprintf(const struct op* op) {
  STREAM;
  const int n = fprintf(f, "%08ld %s %*d\n", op->n[1], op->name, (int)(op->n[1] % 300), 7);
  result(n, n < 0);
  marks(f);
}
static void do_fscanf(const struct op* op) {
  STREAM;
  char word[64] = "";
  long number = 0;
  const int n = fscanf(f, "%ld %63s", &number, word);
  result_of(n, 0, word, (long)strlen(word));
  say(" %ld", number);
  marks(f);
}
static void do_ungetc(const struct op* op) {
  STREAM;
  result(ungetc((int)op->n[1], f), 0);
  marks(f);
}
static void do_fseek(const struct op* op) {
  STREAM;
  const int done =
      op->n[3] == 1 ? fseeko(f, op->n[1], (int)op->n[2]) : fseek(f, op->n[1], (int)op->n[2]);
  result(done, done != 0);
  marks(f);
}
static void do_ftell(const struct op* op) {
  STREAM;
  const long at = ftell(f);
  result(at, at < 0);
}
static void do_position(const struct op* op) {
  STREAM;
  fpos_t at;
  const int got = fgetpos(f, &at);
  result(got, got != 0);
  if (got != 0) return;
  const int c = fgetc(f), done = fsetpos(f, &at);
  result(c, 0);
  result(done, done != 0);
}
static void do_rewind(const struct op* op) {
  STREAM;
  rewind(f);
  marks(f);
}
static void do_fflush(const struct op* op) {
  FILE* const f = op->n[0] < 0 ? NULL : *slot(op);
  if (op->n[0] >= 0 && f == NULL) return;
  const int done = fflush(f);
  result(done, done != 0);
}
static void do_setvbuf(const struct op* op) {
  STREAM;
  static char own[kStreams][1 << 16];
  const size_t bytes = size(op, 3) < sizeof own[0] ? size(op, 3) : sizeof own[0];
  result(setvbuf(f, op->n[2] ? own[op->n[0] % kStreams] : NULL, (int)op->n[1], bytes) != 0, 0);
}
static void do_clearerr(const struct op* op) {
  STREAM;
  clearerr(f);
  marks(f);
}
static void do_putwc(const struct op* op) {
  STREAM;
  result((long)fputwc((wchar_t)op->n[1], f), 0);
  say(" wide %d", fwide(f, 0));
}
static void do_getwc(const struct op* op) {
  STREAM;
  result((long)fgetwc(f), 0);
  say(" wide %d", fwide(f, 0));
}

// The descriptor below: the stream is flushed before and positioned after, as POSIX wants it of who
// uses both. below STREAM WHAT SIZE OFFSET
static void do_below(const struct op* op) {
  STREAM;
  const int fd = fileno(f), flushed = fflush(f);
  char* memory = room(size(op, 2));
  struct stat s;
  ssize_t n = -1;
  errno = 0;
  switch (op->n[1]) {
    case 0: n = lseek(fd, 0, SEEK_CUR); break;
    case 1: n = pread(fd, memory, size(op, 2), op->n[3]); break;
    case 2: n = pwrite(fd, bytes_of(op, size(op, 2)), size(op, 2), op->n[3]); break;
    case 3: n = ftruncate(fd, op->n[3]); break;
    case 4: n = fstat(fd, &s) == 0 ? s.st_size : -1; break;
    case 5: n = fsync(fd); break;
    case 6: n = read(fd, memory, size(op, 2)); break;
    case 7: n = write(fd, bytes_of(op, size(op, 2)), size(op, 2)); break;
  }
  result_of(n, n < 0, memory, op->n[1] == 1 || op->n[1] == 6 ? n : 0);
  const int sought = fseek(f, op->n[3], SEEK_SET);
  say(" fd %d flush %d seek %d", fd, flushed, sought);
  marks(f);
}

const struct entry stdio_actions[] = {
    {"fopen", do_fopen, 3},
    {"fdopen", do_fdopen, 3},
    {"freopen", do_freopen, 3},
    {"fclose", do_fclose, 1},
    {"fread", do_fread, 3},
    {"fwrite", do_fwrite, 3},
    {"fgetc", do_fgetc, 2},
    {"fputc", do_fputc, 2},
    {"fgets", do_fgets, 2},
    {"getline", do_getline, 1},
    {"fputs", do_fputs, 2},
    {"fprintf", do_fprintf, 2},
    {"fscanf", do_fscanf, 1},
    {"ungetc", do_ungetc, 2},
    {"fseek", do_fseek, 3},
    {"ftell", do_ftell, 1},
    {"position", do_position, 1},
    {"rewind", do_rewind, 1},
    {"fflush", do_fflush, 1},
    {"setvbuf", do_setvbuf, 4},
    {"clearerr", do_clearerr, 1},
    {"putwc", do_putwc, 2},
    {"getwc", do_getwc, 1},
    {"below", do_below, 4},
    {NULL, NULL, 0},
};
