# SPDX-License-Identifier: Apache-2.0
"""Layers that store a file in another form (cos, stripe): the program sees the plain file, and what
lies on disk is what the layer's page says. A seeded program makes the same calls with and without
the layer; every result must be the same."""

from __future__ import annotations

import os
import random
import sys

import pytest

from weir.stripe import join, read_index
from weir_cos import unblocked

PLAYER = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static unsigned long state;
static unsigned long next(unsigned long below) { state = state * 6364136223846793005ul + 1442695040888963407ul; return (state >> 33) % below; }
static char data[70000];
static void say(const char* what, long result) { printf("%s %ld %d\n", what, result, result < 0 ? errno : 0); }
int main(int argc, char** argv) {
  state = strtoul(argv[2], 0, 10);
  int calls = atoi(argv[3]);
  int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return 1;
  for (int i = 0; i < calls; ++i) {
    unsigned long n = next(4) == 0 ? next(sizeof data) : next(300), at = next(200000);
    struct stat about;
    switch (next(11)) {
      case 0: case 1: memset(data, 'a' + i % 26, n); say("write", write(fd, data, n)); break;
      case 2: memset(data, 'A' + i % 26, n); say("pwrite", pwrite(fd, data, n, at)); break;
      case 3: case 4: case 5: {
        long got = next(2) ? read(fd, data, n) : pread(fd, data, n, at);
        unsigned long sum = 0;
        for (long k = 0; k < got; ++k) sum = sum * 31 + (unsigned char)data[k];
        say("read", got);
        printf("sum %lu\n", sum);
        break;
      }
      case 6: say("seek", lseek(fd, (long)next(3) == 0 ? 0 : (long)next(100000), next(3) == 0 ? SEEK_END : SEEK_SET)); break;
      case 7: if (next(4) == 0) say("truncate", ftruncate(fd, at)); break;
      case 8: fstat(fd, &about); say("size", about.st_size); break;
      case 9: if (next(8) == 0) say("fsync", fsync(fd)); break;
      case 10:
        if (next(8) == 0) { say("close", close(fd)); fd = open(argv[1], next(2) ? O_RDWR : O_RDWR | O_APPEND); say("open", fd < 0 ? -1 : 0); }
        break;
    }
  }
  say("close", close(fd));
}
"""


def played(execute, program, path, seed, calls, env=None):
    return execute([program, path, str(seed), str(calls)], env=env, timeout=120).ok().stdout


@pytest.fixture
def layered(weir, tmp_path):
    """``layered(stack, command)`` runs a command with the stack on files that are called layered*.
    """

    def run(stack, *command):
        rules = tmp_path / "rules.toml"
        rules.write_text(f'[[rule]]\nname = "layered*"\nstack = "{stack}"\n')
        return weir("run", "--rules", rules, "--", *command, cwd=tmp_path, timeout=120).ok()

    return run


@pytest.mark.parametrize("buffer", ["cos:1", "cos:3", "cos:48", "event | cos:2 | event"])
def test_cos_is_the_plain_file_to_the_program_and_blocked_on_disk(layered, execute, cc, tmp_path,
        buffer):
    program = cc(PLAYER)
    seed = random.randrange(2**31)
    print("seed", seed)
    plain = played(execute, program, tmp_path / "plain", seed, 1500)
    done = layered(buffer, program, tmp_path / "layered", seed, 1500)
    assert done.stdout == plain
    raw = (tmp_path / "layered").read_bytes()
    assert len(raw) % 4096 == 0
    assert unblocked(raw) == (tmp_path / "plain").read_bytes()


@pytest.mark.parametrize("unit", ["1", "8KiB", "64KiB"])
def test_stripe_is_the_plain_file_to_the_program_and_pieces_on_disk(layered, execute, cc, tmp_path,
        unit):
    program = cc(PLAYER)
    seed = random.randrange(2**31)
    print("seed", seed)
    directories = [tmp_path / name for name in "abc"]
    for directory in directories:
        directory.mkdir()
    plain = played(execute, program, tmp_path / "plain", seed, 1500)
    stack = f"stripe:dirs={','.join(map(str, directories))}:unit={unit}"
    done = layered(stack, program, tmp_path / "layered", seed, 1500)
    assert done.stdout == plain
    pieces = read_index(tmp_path / "layered").pieces
    assert [piece.parent for piece in pieces] == directories
    join(tmp_path / "layered")
    assert (tmp_path / "layered").read_bytes() == (tmp_path / "plain").read_bytes()


def test_a_plain_file_stays_plain_under_both(layered, tmp_path, cc):
    (tmp_path / "layered").write_text("not blocked, not striped")
    directories = [tmp_path / name for name in "ab"]
    for directory in directories:
        directory.mkdir()
    for stack in ("cos:2", f"stripe:dirs={directories[0]},{directories[1]}"):
        assert layered(stack, "python3", "-c",
            "print(open('layered').read())").stdout == "not blocked, not striped\n"


GFORTRAN = """
program p
  implicit none
  integer :: i, k
  real(8) :: x(1000)
  open(11, file='layered_scf', form='unformatted', access='sequential', status='replace')
  do i = 1, 200
    x = real(i, 8)
    write(11) i, x(:mod(i * 37, 1000) + 1)
  end do
  rewind(11)
  do i = 1, 200
    read(11) k, x(:mod(i * 37, 1000) + 1)
    if (k /= i .or. any(x(:mod(i * 37, 1000) + 1) /= real(i, 8))) error stop 'record differs'
  end do
  close(11)
  open(11, file='layered_scf', form='unformatted', access='sequential', status='old', position='append')
  write(11) 201, x(:5)
  backspace(11)
  read(11) k
  if (k /= 201) error stop 'appended record differs'
  close(11)
  print *, 'fine'
end program p
"""


@pytest.mark.parametrize("stack", ["cos:48", "cos:1", "stripe"])
def test_gfortran_writes_rewinds_appends_and_reads(layered, execute, fc, tmp_path, stack):
    if stack == "stripe":
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        stack = f"stripe:dirs={tmp_path}/a,{tmp_path}/b:unit=8KiB"
    program = fc(GFORTRAN)
    assert layered(stack, program).stdout.strip() == "fine"
    plain = tmp_path / "plain"
    plain.mkdir()
    execute([program], cwd=plain).ok()
    found = tmp_path / "layered_scf"
    if stack.startswith("stripe"):
        join(found)
        assert found.read_bytes() == (plain / "layered_scf").read_bytes()
    else:
        assert unblocked(found.read_bytes()) == (plain / "layered_scf").read_bytes()


# Large reads of a file whose directories fail now and then: each ends in front of the first byte
# that did not come. Then with holes.
FAILING = """
import os, random, sys
path, control = sys.argv[1], sys.argv[2:]
data, chance, cut = random.Random(1).randbytes(600_000), random.Random(2), 0
with open(path, "wb", buffering=0) as file: assert file.write(data) == len(data)
fd = os.open(path, os.O_RDWR)
assert os.spawnvp(os.P_WAIT, control[0], control + ["fail=read:EIO:0.1:5"]) == 0
for i in range(100):
    at, n = chance.randrange(500_000), chance.choice((50_000, 600_000))
    try: got = os.pread(fd, n, at)
    except OSError as error:
        assert error.errno == 5
        continue
    assert got == data[at:at + len(got)], (at, n, len(got))
    cut += len(got) < len(data[at:at + n])
assert os.spawnvp(os.P_WAIT, control[0], control + ["fail=none"]) == 0
assert os.pread(fd, 600_000, 0) == data
os.pwrite(fd, b"end", 900_000)
assert os.pread(fd, 1_000_000, 100) == data[100:] + bytes(300_000) + b"end"
print(cut > 0)
"""


def test_a_large_read_of_a_striped_file_ends_where_a_directory_fails(layered, testfs):
    fs = testfs("direct")
    for name in "abc":
        (fs.backing / name).mkdir()
    stack = f"stripe:dirs={fs.path}/a,{fs.path}/b,{fs.path}/c:unit=4KiB"
    control = [sys.executable, "-m", "weir", "testfs", "control", fs.path]
    done = layered(stack, sys.executable, "-c", FAILING, fs.path / "layered", *control)
    assert done.stdout == "True\n"


# A striped file whose index cannot be read for a while, then in parts.
UNREADABLE = """
import errno, os, sys
path, control = sys.argv[1], sys.argv[2:]
data = bytes(range(256)) * 400
with open(path, "wb", buffering=0) as file: assert file.write(data) == len(data)
assert os.spawnvp(os.P_WAIT, control[0], control + ["fail=read:EIO"]) == 0
for flags in os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_TRUNC, os.O_WRONLY | os.O_CREAT | os.O_APPEND:
    try: fd = os.open(path, flags)
    except OSError as error: assert error.errno == errno.EIO, error
    else: print("open", os.write(fd, b"over the index") if flags != os.O_RDONLY else "")
assert os.spawnvp(os.P_WAIT, control[0], control + ["fail=none"]) == 0
with open(path, "rb") as file: assert file.read() == data
"""


def test_a_striped_file_whose_index_cannot_be_read_is_not_opened(layered, testfs):
    fs = testfs("direct")
    for name in "ab":
        (fs.backing / name).mkdir()
    stack = f"stripe:dirs={fs.path}/a,{fs.path}/b:unit=4KiB"
    control = [sys.executable, "-m", "weir", "testfs", "control", fs.path]
    assert layered(stack, sys.executable, "-c", UNREADABLE, fs.path / "layered",
        *control).stdout == ""
    assert len(read_index(fs.backing / "layered").pieces) == 2


BY_NAME = r"""
import os, sys
path = sys.argv[1]
with open(path, "wb", buffering=0) as file:
    file.write(bytes(range(256)) * 1500)
    print("open", os.stat(path).st_size)
print("closed", os.stat(path).st_size, os.path.getsize(os.path.relpath(path)), os.lstat(path).st_size)
os.symlink(path, path + ".link")
print("by a link", os.stat(path + ".link").st_size)
os.truncate(path, 300_001)
print("cut", os.stat(path).st_size, len(open(path, "rb").read()), open(path, "rb").read()[-3:])
os.truncate(path, 400_000)
print("made longer", os.stat(path).st_size, open(path, "rb").read().count(b"\0"))
os.rename(path, path + ".moved")
print("moved", os.stat(path + ".moved").st_size, sorted(e.stat().st_size for e in os.scandir(os.path.dirname(path)) if e.name.endswith(".moved")))
open(path, "wb").close()
print("empty", os.stat(path).st_size)
try:
    os.truncate(path, -1)
except OSError as error:
    print(error.errno)
os.chmod(path + ".moved", 0)
print("unreadable", os.path.exists(path + ".moved"))
"""


@pytest.mark.parametrize("stack", ["stripe:dirs={0}/a,{0}/b:unit=64KiB", "cos:16",
    "bufa:64KiB:4:always=1 | stripe:dirs={0}/a,{0}/b:unit=4KiB"])
def test_closed_files_have_their_size_by_name_and_are_cut_by_name(layered, execute, tmp_path,
        stack):
    for directory in ("plain", "a", "b", "files"):
        (tmp_path / directory).mkdir()
    command = [sys.executable, "-I", "-c", BY_NAME]
    plain = execute([*command, tmp_path / "plain" / "layered"]).ok()
    behind = layered(stack.format(tmp_path), *command, tmp_path / "files" / "layered")
    assert behind.stdout == plain.stdout
    assert behind.stderr == ""
    assert (tmp_path / "files" / "layered.moved").stat(
        ).st_size != 400_000, "another form lies on disk"


KILLED = r"""
import os, signal, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_APPEND)
for i in range(40):
    os.write(fd, bytes([65 + i % 26]) * 777)
if len(sys.argv) == 2:
    os.kill(os.getpid(), signal.SIGKILL)
"""
RAW = "weir-rules 1\nrule source=x:1 name={} stack={}|system\n"


@pytest.mark.parametrize("upper", ["bufa:65536:4:always=1", "gather:65536:4:always=1",
    "global:65536:4:always=1", "keep:always=1"])
def test_killed_below_a_layer_that_holds_bytes_the_stored_form_stays_whole(execute, preload,
        tmp_path, upper):
    """Nobody could write bytes of such a layer in the stored form: none wait there. Also in orders
    that the rules' compiler refuses."""
    for directory in ("a", "b", "files"):
        (tmp_path / directory).mkdir()
    execute([sys.executable, "-I", "-c", KILLED, tmp_path / "plain", "and go on"]).ok()
    stripe = f"stripe:dirs={tmp_path}/a,{tmp_path}/b:unit=4096"
    for name, stack in ("striped", f"{upper}|{stripe}"), ("blocked", "cos:65536"), ("both",
            f"{upper}|cos:65536"):
        env = {"LD_PRELOAD": str(preload), "WEIR_RULES": RAW.format(name, stack),
            "WEIR_JOB": tmp_path.name + name}
        execute([sys.executable, "-I", "-c", KILLED, tmp_path / "files" / name], env=env)
        place = f"/dev/shm/weir.{os.geteuid()}.{tmp_path.name}{name}/0"
        if os.path.isdir(place):
            execute([preload.parent / "weir-drain", "--wait", place]).ok()
    join(tmp_path / "files" / "striped", tmp_path / "joined")
    assert (tmp_path / "joined").read_bytes() == (tmp_path / "plain").read_bytes()
    assert (tmp_path / "files" / "both").read_bytes() == (tmp_path / "files"
        / "blocked").read_bytes() != b""


BY_THE_KERNEL = r"""
import os, sys
fd, other = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), os.open("other", os.O_RDWR | os.O_CREAT)
os.write(fd, b"x" * 20_000)
for call in (lambda: os.posix_fallocate(fd, 0, 100_000), lambda: os.sendfile(other, fd, 0, 100), lambda: os.copy_file_range(fd, other, 100, 0)):
    try:
        print(call())
    except OSError as error:
        print(error.strerror)
print(os.fstat(fd).st_size, os.fstat(other).st_size, set(os.pread(fd, 30_000, 0)))
"""


@pytest.mark.parametrize("stack", ["stripe:dirs={0}/a,{0}/b:unit=64KiB", "cos:16"])
def test_what_the_kernel_would_do_to_the_stored_form_is_refused(layered, tmp_path, stack):
    for directory in ("a", "b", "files"):
        (tmp_path / directory).mkdir()
    done = layered(stack.format(tmp_path), sys.executable, "-I", "-c", BY_THE_KERNEL,
        tmp_path / "files" / "layered")
    assert done.stdout.split("\n") == ["Operation not supported", "Invalid argument",
        "Invalid argument", "20000 0 {120}", ""]
