# SPDX-License-Identifier: Apache-2.0
"""A child is a process of its own whichever call made it: its records, its bytes and its parent's
arrive once."""

import os
import subprocess
import uuid

import pytest
from weir_guest import lost

AS_COPIES = ["fork", "_Fork", "SYS_fork", "SYS_clone", "SYS_clone3", "clone()"]
AS_PROGRAMS = ["vfork", "posix_spawn"]
STACKS = {
    "bufa": "bufa:4096:4:always=1|system",
    "global": "global:16384:8:always=1|system",
    "keep": "keep|system",
}


@pytest.fixture
def family(guest, traced, tmp_path):
    """``family(way, stack)`` runs the program, checks the bytes of all files, and returns its
    trace."""
    job = f"pytest-{uuid.uuid4().hex[:12]}"

    def run(way: str, stack: str = ""):
        rules = f"weir-rules 1\nrule source=test:1 name=*.dat stack={stack}\n" if stack else ""
        more = {"WEIR_RULES": rules, "WEIR_JOB": job} if stack else {}
        trace = traced([guest("ways_to_fork.c"), way], timeout=20, **more).ok().trace
        directory = tmp_path / "cwd" / "main"
        assert (directory / "data.dat").read_bytes() == b"PARENT" + b"parent" * 999 + b"childafter"
        assert (directory / "child.dat").read_bytes() == b"child" * 100
        assert (directory / "busy.dat").read_bytes() == b"busy"
        return trace

    yield run
    subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)


@pytest.mark.parametrize("way", AS_COPIES + AS_PROGRAMS)
def test_parent_and_child_are_two_processes_of_the_trace(family, way):
    trace = family(way)
    parent, child = sorted(trace.processes.values(), key=lambda p: p.start_ticks)
    assert child.ppid == parent.pid
    assert (child.parent == parent.number) == (way in AS_COPIES)
    assert lost(trace) == 0
    assert [r.process for r in trace.of("write", file="child.dat")] == [child.number] * 100
    shared = [r for r in trace.of("write", file="data.dat")]
    assert [r.process for r in shared if r.size == 5] == [child.number, parent.number]
    assert [r.process for r in shared if r.size == 6] == [parent.number] * 1000
    # The position is shared with the child, so that nobody knows it any more.
    assert [r.offset for r in shared if r.size == 5 and r.process == parent.number] == ([None]
        if way in AS_COPIES else [6000])
    assert child.end_kind != 0


@pytest.mark.parametrize("layer", STACKS)
@pytest.mark.parametrize("way", AS_COPIES + AS_PROGRAMS)
def test_bytes_of_both_are_written_once(family, way, layer):
    trace = family(way, STACKS[layer])
    assert len(trace.processes) == 2
    assert all(p.failures == 0 for p in trace.processes.values())


# On one CPU, where a thread that was started does not run before this one sleeps.
AT_ONCE = """
int main(void) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  const struct sched_param first = {.sched_priority = 1};
  MUST(sched_setaffinity(0, sizeof one, &one) == 0);
  if (sched_setscheduler(0, SCHED_FIFO, &first) != 0) return 77;
  const int fd = open_new("at_once.dat");
  const pid_t child = (pid_t)syscall(SYS_fork);
  if (child == 0) _exit(setgid(getgid()) != 0);
  int status = -1;
  MUST(waitpid(child, &status, 0) == child && status == 0);
  return close(fd);
}
"""


@pytest.mark.parametrize("layer", STACKS)
def test_a_child_that_is_made_while_a_thread_of_weirs_begins_may_change_its_group(
    guest, traced, layer
):
    """libc of the child waits for ever for a thread that it believes to be beginning."""
    job = f"pytest-{uuid.uuid4().hex[:12]}"
    rules = f"weir-rules 1\nrule source=test:1 name=*.dat stack={STACKS[layer]}\n"
    try:
        done = traced([guest(AT_ONCE)], timeout=20, WEIR_RULES=rules, WEIR_JOB=job).done
    finally:
        subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)
    if done.returncode == 77:
        pytest.skip("SCHED_FIFO needs CAP_SYS_NICE")
    assert done.returncode == 0, done.stderr
