// SPDX-License-Identifier: Apache-2.0
// Random calls on streams, in threads of their own files: random_stdio SEED THREADS CALLS. Prints
// every result, and then what it did: a line "count OPERATION FILE CALLS BYTES" for each operation
// and file, as the trace should have it.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN, CLOSE, READ, WRITE, LINE, GET, PUT, TEXT, PRINT, SEEK, TELL, FLUSH, OPERATIONS };
static const char *const kNames[OPERATIONS] = {"fopen",   "fclose", "fread", "fwrite",
                                               "getline", "fgetc",  "fputc", "fputs",
                                               "fprintf", "fseek",  "ftell", "fflush"};

struct worker {
  unsigned long state;  // of its random numbers
  int calls;
  char file[32];
  long results;  // a sum over all of them, their errnos and their bytes
  long count[OPERATIONS], bytes[OPERATIONS];
};

static unsigned pick(struct worker *w, unsigned below) {
  w->state = w->state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(w->state >> 33) % below;
}

static void note(struct worker *w, int operation, long result, long bytes) {
  w->results = w->results * 31 + result * 7 + errno;
  errno = 0;
  ++w->count[operation];
  w->bytes[operation] += bytes;
}

static void use(struct worker *w, FILE *f, int operation) {
  char block[9000];
  const unsigned n = pick(w, 10) == 0 ? pick(w, sizeof block) : pick(w, 40);
  switch (operation) {
    case READ: {
      const size_t size = 1 + pick(w, 5), got = fread(block, size, n / size, f);
      for (size_t i = 0; i < got * size; ++i) w->results = w->results * 31 + block[i];
      note(w, READ, (long)got, (long)(got * size));
      break;
    }
    case WRITE:
      memset(block, 'a' + (int)pick(w, 26), n);
      note(w, WRITE, (long)fwrite(block, 1, n, f), n);
      break;
    case LINE: {
      char *line = NULL;
      size_t room = 0;
      const ssize_t got = getline(&line, &room, f);
      note(w, LINE, got, got < 0 ? 0 : got);
      free(line);
      break;
    }
    case GET: {
      const int got = fgetc(f);
      note(w, GET, got, got == EOF ? 0 : 1);
      break;
    }
    case PUT: note(w, PUT, fputc('0' + (int)pick(w, 10), f), 1); break;
    case TEXT: note(w, TEXT, fputs("a line\n", f) >= 0, 7); break;
    case PRINT: {
      const int made = fprintf(f, "%d of %u\n", operation, n);
      note(w, PRINT, made, made);
      break;
    }
    case TELL: note(w, TELL, ftell(f), 0); break;
    case FLUSH: note(w, FLUSH, fflush(f), 0); break;
    default: note(w, SEEK, fseek(f, (long)pick(w, 20000), SEEK_SET), 0);
  }
}

static void *work(void *argument) {
  struct worker *w = argument;
  FILE *f = NULL;
  int reads = 0;  // between a read and a write C wants a seek
  for (int i = 0; i < w->calls; ++i) {
    if (f == NULL) {
      f = fopen(w->file, pick(w, 4) == 0 ? "w+" : "a+");
      note(w, OPEN, f != NULL, 0);
      continue;
    }
    int operation = CLOSE + (int)pick(w, OPERATIONS - CLOSE);
    if (operation == CLOSE && pick(w, 20) != 0) operation = SEEK;
    if (operation == CLOSE) {
      note(w, CLOSE, fclose(f), 0);
      f = NULL;
      continue;
    }
    const int is_read = operation == READ || operation == LINE || operation == GET;
    const int is_write =
        operation == WRITE || operation == PUT || operation == TEXT || operation == PRINT;
    if ((is_read && reads < 0) || (is_write && reads > 0)) operation = SEEK;
    reads = operation == SEEK ? 0 : is_read ? 1 : is_write ? -1 : reads;
    use(w, f, operation);
  }
  if (f != NULL) note(w, CLOSE, fclose(f), 0);
  return NULL;
}

int main(int count, char **arguments) {
  if (count != 4) return 2;
  const int threads = atoi(arguments[2]);
  struct worker *workers = calloc((size_t)threads, sizeof *workers);
  pthread_t *ids = calloc((size_t)threads, sizeof *ids);
  for (int i = 0; i < threads; ++i) {
    workers[i].state = strtoul(arguments[1], NULL, 10) * 1000 + (unsigned)i;
    workers[i].calls = atoi(arguments[3]);
    snprintf(workers[i].file, sizeof workers[i].file, "file%d", i);
    if (pthread_create(&ids[i], NULL, work, &workers[i]) != 0) return 3;
  }
  for (int i = 0; i < threads; ++i) {
    pthread_join(ids[i], NULL);
    printf("results %s %lx\n", workers[i].file, workers[i].results);
    for (int k = 0; k < OPERATIONS; ++k)
      printf("count %s %s %ld %ld\n", kNames[k], workers[i].file, workers[i].count[k],
             workers[i].bytes[k]);
  }
  return 0;
}
