# SPDX-License-Identifier: Apache-2.0
"""Processes that may do less than others: less memory, another user, another root, fewer system
calls."""

import os
import signal
import subprocess
import uuid

import pytest
from weir_guest import counts, lost

MANY = """
int main(void) {
  int fd = open_new("file");
  for (int i = 0; i < 50000; ++i) MUST(pwrite(fd, "x", 1, 0) == 1);
  return 0;
}
"""
MEMORY = """
int main(int argc, char** argv) {
  int fd = open_new("file");
  struct rlimit now = {0, 0};
  char line[256];
  unsigned long pages = 0;
  FILE* f = fopen("/proc/self/statm", "r");
  MUST(fgets(line, sizeof line, f) && sscanf(line, "%lu", &pages) == 1 && fclose(f) == 0);
  now.rlim_cur = now.rlim_max = pages * 4096 + 65536;
  MUST(setrlimit(RLIMIT_AS, &now) == 0);
  for (int i = 0; i < 50000; ++i) MUST(pwrite(fd, "x", 1, 0) == 1);
  return 0;
}
"""


def test_no_memory_for_more_trace(guest, traced):
    trace = traced([guest(MEMORY)]).ok().trace
    calls = len(trace.of("pwrite")) + sum(c.calls for c in trace.counters
        if c.op == "pwrite") + lost(trace)
    assert calls == 50000
    assert len(trace.of("pwrite")) > 0


NO_DESCRIPTOR = """
int main(int argc, char** argv) {
  int fd = open_new("file");
  struct rlimit none = {0, 0};
  MUST(setrlimit(RLIMIT_NOFILE, &none) == 0);
  for (int i = 0; i < 50000; ++i) MUST(pwrite(fd, "x", 1, 0) == 1);
  return 0;
}
"""
HIDDEN = """
int main(void) {
  int fd = open_new("file");
  const char* directory = getenv("WEIR_TRACE_DIR");
  char hidden[5000];
  snprintf(hidden, sizeof hidden, "%s.hidden", directory);
  MUST(rename(directory, hidden) == 0);
  for (int i = 0; i < 50000; ++i) MUST(pwrite(fd, "x", 1, 0) == 1);
  MUST(rename(hidden, directory) == 0);
  return 0;
}
"""


@pytest.mark.parametrize(
    ("program", "budget", "cause"),
    [(NO_DESCRIPTOR, "1G", "no descriptor left (ulimit -n)"),
        (HIDDEN, "1G", "could not be reached from the process"),
     (MEMORY, "1G", "no memory or address space left (ulimit -v)"),
     (MANY, "300K", "reached its budget of")],
    ids=["descriptor", "directory", "memory", "budget"],
)  # fmt: skip
def test_the_report_names_why_the_trace_could_not_grow(guest, traced, weir, tmp_path, program,
        budget, cause):
    traced([guest(program)], WEIR_BUDGET=budget).done.ok()
    said = weir("report", tmp_path / "run").stdout
    (note,) = [line for line in said.splitlines() if "calls have no record" in line]
    assert cause in note
    known = ["ulimit -n", "could not be reached", "ulimit -v", "budget", "disk is full",
        "changed its user"]
    assert sum(one in note for one in known) == 1, note


START = """
int main(void) {
  puts("right");
  return 7;
}
"""


@pytest.mark.parametrize("kib", [3000, 8000, 20000, 30000, 60000])
def test_a_program_that_starts_with_little_address_space(guest, execute, preload_env, kib,
        tmp_path):
    program = guest(START)
    script = f"ulimit -v {kib}; exec {program}"
    plain = execute(["bash", "-c", script], cwd=tmp_path)
    env = preload_env()
    library = env.pop("LD_PRELOAD")  # for the program, not for the shell
    done = execute(["bash", "-c", f"export LD_PRELOAD={library}; {script}"], cwd=tmp_path, env=env)
    if plain.returncode == 7:
        assert (done.returncode, done.stdout) == (7, "right\n"), done.stderr
    assert done.stderr.count("\n") <= plain.stderr.count("\n") + 1


AS_OTHER = """
int main(void) {
  int fd = open_new("file");
  if (setgid(65534) != 0 || setuid(65534) != 0) return 77;
  for (int i = 0; i < 20000; ++i) MUST(pwrite(fd, "x", 1, 0) == 1);
  MUST(fork() != 0 || (_exit(pwrite(fd, "x", 1, 0) != 1), 0));
  int status;
  MUST(wait(&status) > 0 && status == 0);
  return 0;
}
"""


def test_a_program_that_gives_up_its_privileges(guest, traced, tmp_path):
    """The trace file is its first user's: what does not fit any more is counted."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    outcome = traced([guest(AS_OTHER)]).ok()
    trace = outcome.trace
    first = next(iter(trace.processes.values()))
    calls = [r for r in trace.of("pwrite", file="file") if r.process == first.number]
    counted = sum(c.calls for c in trace.counters if c.op == "pwrite" and c.process == first.number)
    assert len(calls) + counted + first.lost_events >= 20000
    assert len(calls) > 0


CHROOT = """
int main(int argc, char** argv) {
  // In the new root lies a file under the very path of the trace.
  MUST(chroot(argv[1]) == 0 && chdir("/") == 0);
  int fd = open_new("/file");
  for (int i = 0; i < 20000; ++i) MUST(pwrite(fd, "x", 1, 0) == 1);
  struct stat st;
  MUST(stat(argv[2], &st) == 0 && st.st_size == 5);
  return 0;
}
"""


def test_another_root_with_a_file_where_the_trace_was(guest, traced, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can change its root")
    root = tmp_path / "root"
    trace_file = tmp_path / "run" / "main" / "node.weir"
    decoy = root / str(trace_file)[1:]
    decoy.parent.mkdir(parents=True)
    decoy.write_text("decoy")
    outcome = traced([guest(CHROOT), root, trace_file], WEIR_NODE="node").ok()
    assert decoy.read_text() == "decoy"
    trace = outcome.trace
    kept = len(trace.of("pwrite")) + sum(c.calls for c in trace.counters if c.op == "pwrite")
    assert kept + lost(trace) >= 20000


REPLACED = """
int main(int argc, char** argv) {
  int fd = open_new("file");
  MUST(unlink(argv[1]) == 0);
  close(open_new(argv[1]));  // somebody starts the step anew while this process goes on
  for (int i = 0; i < 20000; ++i) MUST(pwrite(fd, "x", 1, 0) == 1);
  struct stat st;
  MUST(stat(argv[1], &st) == 0 && st.st_size == 0);
  return 0;
}
"""


def test_a_trace_that_was_removed_and_made_anew(guest, traced, tmp_path):
    trace_file = tmp_path / "run" / "main" / "node.weir"
    traced([guest(REPLACED), trace_file], WEIR_NODE="node").ok()
    assert trace_file.stat().st_size == 0


TRUNCATED = """
int main(int argc, char** argv) {
  int fd = open_new("file");
  MUST(syscall(SYS_truncate, argv[1], 0) == 0);
  for (int i = 0; i < 1000; ++i) MUST(pwrite(fd, "x", 1, 0) == 1);
  return 0;
}
"""


def test_a_trace_that_is_truncated_ends_the_program(guest, traced, tmp_path):
    """A limit: the pages of a mapping go with the file's bytes."""
    trace_file = tmp_path / "run" / "main" / "node.weir"
    outcome = traced([guest(TRUNCATED), trace_file], WEIR_NODE="node")
    assert outcome.done.returncode == -signal.SIGBUS


def seccomp(action: str, *refused: str) -> str:
    """A filter that gives the action for these calls, or (action of the last line) for all but the
    calls a plain program needs."""
    return "".join(
        f"BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_{name}, 0, 1), BPF_STMT(BPF_RET | BPF_K, "
        f"{action}),\n" for name in refused
    )


FORBID = """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
static void forbid(void) {
  struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    RULES
    BPF_STMT(BPF_RET | BPF_K, OTHERWISE),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  INSTALL
}
"""
FILTER = FORBID + """int main(void) {
  int fd = open_new("file");
  MUST(pwrite(fd, "x", 1, 0) == 1);
  forbid();
  for (int i = 0; i < 20000; ++i) MUST(pwrite(fd, "x", 1, 0) == 1);
  _exit(0);
}
"""
BY_PRCTL = "MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);"
BY_CALL = "MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);"


def check_calls_after_a_filter(trace) -> None:
    kept = len(trace.of("pwrite")) + sum(c.calls for c in trace.counters if c.op == "pwrite")
    assert kept + lost(trace) == 20001
    assert kept > 0


@pytest.mark.parametrize("install", [BY_PRCTL, BY_CALL])
def test_a_filter_that_refuses_to_open_files(guest, traced, install):
    rules = seccomp("SECCOMP_RET_ERRNO | EPERM", "openat", "open", "fallocate", "mmap", "madvise")
    source = FILTER.replace("RULES", rules).replace("OTHERWISE",
        "SECCOMP_RET_ALLOW").replace("INSTALL", install)
    check_calls_after_a_filter(traced([guest(source)]).ok().trace)


@pytest.mark.parametrize("install", [BY_PRCTL, BY_CALL])
def test_a_filter_that_kills_for_whatever_the_program_does_not_call(guest, traced, install):
    rules = seccomp("SECCOMP_RET_ALLOW", "pwrite64", "exit_group", "write")
    source = FILTER.replace("RULES", rules).replace("OTHERWISE",
        "SECCOMP_RET_KILL_PROCESS").replace("INSTALL", install)
    check_calls_after_a_filter(traced([guest(source)]).ok().trace)


LAYERED = FORBID.replace("OTHERWISE", "SECCOMP_RET_ALLOW") + """
static void fill(int file, int first) {
  char data[1000];
  for (int i = first; i < first + 300; ++i) {
    memset(data, i, sizeof data);
    MUST(write(file, data, sizeof data) == sizeof data);
  }
}
int main(void) {
  int before = BEFORE ? open_new("before.dat") : -1;
  if (BEFORE) fill(before, 0);
  forbid();
  if (BEFORE) fill(before, 300);
  int after = open_new("after.dat");
  fill(after, 0);
  char byte = 0;
  MUST(pread(after, &byte, 1, 1000) == 1 && byte == 1);
  MUST(close(after) == 0);
  after = open("after.dat", O_RDONLY);
  MUST(pread(after, &byte, 1, 2000) == 1 && byte == 2 && close(after) == 0);
  if (BEFORE) MUST(close(before) == 0);
  puts("done");
  return 0;
}
"""
EVERYTHING = "bufa:256:4:always=1|global:4096:4:always=1|gather:1048576:16:always=1|keep:always=1"


@pytest.mark.parametrize("stack", ["bufa:4096:4:always=1", EVERYTHING, "cos"])
@pytest.mark.parametrize(("install", "before"), [(BY_PRCTL, 0), (BY_CALL, 0), (BY_PRCTL, 1)])
def test_no_thread_and_no_daemon_starts_after_a_filter(guest, execute, preload, tmp_path, stack,
        install, before):
    job = f"pytest-{uuid.uuid4().hex[:12]}"
    rules = f"weir-rules 1\nrule source=test:1 name=*.dat stack={stack}|system\n"
    refused = seccomp("SECCOMP_RET_KILL_PROCESS", "clone", "clone3", "fork", "vfork", "execve")
    program = LAYERED.replace("RULES", refused).replace("INSTALL", install).replace("BEFORE",
        str(before))
    env = {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}
    try:
        assert execute([guest(program)], env=env, cwd=tmp_path, timeout=20).ok().stdout == "done\n"
    finally:
        subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)
    if stack != "cos":
        written = b"".join(bytes([i % 256]) * 1000 for i in range(600))
        assert (tmp_path / "after.dat").read_bytes() == written[:300_000]
        assert not before or (tmp_path / "before.dat").read_bytes() == written


WITHOUT_CLOCK = """
#include <linux/seccomp.h>
#include <sys/prctl.h>
int main(void) {
  int fd = open_new("file");
  for (int i = 0; i < 10; ++i) MUST(write(fd, "x", 1) == 1);
  MUST(HOW == 0);
  for (int i = 0; i < 20000; ++i) MUST(write(fd, "x", 1) == 1);
  syscall(SYS_exit, 0);
}
"""


@pytest.mark.parametrize(
    "how",
    [
        "prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)",
        "syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL)",
        "prctl(PR_SET_TSC, PR_TSC_SIGSEGV)",
    ],
)
def test_where_reading_the_clock_is_a_crash_recording_ends(guest, traced, how):
    trace = traced([guest(WITHOUT_CLOCK.replace("HOW", how))]).ok().trace
    assert len(trace.of("write", file="file")) == 10
    assert counts(trace, "open", "file") == 1
    (process,) = trace.processes.values()
    assert process.failures == 1  # so that a report says that something is missing
