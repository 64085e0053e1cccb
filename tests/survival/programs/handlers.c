// SPDX-License-Identifier: Apache-2.0
// A timer interrupts calls of two threads as often as it can; its handler makes calls of its own.
// Each side counts its calls. arguments: how many calls each thread makes at least; "jump": the
// handler leaves by siglongjmp now and then. Prints interruptions, jumps, calls of the main thread
// and of the other.
static _Atomic uint64_t by_handler, jumps;
static __thread int handler_file;
static __thread sigjmp_buf back;
static __thread volatile sig_atomic_t may_jump;
static __thread uint64_t seed;
static int jumping;

static void handler(int unused) {
  int before = errno;
  MUST(lseek(handler_file, 0, SEEK_SET) == 0);
  MUST(write(handler_file, "12", 2) == 2);
  MUST(pread(handler_file, &(char[2]){0}, 2, 0) == 2);
  int fd = open("opened", O_RDONLY);
  MUST(fd >= 0 && close(fd) == 0);
  ++by_handler;
  errno = before;
  if (jumping && may_jump && (seed = seed * 6364136223846793005u + 1) >> 62 == 0) {
    ++jumps;
    may_jump = 0;  // the jump lets the next signal in before it has left this stack
    siglongjmp(back, 1);
  }
}

static uint64_t calls_of(const char* name, uint64_t calls) {
  int fd = open_new(name);
  volatile uint64_t done = 0;
  sigsetjmp(back, 1);
  may_jump = 1;
  while (done < calls || by_handler < 300 || (jumping && jumps < 50)) {
    ++done;
    MUST(pwrite(fd, "x", 1, 0) == 1);
  }
  may_jump = 0;
  return done;
}

static void* other(void* calls) {
  handler_file = open_new("handled_by_other");
  stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
  MUST(sigaltstack(&stack, NULL) == 0);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  *(uint64_t*)calls = calls_of("other", *(uint64_t*)calls);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  return NULL;
}

int main(int argc, char** argv) {
  uint64_t calls = strtoull(argv[1], NULL, 10);
  jumping = argc > 2;
  close(open_new("opened"));
  handler_file = open_new("handled_by_main");
  struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
  sigaction(SIGUSR1, &act, NULL);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  pthread_t thread;
  uint64_t others = calls;
  pthread_create(&thread, NULL, other, &others);
  timer_t timer;
  MUST(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  struct itimerspec often = {{0, 50000}, {0, 50000}};
  MUST(timer_settime(timer, 0, &often, NULL) == 0);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  calls = calls_of("main", calls);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  pthread_join(thread, NULL);
  timer_delete(timer);
  char text[128];
  int n = snprintf(text, sizeof text, "%lu %lu %lu %lu\n", (unsigned long)by_handler,
                   (unsigned long)jumps, calls, others);
  MUST(syscall(SYS_write, 1, text, n) == n);
  return 0;
}
