// SPDX-License-Identifier: Apache-2.0
// A program to be killed: a write-behind buffer in miniature over an arena. Each record it "writes"
// is accepted as a layer accepts it, and only then counted in a page that the test reads after its
// death.
//   weir_drain_writer DAEMON FILE PAGE MODE SEED RECORDS END
// MODE: position (byte by byte from 0), append (O_APPEND), stripe:K:N (record i at place i * N + K:
// writers side by side) END: exit (flushes), kill (waits to be killed when done), abort, segv,
// _exit: at a random record
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/writeback/arena.h"
#include "layers/writeback/client.h"
#include "layers/machinery/node/registry.h"

using namespace weir;

namespace {

constexpr uint32_t kBlock = 65536;
constexpr int kBlocks = 6;
constexpr uint32_t kLargest = 65536;
constexpr uint32_t kStripe = 1000;  // bytes of a record in stripe mode

struct Page {
  uint64_t accepted;  // bytes
  uint64_t records;
  uint64_t unprotected;  // records written through
};

writeback::Arena* arena;
int file = -1, slot = -1;
bool append;
Page* page;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int queue[kBlocks], queued, current = -1;
uint32_t filled;

uint64_t state;
uint32_t next_random() {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<uint32_t>(state >> 33);
}
char pattern(uint64_t at, uint64_t seed) {
  return static_cast<char>((at * 0x9e3779b97f4a7c15u + seed) >> 56);
}

void must(bool yes, const char* what) {
  if (yes) return;
  perror(what);
  _exit(99);
}

// Block and queue are the caller's: nobody else writes this block out.
void write_out(int block) {
  writeback::Range r;
  while (writeback::next_dirty(arena, block, 0, &r)) {
    const char* from = static_cast<char*>(writeback::data(arena, block)) + r.lo;
    ssize_t n;
    if (append) {
      struct stat about;
      must(fstat(file, &about) == 0, "fstat");
      writeback::begin_append(arena, block, static_cast<uint64_t>(about.st_size));
      n = write(file, from, r.hi - r.lo);
    } else {
      n = pwrite(file, from, r.hi - r.lo,
                 static_cast<off_t>(writeback::offset_of(arena, block) + r.lo));
    }
    must(n > 0, "write");
    writeback::mark_clean(arena, block, r.lo, r.lo + static_cast<uint32_t>(n));
  }
}

void* flush_always(void*) {
  pthread_mutex_lock(&lock);
  for (;;) {
    while (queued == 0) pthread_cond_wait(&changed, &lock);
    const int block = queue[0];
    pthread_mutex_unlock(&lock);
    write_out(block);
    pthread_mutex_lock(&lock);
    memmove(queue, queue + 1, sizeof(int) * static_cast<size_t>(--queued));
    writeback::give_block(arena, block);
    pthread_cond_broadcast(&changed);
  }
}

void hand_over_current() {
  if (current < 0) return;
  queue[queued++] = current;
  current = -1;
  pthread_cond_broadcast(&changed);
}

void flush_all() {
  hand_over_current();
  while (queued != 0) pthread_cond_wait(&changed, &lock);
}

// One record, whole in one block (or through).
void accept(const char* data, uint32_t bytes, uint64_t offset) {
  pthread_mutex_lock(&lock);
  if (!writeback::held(arena, slot)) {
    flush_all();
    const ssize_t n =
        append ? write(file, data, bytes) : pwrite(file, data, bytes, static_cast<off_t>(offset));
    must(n == static_cast<ssize_t>(bytes), "write through");
    ++page->unprotected;
  } else {
    const uint64_t base = current >= 0 && !append ? writeback::offset_of(arena, current) : 0;
    const bool fits = current >= 0 && (append ? filled + bytes <= kBlock
                                              : offset >= base && offset + bytes <= base + kBlock);
    if (!fits) hand_over_current();
    while (current < 0 && (current = writeback::take_block(arena)) < 0)
      pthread_cond_wait(&changed, &lock);
    if (!fits) {
      writeback::assign(arena, current, slot, append ? writeback::kAtEnd : offset);
      filled = 0;
    }
    uint32_t at =
        append ? filled : static_cast<uint32_t>(offset - writeback::offset_of(arena, current));
    memcpy(static_cast<char*>(writeback::data(arena, current)) + at, data, bytes);
    if (!writeback::mark_dirty(arena, current, at, at + bytes)) {
      hand_over_current();
      while ((current = writeback::take_block(arena)) < 0) pthread_cond_wait(&changed, &lock);
      writeback::assign(arena, current, slot, offset);
      memcpy(writeback::data(arena, current), data, bytes);
      must(writeback::mark_dirty(arena, current, 0, bytes), "mark");
      at = 0;
    }
    filled = at + bytes;
  }
  __atomic_store_n(&page->accepted, page->accepted + bytes, __ATOMIC_RELEASE);
  ++page->records;
  pthread_mutex_unlock(&lock);
}

[[noreturn]] void end_by(const char* how) {
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "segv") == 0) *static_cast<volatile int*>(nullptr) = 1;
  if (strcmp(how, "_exit") == 0) _exit(7);
  if (strcmp(how, "kill") == 0) {
    for (;;) pause();
  }
  pthread_mutex_lock(&lock);
  flush_all();
  writeback::unregister_file(arena, slot);
  writeback::destroy_arena(arena);
  exit(0);
}

}  // namespace

int main(int count, char** arguments) {
  must(count == 8, "seven arguments");
  const char *mode = arguments[4], *how = arguments[7];
  const uint64_t seed = strtoull(arguments[5], nullptr, 10);
  const long records = atol(arguments[6]);
  state = seed;
  unsigned which = 0, of = 0;
  append = strcmp(mode, "append") == 0;
  if (sscanf(mode, "stripe:%u:%u", &which, &of) != 2) of = 0;
  writeback::use_daemon(arguments[1]);
  const int page_file = open(arguments[3], O_RDWR | O_CREAT, 0600);
  must(ftruncate(page_file, sizeof(Page)) == 0, "page");
  page = static_cast<Page*>(
      mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, page_file, 0));
  file = open(arguments[2], O_WRONLY | O_CREAT | (append ? O_APPEND : 0), 0644);
  struct stat about;
  must(file >= 0 && fstat(file, &about) == 0, arguments[2]);
  must(node::join(), "join");  // or the last one's daemon may be removing the directory
  arena = writeback::create_arena(kBlocks, kBlock, 4);
  must(arena != nullptr, "arena");
  slot = writeback::register_file(arena, {&file, about.st_dev, about.st_ino, arguments[2], append});
  must(slot >= 0 && writeback::held(arena, slot), "register");
  pthread_t flusher;
  must(pthread_create(&flusher, nullptr, flush_always, nullptr) == 0, "thread");

  static char data[kLargest];
  const bool at_random = strcmp(how, "exit") != 0 && strcmp(how, "kill") != 0;
  const long last =
      at_random ? static_cast<long>(next_random() % static_cast<uint32_t>(records)) : records;
  uint64_t at = 0;
  for (long i = 0; i < last; ++i) {
    const uint32_t bytes = of != 0                  ? kStripe
                           : next_random() % 8 == 0 ? 1 + next_random() % kLargest
                                                    : 64 + next_random() % 512;
    const uint64_t offset = of != 0 ? (static_cast<uint64_t>(i) * of + which) * kStripe : at;
    for (uint32_t k = 0; k < bytes; ++k) data[k] = pattern(offset + k, of != 0 ? 0 : seed);
    accept(data, bytes, offset);
    at += bytes;
  }
  end_by(how);
}
