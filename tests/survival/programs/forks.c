// SPDX-License-Identifier: Apache-2.0
// Threads write and open files all the time while others fork children, which write, have a child
// of their own, and end.
enum { kForks = 75, kForkers = 4 };
static _Atomic int over;

static void* busy(void* name) {
  while (!over) {
    int fd = open_new(name);
    for (int i = 0; i < 20; ++i) MUST(write(fd, "busy", 4) == 4);
    close(fd);
  }
  return NULL;
}

static void* fork_many(void* unused) {
  for (int i = 0; i < kForks; ++i) {
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
      int fd = open("child", O_WRONLY | O_CREAT | O_APPEND, 0644);
      MUST(write(fd, "c", 1) == 1);
      pid_t below = i % 10 == 0 ? fork() : -1;
      if (below == 0) {
        int again = open("grandchild", O_WRONLY | O_CREAT | O_APPEND, 0644);
        MUST(write(again, "g", 1) == 1);
        _exit(write(fd, "g", 1) == 1 ? 0 : 1);
      }
      int status = 0;
      if (below > 0) MUST(waitpid(below, &status, 0) == below);
      _exit(status);
    }
    int status = 1;
    MUST(waitpid(child, &status, 0) == child && status == 0);
  }
  return unused;
}

int main(void) {
  pthread_t writers[2], forkers[kForkers];
  pthread_create(&writers[0], NULL, busy, "busy0");
  pthread_create(&writers[1], NULL, busy, "busy1");
  for (int i = 0; i < kForkers; ++i) pthread_create(&forkers[i], NULL, fork_many, NULL);
  for (int i = 0; i < kForkers; ++i) pthread_join(forkers[i], NULL);
  over = 1;
  for (int i = 0; i < 2; ++i) pthread_join(writers[i], NULL);
  return 0;
}
