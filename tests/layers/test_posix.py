# SPDX-License-Identifier: Apache-2.0
"""What POSIX says of calls on files holds for files under layers: a program that makes every kind
of call gets the same results, errnos and bytes and leaves the same files as without weir; accepted
bytes outlive each way to end; errors that come late are reported."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest
from decode import read_trace

PROGRAMS = Path(__file__).parent / "programs"
# bufa takes part once a file has cost it something; a slow file below does so with its first
# request.
SLOW = "event|bufa:4096:2|event|delay:op=any:us=200|system"
# Small blocks, so that a few bytes fill them; the layers that pass through; two that hold, one on
# the other.
STACKS = [
    "event|system",
    "bufa:4096:2|system",
    "bufa:65536:4|system",
    "event|bufa:4096:2|event|system",
    "bufa:4096:2|bufa:8192:2|system",
    SLOW,
    "short:op=any:rate=0.5:seed=1:bytes=3000|system",
    "error:op=any:errno=EIO:rate=0|system",
    "global:65536:4|system",
    "gather:65536:4|system",
    "forward:65536:8|system",
    "keep:always=1|system",
]


def rules(stack: str) -> dict[str, str]:
    return {"WEIR_RULES": f"weir-rules 1\nrule source=test:1:1 name=*.dat stack={stack}\n"}


@pytest.fixture(scope="module")
def calls(cc):
    return cc((PROGRAMS / "calls.c").read_text(), "-w", name="calls")


@pytest.fixture(scope="module")
def ends(cc):
    return cc((PROGRAMS / "ends.c").read_text(), name="ends")


@pytest.fixture
def played(calls, execute, tmp_path):
    """``played("name", env)``: what the program said, and the files it left, in a directory of that
    name."""

    def run(name: str, env: dict[str, str]) -> tuple[list[str], dict[str, bytes]]:
        directory = tmp_path / name
        directory.mkdir()
        said = execute([calls], cwd=directory, env=env, timeout=60).ok().stdout
        return said.splitlines(), {p.name: p.read_bytes() for p in directory.iterdir()
            if p.is_file()}

    return run


@pytest.mark.parametrize("stack", STACKS)
def test_every_call_is_answered_as_without_layers(played, preload, stack):
    said, files = played("plain", {})
    layered_said, layered_files = played("layered", {"LD_PRELOAD": str(preload), **rules(stack)})
    assert len(said) > 250
    assert layered_said == said
    assert layered_files == files


FAR = r"""
import errno, os, sys
def said(what, call):
    try:
        print(what, call(), flush=True)
    except OSError as error:
        print(what, errno.errorcode[error.errno], flush=True)
fd = os.open("far.dat", os.O_RDWR | os.O_CREAT, 0o644)
os.write(fd, b"0123456789")
for bits in (40, 42, 43, 44, 45, 50, 62):
    for more in (-1, 0, 1):
        said((bits, more), lambda: os.lseek(fd, (1 << bits) + more, os.SEEK_SET))
        said("at", lambda: os.lseek(fd, 0, os.SEEK_CUR))
for whence in (os.SEEK_CUR, os.SEEK_END):
    for offset in (1 << 62, (1 << 63) - 1, -(1 << 62)):
        os.lseek(fd, 5, os.SEEK_SET)
        said((offset, whence), lambda: os.lseek(fd, offset, whence))
        said("at", lambda: os.lseek(fd, 0, os.SEEK_CUR))
"""


@pytest.mark.parametrize("place", ["disk", "memory"])
@pytest.mark.parametrize("stack",
    [*STACKS, "cos|system", "stripe:dirs={dir}/a,{dir}/b:unit=65536|system"])
def test_far_positions_are_those_of_the_file_system(execute, preload, tmp_path, stack, place):
    said = []
    for number in range(2):
        with tempfile.TemporaryDirectory(dir=tmp_path if place == "disk"
                else "/dev/shm") as directory:
            for piece in ("a", "b"):
                Path(directory, piece).mkdir()
            layered = {"LD_PRELOAD": str(preload), **rules(stack.replace("{dir}", directory))}
            env = layered if number == 1 else {}
            said.append(execute([sys.executable, "-c", FAR], cwd=directory, env=env).ok().stdout)
    assert said[1] == said[0]
    assert place == "memory" or "(62, 0) EINVAL" in said[0]


def test_the_calls_pass_the_layers(played, preload_env):
    """Else the test above would compare two plain runs."""
    env = preload_env(**rules(SLOW))
    played("layered", env)
    trace = read_trace(Path(env["WEIR_TRACE_DIR"]))
    above = [r for r in trace.records if r.layer == "event0"]
    left = {r.op for r in trace.records if r.op.startswith("bypassed_")}
    assert len(above) > 60
    assert {"bypassed_mapped", "bypassed_forked", "bypassed_conflict", "bypassed_locked"} <= left


@pytest.mark.parametrize("how", ["return", "close", "_exit", "quick_exit", "exec", "atexit",
    "abort", "kill"])
def test_accepted_bytes_are_in_the_file_however_the_process_ends(ends, execute, preload, weir,
        tmp_path, how):
    env = {"LD_PRELOAD": str(preload), "WEIR_JOB": f"ends-{how}-{tmp_path.name}", **rules(SLOW)}
    execute([ends, how], cwd=tmp_path, env=env, timeout=30)
    weir("drain", "--wait", "--job", env["WEIR_JOB"], timeout=30).ok()
    expected = b"".join(b"record %d\n" % i for i in range(10)) + (b"late" if how == "atexit"
        else b"")
    assert (tmp_path / "end.dat").read_bytes() == expected


W = "write 5\n" * 3
LATE_ERROR = r"""
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **arguments) {
  int f = open("late.dat", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  for (int i = 0; i < 3; ++i) printf("write %zd\n", write(f, "12345", 5));
  int result = 0;
  if (strchr(arguments[1], 's')) result = fsync(f), printf("fsync %d %d\n", result, errno);
  if (strchr(arguments[1], 'd')) result = close(dup(f)), printf("close of a copy %d %d\n", result, errno);
  errno = 0;
  if (strchr(arguments[1], 'c')) result = close(f), printf("close %d %d\n", result, errno);
  (void)count;
  return 0;
}
"""


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("c", W + "close -1 28\n"),
        ("sc", W + "fsync -1 28\nclose 0 0\n"),
        ("dc", W + "close of a copy -1 28\nclose 0 0\n"),
        ("x", W),
    ],
)
def test_an_error_that_comes_late_is_reported_once_and_stands_in_the_report(cc, execute, preload,
        tmp_path, what, expected):
    program = cc(LATE_ERROR, name="late")
    stack = "bufa:4096:2|error:op=write:errno=ENOSPC:after=1|delay:op=write:us=200|system"
    done = execute([program, what], cwd=tmp_path, env={"LD_PRELOAD": str(preload), **rules(stack)})
    assert done.stdout == expected
    assert done.stderr == (
        f"weir: {tmp_path}/late.dat: 10 bytes accepted were not written: no space left on device\n"
    )


def test_another_process_sees_what_was_written(execute, preload, tmp_path):
    """A second opening by another rank of the node calls the holder back; the size is seen before.
    """
    script = r"""
import os, subprocess, sys
f = os.open("two.dat", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.write(f, b"written")
size = subprocess.run([sys.executable, "-c", "import os; print(os.stat('two.dat').st_size)"], capture_output=True, text=True)
read = subprocess.run([sys.executable, "-c", "print(open('two.dat').read())"], capture_output=True, text=True)
os.write(f, b" on")
again = subprocess.run([sys.executable, "-c", "print(open('two.dat').read())"], capture_output=True, text=True)
print(size.stdout + read.stdout + again.stdout, end="")
"""
    env = {"LD_PRELOAD": str(preload), "WEIR_JOB": f"two-{tmp_path.name}", **rules(SLOW)}
    done = execute([sys.executable, "-c", script], cwd=tmp_path, env=env, timeout=60).ok()
    assert done.stdout == "7\nwritten\nwritten on\n"


def test_weirs_own_descriptors_are_not_open_for_the_program(cc, execute, preload, tmp_path):
    """Closing every number, and taking every number by dup2, leaves the file under layers in order.
    """
    program = cc(
        r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  int f = open("own.dat", O_RDWR | O_CREAT | O_TRUNC, 0644);
  write(f, "before ", 7);
  for (int n = f + 1; n < 9000; ++n) close(n);
  close_range(f + 1, ~0u, 0);
  write(f, "after ", 6);
  for (int n = 1000; n < 1020; ++n) dup2(1, n);
  closefrom(f + 1);
  write(f, "end", 3);
  return close(f);
}
""",
        "-w",
        name="own",
    )
    for stack in (SLOW, "bufa:4096:2:direct=1|delay:op=any:us=200|system", "global:65536:4|system"):
        execute([program], cwd=tmp_path, env={"LD_PRELOAD": str(preload), **rules(stack)}).ok()
        assert (tmp_path / "own.dat").read_bytes() == b"before after end", stack


THREADS = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
enum { kThreads = 4, kRecords = 2000, kBytes = 24 };
static int file;
static void *work(void *argument) {
  const long me = (long)argument;
  char record[kBytes], back[kBytes];
  for (int i = 0; i < kRecords; ++i) {
    memset(record, 'a' + (int)me, kBytes);
    if (write(file, record, kBytes) != kBytes) return (void *)1;  // each at a place of its own: the position is one
    snprintf(record, kBytes, "%ld %d", me, i);
    const off_t at = (off_t)(1 << 20) + (me * kRecords + i) * kBytes;
    if (pwrite(file, record, kBytes, at) != kBytes || pread(file, back, kBytes, at) != kBytes || memcmp(record, back, kBytes) != 0) return (void *)2;
  }
  return NULL;
}
int main(void) {
  pthread_t threads[kThreads];
  file = open("threads.dat", O_RDWR | O_CREAT | O_TRUNC, 0644);
  for (long i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, (void *)i);
  for (int i = 0; i < kThreads; ++i) {
    void *result;
    pthread_join(threads[i], &result);
    if (result != NULL) return (int)(long)result;
  }
  return close(file);
}
"""


@pytest.mark.parametrize("stack",
    [SLOW, "bufa:65536:4|system", "error:op=any:errno=EIO:rate=0|system"])
def test_threads_share_one_position_and_see_their_own_bytes(cc, execute, preload, tmp_path, stack):
    program = cc(THREADS, "-pthread", name="threads")
    execute([program], cwd=tmp_path, env={"LD_PRELOAD": str(preload), **rules(stack)},
        timeout=60).ok()
    records = (tmp_path / "threads.dat").read_bytes()[: 4 * 2000 * 24]
    pieces = [records[i : i + 24] for i in range(0, len(records), 24)]
    assert sorted(pieces) == sorted(letter * 24 for letter in (b"a", b"b", b"c", b"d")
        for _ in range(2000))
