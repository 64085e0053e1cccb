// SPDX-License-Identifier: Apache-2.0
// in_handlers first|storm: file I/O in signal handlers, where malloc and pthread_create end the
// program.
//   first  a handler makes the first open, write, lseek, read, fsync and close of a file under
//   layers; the program then does the same storm  handlers do so while the program is in malloc,
//   free and its own file I/O
// In a build with -DABORTS=0 they are counted instead.
#ifndef ABORTS
#define ABORTS 1
#endif
static __thread volatile sig_atomic_t within;
static volatile sig_atomic_t handled, allocated;
static int (*real_create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void __libc_free(void*);

static void look(void) {
  if (!within) return;
  ++allocated;
  if (ABORTS) {
    within = 0;
    abort();
  }
}
void* malloc(size_t n) { return look(), __libc_malloc(n); }
void* calloc(size_t n, size_t size) { return look(), __libc_calloc(n, size); }
void* realloc(void* p, size_t n) { return look(), __libc_realloc(p, n); }
void free(void* p) { look(), __libc_free(p); }
int pthread_create(pthread_t* to, const pthread_attr_t* how, void* (*body)(void*), void* with) {
  return look(), real_create(to, how, body, with);
}

static void use(const char* path) {
  char out[100], in[100];
  memset(out, path[0], sizeof out);
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  MUST(fd >= 0);
  for (int i = 0; i < 200; ++i) MUST(write(fd, out, sizeof out) == sizeof out);
  MUST(lseek(fd, 5000, SEEK_SET) == 5000);
  for (int i = 0; i < 50; ++i)
    MUST(read(fd, in, sizeof in) == sizeof in && memcmp(in, out, sizeof in) == 0);
  MUST(pwrite(fd, "!", 1, 19999) == 1 && fsync(fd) == 0);
  MUST(pread(fd, in, 1, 19999) == 1 && in[0] == '!');
  MUST(close(fd) == 0);
  fd = open(path, O_WRONLY | O_APPEND);
  MUST(fd >= 0 && write(fd, "end", 3) == 3 && close(fd) == 0);
}

static void handler(int unused) {
  const int before = errno;
  within = 1;
  use("handler.dat");
  within = 0;
  ++handled;
  errno = before;
}

int main(int count, char** arguments) {
  MUST(count == 2);
  real_create = dlsym(RTLD_NEXT, "pthread_create");
  struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};
  MUST(sigaction(SIGALRM, &act, NULL) == 0);
  if (strcmp(arguments[1], "first") == 0) {
    MUST(raise(SIGALRM) == 0);
    use("program.dat");
    MUST(raise(SIGALRM) == 0);
  } else {
    const struct itimerval once = {{0, 0}, {0, 300}};
    int armed = 0;  // signals asked for; one at a time, and each is asked for once whatever
                    // instruction the last one met
    while (handled < 60) {
      if (armed == handled) {
        ++armed;
        MUST(setitimer(ITIMER_REAL, &once, NULL) == 0);
      }
      void* some[64];
      for (int i = 0; i < 64; ++i) some[i] = malloc((size_t)(i * 7919 % 5000));
      for (int i = 0; i < 64; ++i) free(some[(i * 13) % 64]);
      if (handled % 4 == 0) use("program.dat");
    }
    use("program.dat");
  }
  printf("%d %d\n", (int)handled, (int)allocated);
  return 0;
}
