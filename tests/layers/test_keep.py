# SPDX-License-Identifier: Apache-2.0
"""Layer keep: requests that reach the file system are counted by testfs; what programs see is
compared with the plain run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from weir_process import clean_environment

CYCLES = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cycles FILE COUNT MODE: append-open-close, or open-read-close */
int main(int argc, char **argv) {
  const int count = atoi(argv[2]), reads = strcmp(argv[3], "read") == 0;
  long sum = 0;
  for (int i = 0; i < count; ++i) {
    char line[64];
    const int fd = open(argv[1], reads ? O_RDONLY : O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (fd < 0) return 2;
    if (reads) sum += read(fd, line, 10);
    else if (write(fd, line, sprintf(line, "record %d\n", i)) < 0) return 3;
    if (close(fd) != 0) return 4;
    if (argc > 4 && close(fd) == 0) return 5;
  }
  printf("%ld\n", sum);
  if (strcmp(argv[3], "kill") == 0) abort();
  return 0;
}
"""

STORM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
/* storm FILE COUNT: is it there, may it be read, how long is it? */
int main(int argc, char **argv) {
  long sum = 0;
  for (int i = 0; i < atoi(argv[2]); ++i) {
    struct stat about;
    if (access(argv[1], F_OK) != 0 || access(argv[1], R_OK) != 0 || stat(argv[1], &about) != 0) return 1;
    sum += about.st_size;
  }
  printf("%ld\n", sum);
  return 0;
}
"""

TURNS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
/* turns DIRECTORY FILES ROUNDS BEFORE: append-open-close and stat of one file after the other; a mark after so many rounds, and at the end */
int main(int argc, char **argv) {
  char name[4096];
  struct stat about;
  usleep(2000);
  for (int round = 0; round < atoi(argv[3]); ++round) {
    if (round == atoi(argv[4])) syscall(SYS_getpgid, 1111);
    for (int i = 0; i < atoi(argv[2]); ++i) {
      snprintf(name, sizeof name, "%s/%d.log", argv[1], i);
      const int fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0644);
      if (fd < 0 || write(fd, "a line\n", 7) != 7 || close(fd) != 0 || stat(name, &about) != 0) return 1;
      if (about.st_size != 7 * (round + 1)) return 2;
    }
  }
  syscall(SYS_getpgid, 2222);
  return 0;
}
"""

SAID = r"""
import errno, os, sys
def said(what, call):
    try:
        print(what, call(), flush=True)
    except OSError as error:
        print(what, errno.errorcode[error.errno], flush=True)
"""
# Each line is what one call gave; run plain and under the layer.
SEMANTICS = (
    SAID
    + r"""
import subprocess
def add(name, text, flags=0):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | flags, 0o644)
    n = os.write(fd, text)
    os.close(fd)
    return n
def content(name):
    with open(name, "rb") as file:
        return file.read()
for i in range(5):
    said("add", lambda: add("a.log", b"line %d\n" % i))
said("size", lambda: os.stat("a.log").st_size)
said("content", lambda: content("a.log"))
said("add", lambda: add("a.log", b"after reading\n"))
said("truncated", lambda: add("a.log", b"new\n", os.O_TRUNC))
said("content", lambda: content("a.log"))
said("exclusive", lambda: add("a.log", b"x", os.O_EXCL))
said("add", lambda: add("a.log", b"more\n"))
said("rename", lambda: os.rename("a.log", "b.log"))
said("add", lambda: add("a.log", b"another file\n"))
said("contents", lambda: (content("a.log"), content("b.log")))
said("add", lambda: add("b.log", b"to the renamed one\n"))
said("unlink", lambda: os.unlink("b.log"))
said("gone", lambda: os.stat("b.log").st_size)
said("reading what is gone", lambda: os.open("b.log", os.O_RDONLY))
said("add", lambda: add("b.log", b"begins anew\n"))
said("content", lambda: content("b.log"))
os.mkdir("d")
said("add", lambda: add("d/c.log", b"in a directory\n"))
said("rename", lambda: os.rename("d", "e"))
said("not there", lambda: add("d/c.log", b"in a directory\n"))
said("content", lambda: content("e/c.log"))
said("add", lambda: add("e/c.log", b"2\n"))
os.unlink("e/c.log")
said("empty", lambda: os.rmdir("e"))
said("add", lambda: add("a.log", b"for cat\n"))
said("child", lambda: subprocess.run(["cat", "a.log"], capture_output=True).stdout)
said("add", lambda: add("a.log", b"from a fork\n"))
sys.stdout.flush()
child = os.fork()
if child == 0:
    said("child adds", lambda: add("a.log", b"child\n"))
    os._exit(0)
os.waitpid(child, 0)
said("add", lambda: add("a.log", b"parent\n"))
said("content", lambda: content("a.log"))
fd = os.open("a.log", os.O_WRONLY | os.O_APPEND)
os.close(fd)
said("closed", lambda: os.close(fd))
said("descriptor again", lambda: os.open("a.log", os.O_WRONLY | os.O_APPEND) == fd)
other = os.dup(fd)
os.write(other, b"by a copy\n")
os.close(fd)
os.write(other, b"still\n")
os.close(other)
said("content", lambda: content("a.log"))
said("truncate", lambda: os.truncate("a.log", 3))
said("add", lambda: add("a.log", b"<"))
said("content", lambda: content("a.log"))
big = b"0123456789" * 20000
for i in range(3):
    said("add", lambda: add("a.log", big[: 60000 + i * 70000]))
said("size", lambda: (os.stat("a.log").st_size, content("a.log").count(b"0")))
fd = os.open("a.log", os.O_RDONLY)
said("read", lambda: os.read(fd, 5))
os.close(fd)
fd = os.open("a.log", os.O_RDONLY)
said("read from the start", lambda: os.read(fd, 5))
os.lseek(fd, -4, os.SEEK_END)
said("end", lambda: os.read(fd, 10))
os.close(fd)
for size in (5, 50, 7):
    said("size", lambda: os.stat("a.log").st_size)
    with open("a.log", "wb", buffering=0) as file:
        said("size", lambda: os.stat("a.log").st_size)
        file.write(b"y" * size)
        said("size", lambda: os.stat("a.log").st_size)
    said("size", lambda: (os.stat("a.log").st_size, os.lstat("a.log").st_size))
    os.symlink("a.log", "link%d.log" % size)
    said("links", lambda: [os.stat("link%d.log" % size).st_size, os.lstat("link%d.log" % size).st_size] * 2)
    said("add", lambda: add("link%d.log" % size, b"by a link"))
    said("sizes", lambda: [os.stat(n).st_size for n in ("a.log", "link%d.log" % size, "a.log")])
    said("truncate", lambda: os.truncate("a.log", 2))
    said("sizes", lambda: [os.stat(n).st_size for n in ("a.log", "link%d.log" % size)])
    said("child", lambda: subprocess.run(["sh", "-c", "echo x >> a.log; rm link%d.log; test -e a.log" % size]).returncode)
    said("sizes", lambda: (os.stat("a.log").st_size, os.access("a.log", os.R_OK)))
    said("gone", lambda: os.stat("link%d.log" % size))
said("many", lambda: sum(add("m%d.log" % (i % 300), b"x") for i in range(900)))
said("sizes", lambda: {os.stat("m%d.log" % i).st_size for i in range(300)})
"""
)


# What the program itself changes of a file is what it is notified of it next, however long names
# are believed.
ATTRIBUTES = (
    SAID
    + r"""
def about(name="a.log"):
    is_ = os.stat(name), os.lstat(name)
    return [(oct(s.st_mode), s.st_uid, s.st_gid, s.st_nlink, s.st_size, s.st_mtime_ns if s.st_mtime_ns < 10**18 else "now") for s in is_]
def add(text):
    fd = os.open("a.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(fd, text)
    return fd
os.close(add(b"first\n"))
os.symlink("a.log", "link.log")
directory = os.open(".", os.O_RDONLY)
fd = os.open("a.log", os.O_RDONLY)
root = os.geteuid() == 0
changes = {
    "chmod": lambda: os.chmod("a.log", 0o751), "fchmod": lambda: os.fchmod(fd, 0o640), "fchmodat": lambda: os.chmod("a.log", 0o4755, dir_fd=directory),
    "by a link": lambda: os.chmod("link.log", 0o600), "chown": lambda: os.chown("a.log", 7 if root else -1, -1),
    "lchown": lambda: os.lchown("a.log", 8 if root else -1, -1), "fchown": lambda: os.fchown(fd, 9 if root else -1, -1),
    "utime": lambda: os.utime("a.log", ns=(5, 6_000_000_001)), "futimens": lambda: os.utime(fd, ns=(7, 8_000_000_001)),
    "by a link too": lambda: os.utime("link.log", ns=(9, 10_000_000_001)), "link": lambda: os.link("a.log", "b.log"),
    "xattr": lambda: os.setxattr("a.log", "user.weir", b"x"), "no xattr": lambda: os.removexattr("a.log", "user.weir"), "unlink": lambda: os.unlink("b.log"),
}
for name, change in changes.items():
    for _ in range(2):
        about(), about("link.log"), os.access("a.log", os.X_OK)
    ctime = os.stat("a.log").st_ctime_ns
    said(name, change)
    said("is", lambda: (about(), about("link.log"), os.access("a.log", os.X_OK)))
    fresh = os.open("a.log", os.O_RDONLY)
    said("as the descriptor says", lambda: os.fstat(fresh) == os.stat("a.log"))
    os.close(fresh)
# Times set while appended bytes wait stay as they were set.
for change in (lambda fd: os.utime(fd, ns=(1, 2)), lambda fd: os.utime("a.log", ns=(1, 2)), lambda fd: (os.close(fd), os.utime("a.log", ns=(1, 2)))):
    fd = add(b"more\n")
    change(fd)
    try:
        os.close(fd)
    except OSError:
        pass
    os.sync()
    said("time", lambda: (os.stat("a.log").st_mtime_ns, os.stat("a.log").st_size))
# A child's changes, too.
about()
if (child := os.fork()) == 0:
    os.chmod("a.log", 0o711)
    os._exit(0)
os.waitpid(child, 0)
said("child", about)
# Closed is closed, for every call.
for flags in (os.O_RDONLY, os.O_WRONLY | os.O_APPEND):
    fd = os.open("a.log", flags)
    os.close(fd)
    for name, call in {
        "read": lambda: os.read(fd, 1), "write": lambda: os.write(fd, b"x"), "pread": lambda: os.pread(fd, 1, 0), "fstat": lambda: os.fstat(fd),
        "lseek": lambda: os.lseek(fd, 0, 0), "fsync": lambda: os.fsync(fd), "dup": lambda: os.dup(fd), "close": lambda: os.close(fd),
        "ftruncate": lambda: os.ftruncate(fd, 0), "fchmod": lambda: os.fchmod(fd, 0o777), "dup2": lambda: os.dup2(fd, 50),
    }.items():
        said(name, call)
    pipe = os.pipe()
    said("number", lambda: (pipe[0] == fd, os.close(pipe[0]), os.close(pipe[1])))
said("size", lambda: os.stat("a.log").st_size)
if root:  # what another user may not open is not opened for him
    os.chown("a.log", 0, 0)
    os.chmod("a.log", 0o600)
    os.close(os.open("a.log", os.O_RDONLY))
    os.chmod(".", 0o755)
    os.access("a.log", os.R_OK), os.stat("a.log")
    os.setresuid(65534, 65534, 0)
    said("another user", lambda: os.open("a.log", os.O_RDONLY))
    said("access", lambda: os.access("a.log", os.R_OK))
"""
)


class Layered:
    """Programs under keep, in a job of their own."""

    def __init__(self, preload: Path, stack: str = "keep:always=1|system"):
        self.job = f"pytest-{uuid.uuid4().hex[:12]}"
        rule = f"weir-rules 1\nrule source=test:1 name=*.log stack={stack}\n"
        self.env = {"LD_PRELOAD": str(preload), "WEIR_RULES": rule, "WEIR_JOB": self.job}


@pytest.fixture
def layered(preload):
    made = []

    def make(stack: str = "keep:always=1|system") -> Layered:
        made.append(Layered(preload, stack))
        return made[-1]

    yield make
    for one in made:
        subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{one.job}"], check=True)


@pytest.fixture(scope="session")
def cycles(cc):
    return cc(CYCLES, "-O1", name="cycles")


def records(count: int) -> bytes:
    return b"".join(b"record %d\n" % i for i in range(count))


def test_a_thousand_open_append_close_are_a_handful_of_requests(testfs, execute, cycles, layered):
    mount = testfs("lustre", round_trip_us=0, metadata_us=0, data_us=0)
    file = mount.path / "x.log"
    execute([cycles, file, 100, "append"]).ok()
    plain = mount.stats().total
    file.unlink()
    mount.reset()
    execute([cycles, file, 1000, "append", "strict"],
        env=layered("keep:valid_ms=60000:always=1|system").env).ok()
    stats = mount.stats()
    assert (mount.backing / "x.log").read_bytes() == records(1000)
    assert plain >= 400, "the plain program asks four times for a record"
    assert stats.total <= 20, stats.requests
    assert stats.opens == 1 and stats.file("x.log").writes <= 3


def test_a_thousand_open_read_close_open_once(testfs, execute, cycles, layered):
    mount = testfs("lustre", round_trip_us=0, metadata_us=0, data_us=0)
    (mount.backing / "x.log").write_bytes(records(100))
    done = execute([cycles, mount.path / "x.log", 1000, "read", "strict"],
        env=layered("keep:valid_ms=60000:always=1|system").env).ok()
    assert done.stdout == "10000\n"
    assert mount.stats().opens == 1
    assert mount.stats().requests["lookup"] + mount.stats().requests["getattr"] <= 10


def test_a_storm_of_questions_is_a_handful_of_requests(testfs, execute, cc, layered):
    mount = testfs("lustre", round_trip_us=0, metadata_us=0, data_us=0)
    (mount.backing / "x.log").write_bytes(bytes(123))
    storm = cc(STORM, name="storm")
    execute([storm, mount.path / "x.log", 10]).ok()
    assert mount.stats().total >= 30
    mount.reset()
    done = execute([storm, mount.path / "x.log", 1000],
        env=layered("keep:valid_ms=60000:always=1|system").env).ok()
    assert done.stdout == "123000\n"
    assert mount.stats().total <= 15, mount.stats().requests


def test_a_thousand_stay_one_file_for_a_program_that_is_killed(execute, cycles, layered, tmp_path,
        weir):
    job = layered()
    assert execute([cycles, tmp_path / "x.log", 1000, "kill"], env=job.env).returncode == -6
    weir("drain", "--wait", env={"WEIR_JOB": job.job}).ok()
    assert (tmp_path / "x.log").read_bytes() == records(1000)


@pytest.mark.parametrize("stack", ["keep|system", "keep:always=1|system",
    "keep:files=3:bytes=65536:valid_ms=0:always=1|system", "event"])
def test_programs_see_what_they_see_without(execute, layered, tmp_path, stack):
    if stack == "event":
        stack = "event|keep:always=1|event|system"
    plain, under = tmp_path / "plain", tmp_path / "layered"
    for directory in (plain, under):
        directory.mkdir()
    script = ["python3", "-c", SEMANTICS]
    expected = execute(script, cwd=plain).ok()
    got = execute(script, cwd=under, env=layered(stack).env).ok()
    assert got.stdout.splitlines() == expected.stdout.splitlines()
    assert "weir" not in got.stderr
    files = sorted(p.name for p in plain.iterdir())
    assert files == sorted(p.name for p in under.iterdir())
    assert all((plain / name).read_bytes() == (under / name).read_bytes() for name in files)


@pytest.mark.parametrize("stack", ["keep:valid_ms=60000:always=1|system",
    "event|keep:valid_ms=60000:always=1|event|system"])
def test_a_program_sees_its_own_changes_at_once_and_closed_is_closed(execute, layered, tmp_path,
        stack):
    printed = []
    for name, env in (("plain", {}), ("layered", layered(stack).env)):
        (tmp_path / name).mkdir()
        printed.append(execute(["python3", "-c", ATTRIBUTES], cwd=tmp_path / name, env=env)
            .ok().stdout.splitlines())
    assert printed[1] == printed[0]
    assert sum(line.endswith("EBADF") for line in printed[0]) == 22


def test_a_truncate_is_seen_though_nobody_has_the_file_open(execute, layered, tmp_path):
    (tmp_path / "x.log").write_bytes(bytes(8))
    program = (
        "import os\n"
        "print([os.stat('x.log').st_size for _ in range(3)])\n"
        "os.truncate('x.log', 2)\n"
        "print([os.stat('x.log').st_size, os.lstat('x.log').st_size])\n"
    )
    done = execute(["python3", "-c", program], cwd=tmp_path,
        env=layered("keep:valid_ms=60000:always=1|system").env).ok()
    assert done.stdout == "[8, 8, 8]\n[2, 2]\n"


def test_a_reader_of_the_same_node_sees_what_was_appended(layered, tmp_path):
    job = layered()
    program = (
        "import os, sys\n"
        "for line in sys.stdin:\n"
        "    fd = os.open('x.log', os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
        "    os.write(fd, line.encode())\n"
        "    os.close(fd)\n"
        "    print('done', flush=True)\n"
    )
    env = clean_environment(job.env)
    writer = subprocess.Popen(
        ["python3", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=tmp_path, env=env
    )
    for i in range(4):
        writer.stdin.write(f"line {i}\n")
        writer.stdin.flush()
        assert writer.stdout.readline() == "done\n"
        code = "import os; print(os.stat('x.log').st_size, open('x.log').read().count('line'))"
        read = subprocess.run(["python3", "-c", code], capture_output=True, text=True, cwd=tmp_path,
            env=env, timeout=300)
        assert read.stdout.split() == [str((i + 1) * 7), str(i + 1)], read.stderr
    writer.stdin.close()
    assert writer.wait(timeout=300) == 0


def test_what_was_appended_reaches_the_file_by_itself(layered, tmp_path):
    program = (
        "import os, time\n"
        "fd = os.open('x.log', os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
        "os.write(fd, b'waits')\n"
        "os.close(fd)\n"
        "print('closed', flush=True)\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen(
        ["python3", "-c", program], stdout=subprocess.PIPE, text=True, cwd=tmp_path,
        env=clean_environment(layered().env)
    )
    try:
        assert process.stdout.readline() == "closed\n"
        end = time.monotonic() + 300
        while (tmp_path / "x.log").read_bytes() != b"waits":
            assert time.monotonic() < end, "it is not written without being asked for"
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()


def test_a_name_that_another_node_gave_to_another_file_is_noticed(testfs, layered):
    here = testfs("lustre", round_trip_us=0, metadata_us=0, data_us=0)
    program = (
        "import os, sys\n"
        "for line in sys.stdin:\n"
        "    fd = os.open('x.log', os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
        "    os.write(fd, line.encode())\n"
        "    os.close(fd)\n"
        "    print('done', flush=True)\n"
    )
    env = clean_environment(layered("keep:valid_ms=1:always=1|system").env)
    writer = subprocess.Popen(
        ["python3", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=here.path, env=env
    )
    for i in range(2):
        writer.stdin.write(f"line {i}\n")
        writer.stdin.flush()
        assert writer.stdout.readline() == "done\n"
        (here.backing / "x.log").rename(here.backing / f"old{i}")
        time.sleep(0.05)  # more than valid_ms, on a coarse clock
    writer.stdin.write("last\n")
    writer.stdin.close()
    assert writer.wait(timeout=300) == 0
    assert (here.backing / "old0").read_text() == "line 0\n"
    assert (here.backing / "old1").read_text() == "line 1\n"
    assert (here.backing / "x.log").read_text() == "last\n"


@pytest.mark.parametrize("directory", [".", None])
def test_where_opening_is_cheap_the_program_makes_its_own_system_calls_alone(execute, cc, layered,
        tmp_path, directory):
    if shutil.which("strace") is None:
        pytest.skip("no strace")
    turns = cc(TURNS, name="turns")

    def calls(env: dict[str, str], name: str) -> int:
        work = tmp_path / name
        work.mkdir()
        # Opens and stats run untraced, as fast as ever: they are what is measured.
        command = ["strace", "-f", "-qq", "--seccomp-bpf", "-e", "trace=!openat,open,newfstatat",
            "-o", tmp_path / f"{name}.log"]
        command += [f"-E{key}={value}" for key, value in env.items()]
        execute([*command, turns, directory or work, 30, 40, 20], cwd=work).ok()
        # A call that another thread interrupts has a second line.
        lines = [line for line in (tmp_path / f"{name}.log").read_text().splitlines()
            if " resumed>" not in line]
        begin, end = (number for number, line in enumerate(lines)
            if re.search(r"getpgid\((1111|2222)\b", line))
        return end - begin - 1

    plain = calls({}, "plain")
    assert plain >= 30 * 20 * 2, "a write and a close"
    # Of some tries: a file whose first open was held up on a busy machine is kept.
    assert any(calls(layered("keep|system").env, f"layered{i}") <= plain for i in range(20))
    assert calls(layered("keep:always=1|system").env,
        "always") > plain, "the layer has work of its own"
    assert (tmp_path / "layered0" / "7.log").read_bytes() == b"a line\n" * 40


def test_logs_in_turn_cost_no_request_for_their_numbers(testfs, execute, cc, layered):
    """On FUSE each close of a number is one: there kept files stay where they are."""
    mount = testfs("lustre", round_trip_us=0, metadata_us=0, data_us=0)
    execute([cc(TURNS, name="turns"), mount.path, 3, 200, 200],
        env=layered("keep:valid_ms=60000:always=1|system").env).ok()
    stats = mount.stats()
    assert (mount.backing / "2.log").read_bytes() == b"a line\n" * 200
    assert stats.opens == 3 and stats.requests["flush"] <= 20, stats.requests


def test_of_more_files_in_turn_than_places_some_stay(testfs, execute, cc, layered):
    turns = cc(TURNS, name="turns")
    opens = {}
    for stack in ("keep:files=10|system", "keep:files=10:always=1|system"):
        mount = testfs("lustre", round_trip_us=100, metadata_us=100, data_us=0)
        execute([turns, mount.path, 20, 40, 40], env=layered(stack).env).ok()
        opens[stack] = mount.stats().opens
        assert (mount.backing / "19.log").read_bytes() == b"a line\n" * 40
    assert opens["keep:files=10|system"] <= 800 * 3 // 4, opens


# Paths whose words are those of a kept file, and which stand for another one or for none.
ROUNDABOUT = SAID + r"""
def content(name, flags=os.O_RDONLY):
    fd = os.open(name, flags)
    try:
        return os.read(fd, 100)
    finally:
        os.close(fd)
os.makedirs("far/below")
os.symlink("far/below", "link")
for name, text in (("a.log", b"the kept one"), ("far/a.log", b"the other one")):
    with open(name, "wb") as file:
        file.write(text)
FORMS = ("a.log", "a.log/", "a.log//", "a.log/.", "a.log/..", "a.log/../a.log", "nowhere/../a.log",
         "link/../a.log", "./a.log", ".//./a.log", os.getcwd() + "//a.log", "far/../a.log")
for flags in (os.O_RDONLY, os.O_RDWR | os.O_APPEND):
    for first in FORMS:  # each is opened behind each other one
        for name in FORMS:
            said((flags, first), lambda: content(first, flags))
            said(name, lambda: content(name, flags))
            said("stat", lambda: os.stat(name).st_size)
            said("lstat", lambda: os.lstat(name).st_size)
            said("access", lambda: os.access(name, os.R_OK))
"""


def test_a_path_that_leads_elsewhere_is_not_taken_by_its_words(execute, preload, tmp_path):
    said = []
    rule = {"WEIR_RULES": "weir-rules 1\nrule source=test:1:1 name=*.log "
                          "stack=keep:always=1|system\n"}
    for name, env in (("plain", {}), ("kept", {"LD_PRELOAD": str(preload), **rule})):
        (tmp_path / name).mkdir()
        done = execute([sys.executable, "-c", ROUNDABOUT], cwd=tmp_path / name, env=env).ok()
        said.append(done.stdout.replace(str(tmp_path / name), ""))
    assert said[1] == said[0]
    assert "a.log/ ENOTDIR" in said[0] and "link/../a.log b'the other one'" in said[0]


SIZES = """
import os
fd = os.open("a.dat", os.O_RDWR | os.O_CREAT, 0o644)
for n in range(1, 4):
    os.write(fd, b"12345")
    print(os.stat("a.dat").st_size, os.lstat("a.dat").st_size)
"""


def test_a_size_is_not_remembered_where_nobody_knows_who_writes_the_file(preload, tmp_path):
    """Without the node's registry no opening for writing is counted, the program's own neither."""
    job = f"pytest-{uuid.uuid4().hex[:12]}"
    in_the_way = Path(f"/dev/shm/weir.{os.geteuid()}.{job}")
    in_the_way.touch()
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=keep:always=1|system\n"
    env = clean_environment({"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job})
    try:
        done = subprocess.run([sys.executable, "-c", SIZES], cwd=tmp_path, env=env, timeout=300,
            capture_output=True, text=True, check=True)
    finally:
        in_the_way.unlink()
    assert done.stdout == "5 5\n10 10\n15 15\n"
