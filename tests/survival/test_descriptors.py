# SPDX-License-Identifier: Apache-2.0
"""Descriptors closed wholesale, run out of, numbered beyond a million, without a position of their
own."""

import pytest
from weir_guest import counts, lost

CLOSERS = {
    "loop": "for (int fd = 3; fd < 300; ++fd) close(fd);",
    "closefrom": "closefrom(3);",
    "close_range": "MUST(close_range(3, ~0U, 0) == 0);",
    "raw": "syscall(SYS_close_range, 3, ~0U, 0);",
}

CLOSES_ALL = """
int main(void) {
  int first = open_new("first");
  MUST(first == 3);
  for (int i = 0; i < 100; ++i) MUST(write(first, "x", 1) == 1);
  CLOSE
  MUST(fcntl(first, F_GETFD) == -1 && errno == EBADF);
  int second = open_new("second");
  MUST(second == 3);
  for (int i = 0; i < 1000; ++i) MUST(write(second, "x", 1) == 1);
  MUST(open_new("third") == 4);
  return 0;
}
"""


@pytest.mark.parametrize("how", CLOSERS)
def test_a_program_that_closes_every_descriptor_from_3_up(guest, traced, how):
    trace = traced([guest(CLOSES_ALL.replace("CLOSE", CLOSERS[how]))]).ok().trace
    assert len(trace.of("write", file="first")) == 100
    assert len(trace.of("write", file="second")) == 1000
    assert trace.of("write", file="second")[-1].offset == 999
    assert lost(trace) == 0


CLOSED_MEANWHILE = """
// Crowds of threads make records and so weir opens its file again and again; another thread closes every number that it does not
// use and opens a file of its own, which must stay as it is.
enum { kCrowd = 200 };
static _Atomic int over;
static pthread_barrier_t start;
static void* closes(void* unused) {
  for (int turn = 0; !over;) {
    switch (turn++ % 4) {
      case 0: close_range(10, 400, 0); break;
      case 1: closefrom(10); break;
      case 2: for (int fd = 10; fd < 16; ++fd) MUST(dup2(3, fd) == fd && close(fd) == 0); break;
      case 3: for (int fd = 10; fd < 16; ++fd) MUST(dup3(3, fd, O_CLOEXEC) == fd && close(fd) == 0); break;
    }
    int mine[4];
    for (int i = 0; i < 4; ++i) MUST((mine[i] = open("victim", O_RDWR)) >= 0);
    for (int i = 0; i < 4; ++i) close(mine[i]);
  }
  return unused;
}
static void* records(void* unused) {
  lseek(9, 0, SEEK_CUR);
  pthread_barrier_wait(&start);
  return unused;
}
int main(void) {
  char text[8192], back[sizeof text];
  memset(text, 'v', sizeof text);
  int victim = open_new("victim");
  MUST(write(victim, text, sizeof text) == sizeof text);
  for (int fd = 4; fd < 10; ++fd) MUST(dup2(victim, fd) == fd);
  pthread_t closer, crowd[kCrowd];
  pthread_create(&closer, NULL, closes, NULL);
  pthread_barrier_init(&start, NULL, kCrowd);
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < kCrowd; ++i) MUST(pthread_create(&crowd[i], NULL, records, NULL) == 0);
    for (int i = 0; i < kCrowd; ++i) pthread_join(crowd[i], NULL);
  }
  over = 1;
  pthread_join(closer, NULL);
  struct stat st;
  MUST(fstat(victim, &st) == 0 && st.st_size == sizeof text);
  MUST(pread(victim, back, sizeof back, 0) == sizeof back && memcmp(back, text, sizeof text) == 0);
  return 0;
}
"""

FEW = """
int main(int argc, char** argv) {
  struct rlimit few = {atoi(argv[1]), atoi(argv[1])};
  int fd = open_new("file");
  MUST(setrlimit(RLIMIT_NOFILE, &few) == 0);
  for (int i = 0; i < 2000; ++i) MUST(pwrite(fd, "x", 1, 0) == 1);
  if (argc > 2) {
    execv("/proc/self/exe", argv + 2);
    return 2;
  }
  return 0;
}
"""


@pytest.mark.parametrize("descriptors", [3, 4])
def test_no_descriptor_left_for_the_trace(guest, traced, descriptors):
    trace = traced([guest(FEW), descriptors]).ok().trace
    assert counts(trace, "pwrite", "file") + lost(trace) >= 2000
    assert len(trace.of("pwrite", file="file")) + sum(c.calls for c in trace.counters
        if c.op == "pwrite") + lost(trace) == 2000


SPARES_NONE = """
int main(void) {
  return dup(0) == -1 && errno == EMFILE ? 7 : 1;
}
"""


def test_a_program_that_starts_without_a_descriptor_to_spare(execute, preload_env, guest, tmp_path):
    script = f"ulimit -n 3; exec {guest(SPARES_NONE)}"
    done = execute(["bash", "-c", script], env=preload_env(), cwd=tmp_path)
    assert done.returncode in (7, 127)  # 127: not even libc could be loaded
    assert done.stderr.count("weir:") <= 1


PASSING = """
int main(void) {
  int fd = open_new("file");
  struct rlimit before, none = {3, 0};
  MUST(getrlimit(RLIMIT_NOFILE, &before) == 0);
  none.rlim_max = before.rlim_max;
  for (int round = 0; round < 5; ++round) {
    MUST(setrlimit(RLIMIT_NOFILE, &none) == 0);
    for (int i = 0; i < 1000; ++i) MUST(pwrite(fd, "x", 1, 0) == 1);
    MUST(setrlimit(RLIMIT_NOFILE, &before) == 0);
    for (int i = 0; i < 1000; ++i) MUST(pwrite(fd, "x", 1, 0) == 1);
  }
  return 0;
}
"""


def test_a_passing_lack_of_descriptors_does_not_end_the_trace(guest, traced):
    trace = traced([guest(PASSING)]).ok().trace
    kept = len(trace.of("pwrite", file="file"))
    counted = sum(c.calls for c in trace.counters if c.op == "pwrite")
    assert kept + counted + lost(trace) == 10000
    assert kept > 7000
    (process,) = trace.processes.values()
    assert process.level_now == 3


HIGH = """
int main(void) {
  struct rlimit high = {1 << 21, 1 << 21}, most;
  if (setrlimit(RLIMIT_NOFILE, &high) != 0) {
    MUST(getrlimit(RLIMIT_NOFILE, &most) == 0);
    most.rlim_cur = most.rlim_max;
    MUST(setrlimit(RLIMIT_NOFILE, &most) == 0);
  }
  MUST(getrlimit(RLIMIT_NOFILE, &most) == 0);
  int fd = open_new("file");
  int far = fcntl(fd, F_DUPFD, (int)most.rlim_cur - 1);
  MUST(far == (int)most.rlim_cur - 1);
  for (int i = 0; i < 10; ++i) MUST(write(far, "x", 1) == 1);
  MUST(close(far) == 0 && close(-5) == -1 && errno == EBADF && read(INT_MIN, &far, 1) == -1 && errno == EBADF);
  MUST(write(INT_MAX, &far, 1) == -1 && errno == EBADF && lseek(1 << 20, 0, SEEK_SET) == -1 && errno == EBADF);
  printf("%d\\n", far);
  return 0;
}
"""


def test_the_highest_descriptor_there_can_be(guest, traced):
    """Beyond a million where the system allows it."""
    outcome = traced([guest(HIGH)]).ok()
    trace = outcome.trace
    assert len(trace.of("write", file="file")) == 10
    assert sum(r.failed for r in trace.of("write")) == 1
    assert lost(trace) == 0
    if int(outcome.done.stdout) <= 65535:
        pytest.skip("no descriptor may be above 65535 here")


POSITIONS = """
int main(void) {
  int fd = open_new("file");
  char text[16];
  MUST(write(fd, "12345678", 8) == 8);           // 0
  MUST(lseek(fd, 2, SEEK_SET) == 2);
  MUST(read(fd, text, 3) == 3);                  // 2
  MUST(pwrite(fd, "x", 1, 100) == 1);            // 100
  MUST(read(fd, text, 1) == 1);                  // 5
  MUST(fcntl(fd, F_SETFL, O_APPEND) == 0);
  MUST(write(fd, "ab", 2) == 2);                 // at the end: unknown
  MUST(lseek(fd, 0, SEEK_CUR) == 103);
  MUST(fcntl(fd, F_SETFL, 0) == 0);
  MUST(write(fd, "c", 1) == 1);                  // 103
  int append = open("append", O_WRONLY | O_CREAT | O_APPEND, 0644);
  MUST(write(append, "12", 2) == 2 && write(append, "34", 2) == 2);
  MUST(pwrite(append, "5", 1, 1) == 1);          // at the end, 4; recorded as it was given
  int path = open("file", O_PATH);
  MUST(read(path, text, 1) == -1 && errno == EBADF);
  return 0;
}
"""


def test_positions_are_right_or_unknown(guest, traced):
    trace = traced([guest(POSITIONS)]).ok().trace
    assert [r.offset for r in trace.of(file="file") if r.op in ("read", "write",
        "pwrite") and not r.failed] == [
        0, 2, 100, 5, None, 103
    ]  # fmt: skip
    assert all(r.offset is None for r in trace.of("write", file="append"))
    assert [r.offset for r in trace.of("pwrite", file="append")] == [1]
    assert [r.error for r in trace.of("read", file="file") if r.failed] == [9]


SHARED = """
static int fd;
static void* writes(void* unused) {
  for (int i = 0; i < 1000; ++i) MUST(write(fd, "1234567", 1 + i % 7) == 1 + i % 7);
  return unused;
}
int main(void) {
  fd = open_new("file");
  pthread_t thread[4];
  for (int i = 0; i < 4; ++i) MUST(pthread_create(&thread[i], NULL, writes, NULL) == 0);
  for (int i = 0; i < 4; ++i) MUST(pthread_join(thread[i], NULL) == 0);
  return 0;
}
"""


def test_threads_that_share_a_descriptor_are_counted_right(guest, traced):
    trace = traced([guest(SHARED)]).ok().trace
    writes = trace.of("write", file="file")
    assert (len(writes), sum(r.size for r in writes)) == (4000,
        4 * sum(1 + i % 7 for i in range(1000)))
    assert lost(trace) == 0


def test_a_descriptor_of_weirs_is_never_the_programs(guest, traced):
    """What another thread closes and opens while weir has its file open must not become weir's
    file."""
    trace = traced([guest(CLOSED_MEANWHILE, "-DROUNDS=15")], timeout=90).ok().trace
    (process,) = trace.processes.values()
    assert (process.failures, process.lost_events, process.level_now) == (0, 0, 3)
    assert sum(r.op == "lseek" for r in trace.records) == 15 * 200


DIRECT = """
int main(void) {
  int a = open_new("a"), b = open_new("b");
  MUST(syscall(SYS_dup2, a, b) == b && write(b, "12", 2) == 2);
  int c = syscall(SYS_dup, a);
  MUST(write(c, "345", 3) == 3 && syscall(SYS_close_range, c, c, 0) == 0);
  MUST(open_new("d") == c && write(c, "x", 1) == 1);
  return 0;
}
"""


def test_descriptors_copied_and_closed_by_number(guest, traced):
    trace = traced([guest(DIRECT)]).ok().trace
    assert [r.size for r in trace.of("write", file="a")] == [2, 3]
    assert [r.size for r in trace.of("write", file="b")] == []
    assert [r.size for r in trace.of("write", file="d")] == [1]


STREAMS_CLOSED = """
static _Atomic int over;
static void* prints(void* unused) {
  while (!over) {
    for (int fd = 0; fd < 3; ++fd) MUST(write(fd, "printed", 7) == -1 && errno == EBADF);
  }
  return unused;
}
static void* records(void* unused) {
  lseek(5, 0, SEEK_CUR);
  usleep(2000);
  return unused;
}
int main(void) {
  int fd = open_new("file");
  MUST(dup2(fd, 5) == 5);
  for (int i = 0; i < 5; ++i) close(i);
  pthread_t printer, crowd[100];
  pthread_create(&printer, NULL, prints, NULL);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 100; ++i) MUST(pthread_create(&crowd[i], NULL, records, NULL) == 0);
    for (int i = 0; i < 100; ++i) pthread_join(crowd[i], NULL);
  }
  over = 1;
  pthread_join(printer, NULL);
  return 0;
}
"""


def test_closed_standard_streams_stay_closed(guest, traced):
    """Else what a thread prints into nothing would be written into the trace."""
    trace = traced([guest(STREAMS_CLOSED)]).ok().trace
    assert sum(r.op == "lseek" for r in trace.records) == 1000
    assert all(r.failed and r.error == 9 for r in trace.of("write"))
    assert lost(trace) == 0
