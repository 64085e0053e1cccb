# SPDX-License-Identifier: Apache-2.0
"""read, write, open, close, lseek and fsync may be called in signal handlers: weir allocates
nothing there, starts no thread by libc, and waits for nothing that the interrupted call has."""

import os
import platform
import subprocess
import uuid

import pytest

STACKS = [
    "bufa:4096:4:always=1",
    "event|bufa:4096:2:always=1|event",
    "bufa:4096:2:always=1|bufa:8192:2:always=1",
    "global:16384:8:always=1",
    "gather:16384:8:always=1",
    "forward:16384:8:always=1",
    "keep:always=1",
    "keep:always=1|bufa:4096:4:always=1",
    "short:op=any:rate=0:seed=1:bytes=3000",
    "delay:op=any:us=1",
    "error:op=any:errno=EIO:rate=0",
]


@pytest.mark.parametrize(("what", "traces"), [("first", False), ("first", True), ("storm", True)])
@pytest.mark.parametrize("stack", STACKS)
def test_handlers_allocate_nothing_and_wait_for_nothing(guest, execute, preload_env, preload,
        tmp_path, stack, what, traces):
    job = f"pytest-{uuid.uuid4().hex[:12]}"
    env = preload_env() if traces else {"LD_PRELOAD": str(preload)}
    env |= {"WEIR_RULES": f"weir-rules 1\nrule source=test:1 name=*.dat stack={stack}|system\n",
        "WEIR_JOB": job}
    try:
        done = execute([guest("in_handlers.c", "-rdynamic", "-fno-builtin"), what], env=env,
            cwd=tmp_path, timeout=30).ok()
    finally:
        subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)
    assert done.stdout.split() == ["2" if what == "first" else "60", "0"]
    for name in ("handler.dat", "program.dat"):
        assert (tmp_path / name).read_bytes() == name[0].encode() * 19999 + b"!end"


ONE_FILE = """
static int file;
static volatile sig_atomic_t calls;
static void on_alarm(int unused) {
  if (write(file, "h\\n", 2) != 2) _exit(3);
  ++calls;
}
int main(void) {
  long lines = 0;
  file = open_new("a.dat");
  signal(SIGALRM, on_alarm);
  const struct itimerval often = {{0, 500}, {0, 500}};
  MUST(setitimer(ITIMER_REAL, &often, NULL) == 0);
  for (; calls < 200; ++lines) MUST(write(file, "program\\n", 8) == 8);
  const struct itimerval never = {{0, 0}, {0, 0}};
  MUST(setitimer(ITIMER_REAL, &never, NULL) == 0);
  MUST(close(file) == 0);
  printf("%ld %d\\n", lines, (int)calls);
  return 0;
}
"""


@pytest.mark.parametrize("stack", STACKS)
def test_lines_of_a_handler_and_of_the_write_that_it_interrupts_are_all_there(guest, execute,
        preload, tmp_path, stack):
    """The moment at which the handler interrupts is random; what must be there is not."""
    job = f"pytest-{uuid.uuid4().hex[:12]}"
    env = {"WEIR_RULES": f"weir-rules 1\nrule source=test:1 name=*.dat stack={stack}|system\n",
        "WEIR_JOB": job, "LD_PRELOAD": str(preload)}
    try:
        done = execute([guest(ONE_FILE)], env=env, cwd=tmp_path, timeout=60).ok()
    finally:
        subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)
    lines, calls = map(int, done.stdout.split())
    data = (tmp_path / "a.dat").read_bytes()
    assert len(data) == 8 * lines + 2 * calls
    assert (data.count(b"program\n"), data.count(b"h\n")) == (lines, calls)


WITHOUT_MAIN = """
static void* work(void* unused) {
  int file = open_new("a.dat");
  for (int i = 0; i < 1000; ++i) MUST(write(file, "abc", 3) == 3);
  MUST(close(file) == 0);
  return unused;
}
int main(void) {
  pthread_t thread;
  MUST(pthread_create(&thread, NULL, work, NULL) == 0);
  pthread_exit(NULL);
}
"""


@pytest.mark.parametrize("stack", ["bufa:4096:4:always=1", "global:16384:8:always=1"])
def test_a_process_ends_with_its_last_thread_though_weir_has_some(guest, execute, preload, tmp_path,
        stack):
    job = f"pytest-{uuid.uuid4().hex[:12]}"
    rules = f"weir-rules 1\nrule source=test:1 name=*.dat stack={stack}|system\n"
    env = {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}
    try:
        execute([guest(WITHOUT_MAIN)], env=env, cwd=tmp_path, timeout=20).ok()
    finally:
        subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)
    assert (tmp_path / "a.dat").read_bytes() == b"abc" * 1000


LEFT_BEHIND = """
#include <dirent.h>
static int file, threads, writes;
static void write_some(void) {
  for (int i = 0; i < 50; ++i) MUST(write(file, "program\\n", 8) == 8);
  DIR *listed = opendir("/proc/self/task");
  while (readdir(listed) != NULL) ++threads;
  closedir(listed);
}
static void handler(int unused) {
  if (writes) write_some();
}
__attribute__((noinline)) static void raise_deep(void) {
  volatile char deep[30000];
  deep[0] = 1;
  raise(SIGUSR1);
  deep[1] = 2;
}
__attribute__((noinline)) static void work(void) {
  char never_written[60000];
  __asm__ volatile("" : : "r"(never_written) : "memory");
  write_some();
  __asm__ volatile("" : : "r"(never_written) : "memory");
}
int main(int count, char **arguments) {
  const char *const mode = arguments[count - 1];
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  if (strcmp(mode, "nodefer") == 0) action.sa_flags = SA_NODEFER;
  MUST(sigaction(SIGUSR1, &action, NULL) == 0);
  file = open_new("a.dat");
  writes = strcmp(mode, "left") != 0;
  raise_deep();
  if (!writes) work();
  printf("%d\\n", threads - 2);
  return close(file);
}
"""


@pytest.mark.parametrize(("mode", "has_thread"), [
    ("handler", False), ("nodefer", False), ("left", platform.machine() == "x86_64")])
def test_what_an_ended_handler_left_on_the_stack_takes_no_layer_away(guest, execute, preload,
        tmp_path, mode, has_thread):
    """A buffer that nobody writes to may have it as long as the program runs, as in fio. In a
    handler no thread is started, and the layer passes on what is written there."""
    job = f"pytest-{uuid.uuid4().hex[:12]}"
    env = {"WEIR_RULES": "weir-rules 1\nrule source=test:1 name=*.dat stack=bufa:4096:4:always=1|"
        "system\n", "WEIR_JOB": job, "LD_PRELOAD": str(preload)}
    try:
        done = execute([guest(LEFT_BEHIND, "-O1"), mode], env=env, cwd=tmp_path, timeout=30).ok()
    finally:
        subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)
    assert (int(done.stdout) > 1) == has_thread
    assert (tmp_path / "a.dat").read_bytes() == b"program\n" * 50
