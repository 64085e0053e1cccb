// SPDX-License-Identifier: Apache-2.0
// Writes 1000 bytes by 1000 calls in each of two threads and ends in the way asked for.
static _Atomic int written;
static char* volatile nowhere;

static void write_all(const char* name) {
  int fd = open_new(name);
  for (int i = 0; i < 1000; ++i) MUST(write(fd, "x", 1) == 1);
  atomic_fetch_add(&written, 1);
}

static void* other(void* how) {
  write_all("other");
  while (written < 2) sched_yield();
  if (strcmp(how, "thread_exit") == 0) exit(7);
  if (strcmp(how, "thread_crash") == 0) *nowhere = 1;
  for (;;) pause();
}

int main(int argc, char** argv) {
  MUST(argc == 2);
  const char* how = argv[1];
  pthread_t thread;
  MUST(pthread_create(&thread, NULL, other, argv[1]) == 0);
  write_all("main");
  while (written < 2) sched_yield();
  if (strcmp(how, "return") == 0) return 7;
  if (strcmp(how, "exit") == 0) exit(7);
  if (strcmp(how, "_exit") == 0) _exit(7);
  if (strcmp(how, "_Exit") == 0) _Exit(7);
  if (strcmp(how, "quick_exit") == 0) quick_exit(7);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "exit_group") == 0) syscall(SYS_exit_group, 7);
  if (strcmp(how, "pthread_exit") == 0) {
    pthread_cancel(thread);
    pthread_exit(NULL);
  }
  if (strncmp(how, "signal ", 7) == 0) raise(atoi(how + 7));
  for (;;) pause();
}
