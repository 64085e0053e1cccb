# SPDX-License-Identifier: Apache-2.0
"""fork without exec: parent and child are processes of the trace, none hangs, none loses a call."""

from weir_guest import lost

CHILD = """
int main(void) {
  int fd = open_new("shared");
  MUST(write(fd, "12345", 5) == 5);
  pid_t child = fork();
  if (child == 0) {
    MUST(write(fd, "child", 5) == 5);
    int own = open_new("own");
    MUST(write(own, "x", 1) == 1);
    exit(3);
  }
  int status;
  MUST(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
  MUST(write(fd, "67", 2) == 2);
  return 0;
}
"""


def test_a_forked_child_is_a_process_of_its_own_with_its_parents_names(guest, traced):
    trace = traced([guest(CHILD)]).ok().trace
    parent, child = sorted(trace.processes.values(), key=lambda p: p.start_ticks)
    assert (child.parent, child.ppid, parent.parent) == (parent.number, parent.pid, 0)
    assert [(r.process, r.size) for r in trace.of("write", file="shared")] == [
        (parent.number, 5), (child.number, 5), (parent.number, 2)
    ]  # fmt: skip
    assert [r.process for r in trace.of("open", file="own")] == [child.number]
    assert (parent.end_kind, child.end_kind) == (1, 1)


def test_the_position_of_a_shared_descriptor_is_not_guessed(guest, traced):
    trace = traced([guest(CHILD)]).ok().trace
    assert [r.offset for r in trace.of("write", file="shared")] == [0, None, None]


def test_of_300_children_forked_under_load_none_hangs_and_none_is_lost(guest, traced):
    trace = traced([guest("forks.c")], timeout=100).ok().trace
    assert len(trace.processes) == 1 + 300 + 32
    assert len({p.pid for p in trace.processes.values()}) == 1 + 300 + 32
    writes = trace.of("write", file="child")
    assert len(writes) == 300 + 32
    assert len(trace.of("write", file="grandchild")) == 32
    assert lost(trace) == 0
    assert all(p.failures == 0 for p in trace.processes.values())
    busy = [r for r in trace.records if r.op == "write" and r.file.endswith(("busy0", "busy1"))]
    assert len(busy) == 20 * sum(r.op == "close" and r.file.endswith(("busy0", "busy1"))
        for r in trace.records)


FORK_IN_HANDLER = """
static volatile sig_atomic_t forked;
static void handler(int s) {
  pid_t child = fork();
  if (child == 0) {
    int fd = open("handler", O_WRONLY | O_CREAT | O_APPEND, 0644);
    _exit(write(fd, "x", 1) == 1 ? 0 : 1);
  }
  int status;
  MUST(waitpid(child, &status, 0) == child && status == 0);
  ++forked;
}
int main(void) {
  struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &act, NULL);
  struct itimerval once = {{0, 0}, {0, 2000}};
  int fd = open_new("main");
  for (int next = 0; forked < 50;) {
    if (next == forked) {  // a timer that repeats may be there again before the handler's child has run, for ever
      ++next;
      setitimer(ITIMER_REAL, &once, NULL);
    }
    MUST(write(fd, "x", 1) == 1);
  }
  printf("%d\\n", (int)forked);
  return 0;
}
"""


def test_fork_in_a_signal_handler(guest, traced):
    outcome = traced([guest(FORK_IN_HANDLER)]).ok()
    trace = outcome.trace
    assert len(trace.of("write", file="handler")) == int(outcome.done.stdout)
    assert len(trace.processes) == 1 + int(outcome.done.stdout)


RAW = """
int main(void) {
  int fd = open_new("file");
  pid_t child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);  // no atfork handlers
  if (child == 0) {
    MUST(write(fd, "x", 1) == 1);
    _exit(0);
  }
  int status;
  MUST(waitpid(child, &status, 0) == child && status == 0);
  MUST(write(fd, "x", 1) == 1);
  return 0;
}
"""


def test_a_child_made_by_a_direct_system_call(guest, traced):
    trace = traced([guest(RAW)]).ok().trace
    assert len(trace.processes) == 2
    assert len({r.process for r in trace.of("write", file="file")}) == 2


NO_ADVICE = """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
int main(int argc, char** argv) {
  struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
  setenv("LD_PRELOAD", argv[1], 1);
  execv(argv[2], argv + 2);
  return 1;
}
"""


def test_a_kernel_that_cannot_wipe_a_page_on_fork(guest, traced, preload):
    """Before Linux 4.14, and in some sandboxes: the handlers of fork do it."""
    trace = traced([guest(NO_ADVICE), preload, guest(CHILD)], LD_PRELOAD=None).ok().trace
    parent, child = sorted(trace.processes.values(), key=lambda p: p.start_ticks)
    assert [(r.process, r.size) for r in trace.of("write", file="shared")] == [
        (parent.number, 5), (child.number, 5), (parent.number, 2)
    ]  # fmt: skip
    assert [r.process for r in trace.of("open", file="own")] == [child.number]


def test_many_processes_that_make_the_trace_file_at_once(guest, traced, preload):
    source = (
        'int main(int c, char** v) {\n int fd = open_new(v[1]);\n return write(fd, "x", 1) != '
        '1;\n}\n'
    )
    script = f"for i in $(seq 40); do LD_PRELOAD={preload} {guest(source)} f$i & done; wait"
    outcome = traced(["bash", "-c", script], LD_PRELOAD=None).ok()
    assert [p.suffix for p in outcome.directory.iterdir()] == [".weir"]
    trace = outcome.trace
    assert len({p.pid for p in trace.processes.values()}) == 40
    assert all(len(trace.of("write", file=f"f{i}")) == 1 for i in range(1, 41))


WITHOUT_DESCRIPTORS = """
static void* work(void* name) {
  int fd = open("file", O_WRONLY);
  for (int i = 0; i < 3000; ++i) MUST(pwrite(1023 - (int)(long)name, "x", 1, 0) == 1);
  return fd >= 0 ? name : NULL;
}
int main(void) {
  int fd = open_new("file");
  for (int i = 0; i < 8; ++i) MUST(dup2(fd, 1023 - i) == 1023 - i);
  pid_t child = fork();
  if (child == 0) {
    struct rlimit before, none = {3, 1024};
    MUST(getrlimit(RLIMIT_NOFILE, &before) == 0 && setrlimit(RLIMIT_NOFILE, &none) == 0);
    pthread_t thread[8];
    for (long i = 0; i < 8; ++i) pthread_create(&thread[i], NULL, work, (void*)i);
    for (int i = 0; i < 8; ++i) pthread_join(thread[i], NULL);
    none.rlim_cur = 1024;
    MUST(setrlimit(RLIMIT_NOFILE, &none) == 0);
    MUST(pwrite(fd, "last", 4, 0) == 4);
    _exit(0);
  }
  int status;
  MUST(waitpid(child, &status, 0) == child && status == 0);
  return 0;
}
"""


def test_a_child_that_has_no_descriptor_to_spare_at_first(guest, traced):
    """Its threads wait for nothing; it is a process of the trace as soon as it can be."""
    trace = traced([guest(WITHOUT_DESCRIPTORS)]).ok().trace
    assert len(trace.processes) == 2
    parent, child = sorted(trace.processes.values(), key=lambda p: p.start_ticks)
    assert [r.process for r in trace.records if r.op == "pwrite" and r.size == 4] == [child.number]
    assert parent.lost_events > 0
    assert parent.lost_events + sum(r.op in ("pwrite", "open") and r.process == child.number
        for r in trace.records) <= 8 * 3001 + 1
