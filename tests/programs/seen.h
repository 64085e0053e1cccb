// SPDX-License-Identifier: Apache-2.0
// Frame of the programs that call every hooked function. Without an argument they list their cases
// and what each should leave in the trace; with one they run them and write the results into that
// file. tests/test_hooks_seen.py compares.
//
//   SEEN(read, "open; read 10 @0; close") { ... }     the function of this name, on a file of this
//   name ALSO(read, end, "...") { ... }                    another case of it, on the file
//   "read.end"
//
// An expectation is the exact list of records between the case's two markers: operation, size (0 if
// absent), @offset (unknown if absent), error=NAME, short, below, nested, on=PATTERN for a file
// other than the case's own ("-": none). "[PATTERN]" at the beginning replaces the case's own file.
// Each file holds kText at first. say() writes what is compared with the run without weir.
#pragma once
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

static const char kText[] = "alpha beta\ngamma 42\nlast\n";  // lines of 11, 9 and 5 bytes

struct seen_case {
  const char *symbol, *name, *expected;
  void (*run)(const char *file);
  struct seen_case *next;
};
static struct seen_case *first_case, **last_case = &first_case;
static int results;

#define SEEN_CASE(symbol, id, name, expected)                                                 \
  static void run_##id(const char *file);                                            \
  static struct seen_case case_##id = {symbol, name, expected, run_##id, NULL};      \
  __attribute__((constructor)) static void add_##id(void) {                          \
    *last_case = &case_##id;                                                         \
    last_case = &case_##id.next;                                                     \
  }                                                                                  \
  static void run_##id(__attribute__((unused)) const char *file)
#define SEEN(symbol, expected) SEEN_CASE(#symbol, symbol, #symbol, expected)
#define ALSO(symbol, variant, expected) \
  SEEN_CASE(#symbol, symbol##_##variant, #symbol "." #variant, expected)

// The function as a program finds it, declared in a header or above the case.
#define CALL(symbol) ((__typeof__(&symbol))dlsym(RTLD_DEFAULT, #symbol))

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
  const int before = errno;
  char text[1024];
  va_list more;
  va_start(more, format);
  int n = vsnprintf(text, sizeof text - 1, format, more);
  va_end(more);
  text[n++] = '\n';
  if (write(results, text, (size_t)n) != n) _exit(9);
  errno = before;
}

// A result and the errno that came with it.
static void tell(long result) { say("  %ld errno %d", result, errno); }

__attribute__((unused)) static FILE *reader(const char *file) { return fopen(file, "r"); }
__attribute__((unused)) static FILE *writer(const char *file) { return fopen(file, "w"); }

static void mark(const char *when, const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", when, name);
  access(path, F_OK);
}

int main(int count, char **arguments) {
  if (count < 2) {
    for (struct seen_case *c = first_case; c != NULL; c = c->next)
      printf("%s\t%s\t%s\n", c->symbol, c->name, c->expected);
    return 0;
  }
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  results = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (results < 0 || libc == NULL) return 3;
  for (struct seen_case *c = first_case; c != NULL; c = c->next) {
    if (dlsym(libc, c->symbol) == NULL) {
      say("%s missing", c->name);
      continue;
    }
    say("%s", c->name);
    mark("begin", c->name);
    errno = 0;
    c->run(c->name);
    mark("end", c->name);
  }
  return 0;
}
