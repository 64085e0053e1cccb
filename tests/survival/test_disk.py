# SPDX-License-Identifier: Apache-2.0
"""The trace meets a limit: a full disk, its budget, the largest file size. The program does not
notice; what is lost is counted."""

import contextlib
import json
import os
import subprocess

import pytest
from decode import read_trace
from weir_guest import lost

WRITES = """
// Writes to many files from three threads at the same time, reads all back, says what it found.
static pthread_barrier_t all;
static void* work(void* number) {
  char name[32];
  for (int i = 0; i < 50; ++i) {
    snprintf(name, sizeof name, "f%ld_%d", (long)number, i);
    int fd = open_new(name);
    if (i == 0) pthread_barrier_wait(&all);
    for (int k = 0; k < 200; ++k) MUST(write(fd, &k, sizeof k) == sizeof k);
    for (int k = 0, back; k < 200; ++k) MUST(pread(fd, &back, sizeof back, k * sizeof k) == sizeof back && back == k);
    MUST(close(fd) == 0);
  }
  return NULL;
}
int main(void) {
  pthread_t thread[2];
  pthread_barrier_init(&all, NULL, 3);
  for (long i = 0; i < 2; ++i) pthread_create(&thread[i], NULL, work, (void*)i);
  work((void*)2L);
  for (int i = 0; i < 2; ++i) pthread_join(thread[i], NULL);
  puts("right");
  return 0;
}
"""
CALLS = 3 * 50 * 402 + 1  # open, write, pread, close; and puts


def everything(trace) -> int:
    """Every call of the guest's one process: in records, in counters, lost."""
    (process,) = trace.processes.values()
    records = sum(r.op != "thread" for r in trace.records)
    return records + sum(c.calls for c in trace.counters) + process.lost_events


@pytest.mark.parametrize("level", ["trace", "detail", "summary"])
def test_in_a_small_budget_totals_stay_exact(guest, traced, level):
    outcome = traced([guest(WRITES)], level=level, WEIR_BUDGET="256K").ok()
    assert outcome.done.stdout == "right\n"
    trace = outcome.trace
    (file,) = outcome.directory.glob("*.weir")
    assert file.stat().st_size <= 256 << 10
    (process,) = trace.processes.values()
    assert everything(trace) == CALLS
    if level == "summary":
        assert process.lost_events == 0 and process.level_now == 1
        sums = {c.op: (c.calls, c.bytes) for c in summed(trace)}
        assert sums["write"] == (30000, 120000) and sums["pread"] == (30000,
            120000) and sums["open"][0] == 150


def summed(trace):
    merged = {}
    for c in trace.counters:
        known = merged.get(c.op)
        merged[c.op] = c if known is None else known._replace(calls=known.calls + c.calls,
            bytes=known.bytes + c.bytes)
    return merged.values()


def test_past_a_small_budget_counters_have_what_records_have_not(guest, traced):
    trace = traced([guest(WRITES)], WEIR_BUDGET="1M").ok().trace
    (process,) = trace.processes.values()
    assert process.level_now < 3
    assert process.lost_events == 0
    for op, calls, size in (("write", 30000, 120000), ("pread", 30000, 120000), ("open", 150, 0),
            ("close", 150, 0)):
        records = trace.of(op, layer="posix")
        counters = [c for c in trace.counters if c.op == op]
        assert len(records) + sum(c.calls for c in counters) == calls, op
        assert sum(r.size for r in records) + sum(c.bytes for c in counters) == size, op


@contextlib.contextmanager
def small_disk(directory, size: str, *options: str):
    directory.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    mount = ["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", *options]), "tmpfs", directory]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "-l", directory], check=True)


@pytest.mark.parametrize("size", ["64k", "128k", "300k"])
def test_a_full_disk_under_the_trace(guest, execute, preload, tmp_path, size):
    with small_disk(tmp_path / "disk", size) as disk:
        env = {"WEIR_TRACE_DIR": str(disk), "LD_PRELOAD": str(preload)}
        (tmp_path / "cwd").mkdir()
        done = execute([guest(WRITES)], env=env, cwd=tmp_path / "cwd").ok()
        assert (done.stdout, done.stderr) == ("right\n", "")
        trace = read_trace(disk)
        (process,) = trace.processes.values()
        assert everything(trace) == CALLS
        assert process.lost_events > 0 or trace.counters


def test_a_disk_that_is_full_from_the_start(guest, execute, preload, tmp_path):
    with small_disk(tmp_path / "disk", "64k") as disk:
        with contextlib.suppress(OSError), open(disk / "filler", "wb", buffering=0) as filler:
            while filler.write(bytes(4096)) == 4096:
                pass
        env = {"WEIR_TRACE_DIR": str(disk), "LD_PRELOAD": str(preload)}
        (tmp_path / "cwd").mkdir()
        done = execute([guest(WRITES)], env=env, cwd=tmp_path / "cwd").ok()
        assert done.stdout == "right\n"
        assert done.stderr.count("weir:") == 1 and "no space" in done.stderr


FILE_SIZE = """
int main(int argc, char** argv) {
  int fd = open_new("file");
  struct rlimit small = {LIMIT, LIMIT};
  MUST(setrlimit(RLIMIT_FSIZE, &small) == 0);
  for (int i = 0; i < 20000; ++i) MUST(pwrite(fd, "x", 1, 0) == 1);
  MUST(fork() != 0 || (_exit(pwrite(fd, "x", 1, 0) != 1), 0));
  int status;
  MUST(wait(&status) > 0 && status == 0);
  if (argc == 1) {
    execl("/proc/self/exe", "again", "there", (char*)NULL);
    return 1;
  }
  return 0;
}
"""


@pytest.mark.parametrize("limit", [1, 8192, 200000])
def test_the_largest_file_size_allowed_is_no_signal_for_the_program(guest, traced, limit):
    outcome = traced([guest(FILE_SIZE, f"-DLIMIT={limit}")])
    outcome.done.ok()
    trace = outcome.trace
    assert outcome.done.stderr.count("weir:") <= 1
    first = min(trace.processes.values(), key=lambda p: p.start_ticks)
    mine = [r for r in trace.of("pwrite") if r.process == first.number]
    counted = [c for c in trace.counters if c.op == "pwrite" and c.process == first.number]
    assert len(mine) + sum(c.calls for c in counted) + first.lost_events == 20000


@pytest.mark.parametrize("exported", [True, False])
def test_programs_under_a_limit_on_file_size_are_said_once_and_reported(weir, tmp_path, exported):
    """As configure does it: a script that is traced lowers the limit, and starts many programs.
    Also where WEIR_QUIET is not handed on."""
    script = tmp_path / "configure"
    unset = "" if exported else "unset WEIR_QUIET;"
    script.write_text(
        f"#!/bin/bash\nulimit -f 4\nfor i in $(seq 20); do {unset} dd if=/dev/zero of=/dev/null "
        f"bs=1M count=1 status=none; done\necho right\n")
    script.chmod(0o755)
    done = weir("trace", "-q", "-o", tmp_path / "run", "--", script, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
    assert done.stderr.count("weir: ") == 1 and "(ulimit -f)" in done.stderr, done.stderr
    statement = json.loads(weir("report", tmp_path / "run", "--json").stdout)["unseen"]["statement"]
    assert statement.startswith("INCOMPLETE") and "direct system calls" not in statement
    # seq and the 20
    assert (
        "weir could not record 21 programs: a limit on the size of files (ulimit -f)" in statement
    )


def test_lost_calls_are_counted_once(guest, traced):
    """Which thread gets the last of the budget is the scheduler's doing: in one run of ten what is
    left is enough."""
    for attempt in range(24):
        trace = traced([guest(WRITES)], step=f"attempt{attempt}", WEIR_BUDGET="64K").ok().trace
        assert everything(trace) == CALLS
        if lost(trace) > 0:
            return
    pytest.fail("a budget of 64K was enough 24 times")
