// SPDX-License-Identifier: Apache-2.0
// The player executes a script of operations, one a line, and prints of each what the program would
// have seen: result, errno, and a checksum of the bytes it got. Two runs of a script are the same
// exactly when they print the same and leave the same files.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum { kSlots = 8, kStreams = 4, kMaps = 4, kArguments = 12, kLargest = 1 << 20 };

// One operation: its words behind the name, as numbers where they are some.
struct op {
  const char* name;
  const char* words[kArguments];
  long n[kArguments];
  int count;
  unsigned line;  // seeds the bytes it writes
};

// What a thread prints; written out before a fork and at the end.
struct report {
  char* text;
  size_t size, room;
};
extern __thread struct report* out;

struct mapping {
  char* at;
  size_t size;
};

extern int fds[kSlots];
extern FILE* streams[kStreams];
extern struct mapping maps[kMaps];

void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
// The result and, when the call failed, its errno.
void result(long value, int failed);
// The same, and a checksum of what was read.
void result_of(long value, int failed, const void* bytes, long size);
// Bytes of an operation: they depend on its line and on their place alone. The buffer belongs to
// the thread.
char* bytes_of(const struct op* op, size_t size);
char* room(size_t size);

typedef void (*action)(const struct op*);
struct entry {
  const char* name;
  action run;
  int words;
};
extern const struct entry posix_actions[], stdio_actions[];
