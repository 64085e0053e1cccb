# SPDX-License-Identifier: Apache-2.0
"""Threads that come and go: nothing is lost, each record knows its thread, memory and trace stay
small."""

import os
import subprocess
import uuid

import pytest
from weir_guest import counts, lost

MANY = """
static void* work(void* directory) {
  char name[32];
  snprintf(name, sizeof name, "f%d", (int)syscall(SYS_gettid) % 7);
  int fd = openat((int)(long)directory, name, O_RDWR | O_CREAT, 0644);
  int tid = (int)syscall(SYS_gettid);
  MUST(pwrite(fd, "x", 1, tid) == 1);  // the offset says who it was
  close(fd);
  return NULL;
}
static long lines(const char* path) {
  FILE* f = fopen(path, "r");
  long n = 0;
  for (int c; (c = getc(f)) != EOF;) n += c == '\\n';
  fclose(f);
  return n;
}
int main(int argc, char** argv) {
  int rounds = atoi(argv[1]), together = atoi(argv[2]);
  int directory = open(".", O_RDONLY | O_DIRECTORY);
  long before = 0;
  for (int i = 0; i < rounds; ++i) {
    pthread_t thread[256];
    for (int k = 0; k < together; ++k) MUST(pthread_create(&thread[k], NULL, work, (void*)(long)directory) == 0);
    for (int k = 0; k < together; ++k) pthread_join(thread[k], NULL);
    if (i == 2) before = lines("/proc/self/maps");
  }
  long after = lines("/proc/self/maps");
  if (after - before > together + 10) {
    printf("%ld -> %ld mappings\\n", before, after);
    return 1;
  }
  return 0;
}
"""


def check(trace, threads: int) -> None:
    writes = [r for r in trace.records if r.op == "pwrite"]
    assert len(writes) == threads
    assert [r for r in writes if r.thread != r.offset] == []
    assert lost(trace) == 0
    assert sum(counts(trace, "close", f"f{i}") for i in range(7)) == threads


def test_three_thousand_threads_one_after_another(guest, traced):
    outcome = traced([guest(MANY), 3000, 1]).ok()
    check(outcome.trace, 3000)
    (file,) = outcome.directory.glob("*.weir")
    assert file.stat().st_size < 2 << 20  # 15,000 records in chunks that double


def test_threads_in_crowds(guest, traced):
    outcome = traced([guest(MANY), 20, 200]).ok()
    check(outcome.trace, 4000)
    (file,) = outcome.directory.glob("*.weir")
    assert file.stat().st_size < 16 << 20


CANCEL = """
static _Atomic int cleaned;
static void clean(void* fd) {
  MUST(write((int)(long)fd, "cleaned", 7) == 7);
  ++cleaned;
}
static int ends[2];
static void* reads(void* fd) {
  pthread_cleanup_push(clean, fd);
  char byte;
  MUST(read(ends[0], &byte, 1) == 1);
  MUST(0);
  pthread_cleanup_pop(1);
  return NULL;
}
static void* scans(void* fd) {
  pthread_cleanup_push(clean, fd);
  char line[80];
  FILE* f = fdopen(dup(ends[0]), "r");
  MUST(fgets(line, sizeof line, f) == NULL);
  MUST(0);
  pthread_cleanup_pop(1);
  return NULL;
}
int main(void) {
  MUST(pipe(ends) == 0);
  int fd = open_new("log");
  for (int i = 0; i < 100; ++i) {
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, i % 4 == 3 ? scans : reads, (void*)(long)fd) == 0);
    if (i % 2) usleep(2000);
    void* result;
    MUST(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
  }
  return 0;
}
"""


def test_a_thread_cancelled_in_a_blocking_read(guest, traced):
    outcome = traced([guest(CANCEL)]).ok()
    cleaned = outcome.trace.of("write", file="log")
    assert 50 <= len(cleaned) <= 100


CALLS = [
    "read", "write", "pread", "pwrite", "readv", "writev", "pwritev", "fsync", "open", "close",
    "fread", "fwrite", "fprintf", "dprintf",
]  # fmt: skip
EVERYTHING = "keep:always=1|global:512:2:always=1|gather:1048576:16:always=1"


@pytest.fixture
def layered(guest, execute, preload, preload_env, tmp_path):
    """``layered(stack, call)`` runs cancels.c under a stack, whose job is removed afterwards."""
    job = f"pytest-{uuid.uuid4().hex[:12]}"

    def call(stack: str, call: str, traces: bool = False):
        env = preload_env() if traces else {"LD_PRELOAD": str(preload)}
        rules = f"weir-rules 1\nrule source=test:1 name=*.dat stack={stack}|system\n"
        env |= {"WEIR_RULES": rules, "WEIR_JOB": job}
        return execute([guest("cancels.c"), call], env=env, cwd=tmp_path, timeout=20)

    yield call
    subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)


@pytest.mark.parametrize("call", CALLS)
def test_a_thread_whose_calls_layers_answer_is_cancelled(layered, call):
    assert layered("bufa:256:4:always=1", call).ok().stdout == "joined\n"


@pytest.mark.parametrize("stack", [EVERYTHING, "global:16384:8:always=1", "cos",
    "short:op=any:rate=0:seed=1:bytes=3000"])
def test_whatever_the_layers_are(layered, stack):
    assert layered(stack, "write").ok().stdout == "joined\n"


def test_a_traced_thread_is_cancelled_in_calls_that_layers_answer(layered):
    assert layered("bufa:256:4:always=1", "pwrite", traces=True).ok().stdout == "joined\n"


AT_END = """
static pthread_key_t key;
static _Atomic int late;
static void at_end(void* round) {
  int fd = open("late", O_WRONLY | O_CREAT | O_APPEND, 0644);
  MUST(write(fd, "x", 1) == 1);
  close(fd);
  ++late;
  if ((long)round < 4) pthread_setspecific(key, (void*)((long)round + 1));
}
static void* work(void* unused) {
  pthread_setspecific(key, (void*)1L);
  return unused;
}
int main(void) {
  pthread_key_create(&key, at_end);
  for (int i = 0; i < 300; ++i) {
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, work, NULL) == 0);
    pthread_join(thread, NULL);
  }
  MUST(late == 1200);
  return 0;
}
"""


def test_calls_of_a_thread_that_is_ending(guest, traced):
    trace = traced([guest(AT_END)]).ok().trace
    assert len(trace.of("write", file="late")) == 1200
    assert lost(trace) == 0
