# SPDX-License-Identifier: Apache-2.0
"""Layer stage: what is on the tier and at its place at each moment, and that programs see by every
name what they see without it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from weir_stage import drained, real_files, tier_files, wait_until

# Each line is what one call gave; run plain and under the layer. Files that match: *.dat.
NAMES = r"""
import ctypes, errno, os, subprocess, sys
def said(what, call):
    try:
        print(what, call(), flush=True)
    except OSError as error:
        print(what, errno.errorcode[error.errno], flush=True)
def put(name, text, flags=os.O_TRUNC, mode=0o644):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | flags, mode)
    n = os.write(fd, text)
    os.close(fd)
    return n
def content(name):
    with open(name, "rb") as file:
        return file.read()
def listed(name="."):
    return sorted(os.listdir(name)), sorted(e.name for e in os.scandir(name) if e.is_file())
libc = ctypes.CDLL(None, use_errno=True)
libc.realpath.restype = libc.canonicalize_file_name.restype = ctypes.c_char_p
def real(name, room=True):
    found = (libc.realpath(name.encode(), ctypes.create_string_buffer(4096)) if room
        else libc.canonicalize_file_name(name.encode()))
    return (os.path.relpath(found.decode(), os.path.realpath(".")) if found
        else errno.errorcode[ctypes.get_errno()])
os.mkdir("d")
os.umask(0o027)
said("put", lambda: put("a.dat", b"one"))
said("put", lambda: put("d/b.dat", b"two", mode=0o777))
said("stat", lambda: [(s.st_size, oct(s.st_mode), s.st_nlink) for s in (os.stat("a.dat"), os.lstat("d/b.dat"), os.stat("d/../d/b.dat"))])
said("listed", lambda: (listed(), listed("d")))
said("exclusive", lambda: put("a.dat", b"x", os.O_EXCL))
said("append", lambda: put("a.dat", b" more", os.O_APPEND))
said("content", lambda: content("a.dat"))
said("in place", lambda: put("a.dat", b"O", 0))
said("content", lambda: content("a.dat"))
said("access", lambda: (os.access("a.dat", os.R_OK), os.access("no.dat", os.F_OK), os.access("d/b.dat", os.X_OK)))
said("not there", lambda: os.stat("no.dat"))
said("not there", lambda: put("nodir/c.dat", b"x"))
said("readlink", lambda: os.readlink("a.dat"))
said("rename", lambda: os.rename("a.dat", "d/c.dat"))
said("gone", lambda: os.stat("a.dat"))
said("content", lambda: content("d/c.dat"))
said("rename over", lambda: os.rename("d/c.dat", "d/b.dat"))
said("content", lambda: content("d/b.dat"))
said("listed", lambda: (listed(), listed("d")))
said("rename to another kind", lambda: os.rename("d/b.dat", "d/plain"))
said("content", lambda: content("d/plain"))
said("rename from another kind", lambda: (put("other", b"plain one"), os.rename("other", "d/plain")))
said("content", lambda: (content("d/plain"), listed("d")))
said("rename", lambda: os.rename("d/no.dat", "d/x.dat"))
said("over a directory", lambda: (put("a.dat", b"again"), os.mkdir("e.dat"), os.rename("a.dat", "e.dat")))
said("to no directory", lambda: os.rename("a.dat", "nodir/a.dat"))
said("to itself", lambda: os.rename("a.dat", "./a.dat"))
said("directory of that name", lambda: os.mkdir("a.dat"))
said("link of that name", lambda: os.symlink("d", "a.dat"))
said("symlink", lambda: (os.symlink("a.dat", "s"), content("s"), os.stat("s").st_size, os.lstat("s").st_size))
said("through it", lambda: (put("s", b"by a link"), content("a.dat"), os.readlink("s")))
said("links", lambda: (os.symlink("s", "d/up"), os.symlink("d/../s", "s2"), os.symlink("no.dat", "s3"), content("s2"), os.stat("s2").st_size))
said("real path", lambda: [real(name) for name in ("a.dat", "./d/../a.dat", "s", "s2", "s3", "d/up", "no.dat", "nodir/x.dat", "", os.path.abspath("d/b.dat"))])
said("real path", lambda: [real(name, False) for name in ("a.dat", "s2", "no.dat")])
said("real path", lambda: [subprocess.run(command, capture_output=True, text=True).stdout.replace(os.getcwd(), "") for command in (["realpath", "s2", "d/../a.dat"], ["readlink", "-f", "s2"])])
said("links", lambda: [os.unlink(name) for name in ("d/up", "s2", "s3")])
said("link", lambda: (os.link("a.dat", "hard"), content("hard"), os.stat("hard").st_nlink))
said("one file", lambda: (os.path.samefile("a.dat", "hard"), os.path.samestat(os.fstat(os.open("a.dat", os.O_RDONLY)), os.stat("hard"))))
said("written by one name", lambda: (put("a.dat", b"by one"), content("hard"), put("hard", b"by other"), content("a.dat")))
said("in place", lambda: (put("a.dat", b"IN", 0), content("hard"), os.path.samefile("a.dat", "hard")))
said("over itself", lambda: (os.rename("a.dat", "hard"), listed()))
said("third", lambda: (os.link("hard", "third.dat"), os.stat("third.dat").st_nlink, os.path.samefile("a.dat", "third.dat"), os.unlink("third.dat")))
said("alone again", lambda: (put("j.dat", b"j"), os.link("j.dat", "k.dat"), os.unlink("j.dat"), put("k.dat", b"k"), content("k.dat"), os.stat("k.dat").st_nlink))
said("chmod", lambda: (os.chmod("a.dat", 0o600), oct(os.stat("a.dat").st_mode)))
said("utime", lambda: (os.utime("a.dat", (5, 7)), os.stat("a.dat").st_mtime))
said("put", lambda: put("f.dat", b"0123456789"))
said("truncate", lambda: (os.truncate("f.dat", 4), content("f.dat"), os.stat("f.dat").st_size))
said("attributes", lambda: (os.chmod("f.dat", 0o640), os.utime("f.dat", (5, 9)), oct(os.stat("f.dat").st_mode), os.stat("f.dat").st_mtime))
said("not empty", lambda: (put("e.dat/in.dat", b"x"), os.rmdir("e.dat")))
said("child", lambda: subprocess.run("cat f.dat e.dat/in.dat; ls e.dat *.dat; wc -c < f.dat; test -e f.dat && echo there; find . -name '*.dat' | sort", shell=True, capture_output=True, text=True).stdout)
said("unlink", lambda: (os.unlink("f.dat"), listed()))
said("gone", lambda: os.unlink("f.dat"))
said("rename a directory", lambda: (os.rename("e.dat", "g"), listed("g"), content("g/in.dat")))
said("remove", lambda: (os.remove("g/in.dat"), os.rmdir("g"), listed()))
put("was.dat", b"file")
said("rmdir of a file", lambda: os.rmdir("was.dat"))
os.makedirs("h.dat/i.dat"); put("h.dat/i.dat/in.dat", b"x"); os.remove("h.dat/i.dat/in.dat")
said("a file for a directory", lambda: (os.rmdir("h.dat/i.dat"), os.rmdir("h.dat"),
    os.rename("was.dat", "h.dat"), open("h.dat", "rb").read(), put("h.dat", b"again"), listed()))
os.remove("h.dat")
fd = os.open("h.dat", os.O_RDWR | os.O_CREAT, 0o644)
os.write(fd, b"held")
said("while it is open", lambda: (os.stat("h.dat").st_size, content("h.dat"), os.fstat(fd).st_size))
said("renamed while open", lambda: (os.rename("h.dat", "i.dat"), os.write(fd, b" and more"), content("i.dat")))
said("linked while open", lambda: content("i.dat"))
said("removed while open", lambda: (os.unlink("i.dat"), os.pread(fd, 20, 0), os.path.exists("i.dat")))
os.close(fd)
said("script", lambda: (put("run.dat", b"#!/bin/sh\necho ran $1\n", mode=0o755), subprocess.run(["./run.dat", "well"], capture_output=True, text=True).stdout))
import shutil
said("tree", lambda: (shutil.copytree("d", "copy"), shutil.rmtree("copy"), listed()))
said("empty file", lambda: (put("empty.dat", b""), os.stat("empty.dat").st_size))
said("read and write", lambda: open("empty.dat", "r+b").write(b"now"))
said("content", lambda: content("empty.dat"))
for i in range(300):
    put("m%d.dat" % i, b"x" * i)
said("many", lambda: (len(listed()[0]), sum(os.stat("m%d.dat" % i).st_size for i in range(300))))
said("readable by nobody", lambda: put("secret.dat", b"x", mode=0))
"""


@pytest.mark.parametrize("drain", ["never", "async"])
def test_names_are_as_without_the_layer(run, tmp_path, drain):
    plain = tmp_path / "plain"
    plain.mkdir()
    expected = subprocess.run([sys.executable, "-c", NAMES], cwd=plain, capture_output=True,
        text=True, timeout=300, check=True)
    result = run(sys.executable, "-c", NAMES, drain=drain)
    differ = [pair for pair in zip(result.stdout.splitlines(), expected.stdout.splitlines())
        if pair[0] != pair[1]]
    assert differ == [] and result.stdout == expected.stdout, result.stderr
    assert result.stderr == ""


def test_a_file_goes_to_its_place_in_the_background(run, tmp_path, tier):
    run("sh", "-c", "echo data > out.dat; echo no > out.txt", drain="async").check_returncode()
    wait_until(lambda: (tmp_path / "staged/out.dat").exists())
    wait_until(lambda: drained(tier))
    assert real_files(tmp_path / "staged") == {"out.dat": b"data\n", "out.txt": b"no\n"}
    assert tier_files(tier, tmp_path / "staged") == {"out.dat": b"data\n"}


def test_scratch_stays_on_the_tier(run, tmp_path, tier):
    run("sh", "-c", "echo data > out.dat", drain="never").check_returncode()
    assert run("cat", "out.dat").stdout == "data\n"
    assert real_files(tmp_path / "staged") == {}
    assert tier_files(tier, tmp_path / "staged") == {"out.dat": b"data\n"}


def test_a_file_that_is_open_is_not_at_its_place(run, tmp_path, tier):
    script = ("import os,time\nf = open('out.dat', 'w')\nf.write('first')\nf.flush()\n"
              "open('other.dat', 'w').write('x')\n"
              "while not os.path.exists('go'): time.sleep(0.01)\nf.write(' second')\n")
    where = tmp_path / "staged"
    where.mkdir()
    from threading import Thread
    thread = Thread(target=lambda: run(sys.executable, "-c", script, drain="async"))
    thread.start()
    wait_until(lambda: (where / "other.dat").exists())
    assert not (where / "out.dat").exists()
    (where / "go").touch()
    thread.join()
    wait_until(lambda: (where / "out.dat").exists())
    assert (where / "out.dat").read_text() == "first second"


def test_fsync_reaches_the_place_where_the_rule_says_so(run, tmp_path, tier):
    script = ("import os\nfd = os.open('out.dat', os.O_RDWR | os.O_CREAT, 0o644)\n"
              "os.write(fd, b'first')\nos.fsync(fd)\nprint(open('/proc/self/root' + os.getcwd() + "
              "'/out.dat').read())\nos.write(fd, b' second')\nos.kill(os.getpid(), 9)\n")
    result = run(sys.executable, "-c", script, drain="never", stack=":fsync=drain")
    assert result.returncode == -9
    assert real_files(tmp_path / "staged") == {"out.dat": b"first"}
    assert tier_files(tier, tmp_path / "staged") == {"out.dat": b"first second"}


def test_locks_stay_when_fsync_copies_the_file(run):
    script = """
import fcntl, os, subprocess, sys
f = open("out.dat", "w+"); fcntl.lockf(f, fcntl.LOCK_EX); f.write("some"); f.flush()
os.fsync(f.fileno()); g = open("out.dat", "r+"); g.write("more"); g.flush(); os.fsync(g.fileno())
asks = "import fcntl; fcntl.lockf(open('out.dat', 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
print(subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True).stderr)
"""
    done = run(sys.executable, "-c", script, drain="never", stack=":fsync=drain")
    assert "BlockingIOError" in done.stdout, done.stdout + done.stderr


def test_the_copy_on_the_tier_is_read_as_long_as_it_is_equal(run, tmp_path, tier):
    run("sh", "-c", "echo data > out.dat", drain="async").check_returncode()
    wait_until(lambda: drained(tier))
    place = tmp_path / "staged/out.dat"
    copy = Path(f"{tier}/tree{place}")
    copy.write_text("tier\n")  # to see which is read
    assert run("cat", "out.dat").stdout == "tier\n"
    place.write_text("changed by another node\n")
    assert run("cat", "out.dat").stdout == "changed by another node\n"
    place.unlink()
    assert run("cat", "out.dat").returncode == 1


def test_a_file_that_went_to_its_place_is_the_same_one_by_name_and_by_descriptor(run, tier):
    run("sh", "-c", "echo data > out.dat", drain="async").check_returncode()
    wait_until(lambda: drained(tier))
    script = ("import os\nfd = os.open('out.dat', os.O_RDONLY)\n"
              "for s in (os.stat('out.dat'), os.lstat('out.dat'), os.fstat(fd)):\n"
              "    print(s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_mode)")
    assert len(set(run(sys.executable, "-c", script).stdout.splitlines())) == 1
    assert run("cp", "-p", "out.dat", "copy.txt").stderr == ""


def test_a_full_tier_sends_files_to_their_place(weir, run, tmp_path, tier):
    script = "for i in 1 2 3; do head -c 6000 /dev/zero > $i.dat; done"
    run("sh", "-c", script, drain="never", stack=":capacity=10000").check_returncode()
    assert sorted(real_files(tmp_path / "staged")) == ["3.dat"]
    assert sorted(tier_files(tier, tmp_path / "staged")) == ["1.dat", "2.dat"]


def test_a_tier_of_others_is_refused(run, tmp_path, tier):
    tier.mkdir()
    tier.chmod(0o777)
    result = run("sh", "-c", "echo data > out.dat")
    assert "others may write to it" in result.stderr
    assert real_files(tmp_path / "staged") == {"out.dat": b"data\n"}


def test_a_tier_that_cannot_be_made_is_reported_with_path_and_reason(run, tmp_path, tier):
    path = tier / "a"
    done = run("sh", "-c", "echo data > out.dat", WEIR_RULES="weir-rules 1\nrule "
        f"source=test:1:1 name=*.dat stack=stage:tier={path}|system\n")
    assert f"stage: tier={path}: cannot be made: the directory above it is not there" in done.stderr
    assert real_files(tmp_path / "staged") == {"out.dat": b"data\n"}
    tier.write_text("")
    assert f"tier={tier}: not a directory" in run("true").stderr
    tier.unlink()


def test_a_program_without_a_file_for_the_tier_does_not_make_it(run, tmp_path, tier):
    run("sh", "-c", "echo x > out.txt; cat out.txt; ls; mv out.txt other; rm other; "
        "cat none.dat")
    assert not tier.exists()
    # A program that runs already sees what another one puts there.
    script = ("import os, subprocess\n"
              "print(os.path.exists('out.dat'))\n"
              "subprocess.run(['sh', '-c', 'echo data > out.dat'])\n"
              "print(os.stat('out.dat').st_size, open('out.dat').read(), os.listdir())\n")
    assert run(sys.executable, "-c", script).stdout == "False\n5 data\n ['out.dat']\n"
    assert tier.stat().st_mode & 0o777 == 0o700
    assert real_files(tmp_path / "staged") == {}


def test_attributes_go_with_the_file(run, tmp_path, tier):
    script = "umask 027; echo x > out.dat; chmod 751 out.dat; touch -d @77 out.dat"
    run("sh", "-c", script, drain="async").check_returncode()
    wait_until(lambda: drained(tier))
    about = (tmp_path / "staged/out.dat").stat()
    assert about.st_mode & 0o777 == 0o751 and about.st_mtime == 77


def test_attributes_that_a_file_got_at_its_place_stay_when_it_is_written_again(run, tmp_path, tier):
    """The copy on the tier has those of before; a call by name changes the file at its place."""
    place = tmp_path / "staged/out.dat"
    run("sh", "-c", "umask 027; echo x > out.dat", drain="async").check_returncode()
    wait_until(lambda: drained(tier))
    run("chmod", "751", "out.dat").check_returncode()
    if os.geteuid() == 0:
        run("chown", "1234:4321", "out.dat").check_returncode()
    before = place.stat()
    run("sh", "-c", "echo y >> out.dat", drain="async").check_returncode()
    wait_until(lambda: place.read_text() == "x\ny\n" and drained(tier))
    after = place.stat()
    assert after.st_ino != before.st_ino  # it was written anew
    assert after.st_mode & 0o777 == 0o751
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)


def test_a_copy_may_be_read_by_whom_the_file_may_be(run, tmp_path, tier):
    run("sh", "-c", "echo x > out.dat", drain="async").check_returncode()
    wait_until(lambda: drained(tier))
    (tmp_path / "staged/out.dat").chmod(0o200)  # by another node
    shown = run("cat", "out.dat")
    assert shown.returncode == (0 if os.geteuid() == 0 else 1)
    assert Path(f"{tier}/tree{tmp_path}/staged/out.dat").stat().st_mode & 0o777 == 0o200


def test_a_second_name_that_comes_while_the_file_is_written_stays_one_of_it(run, tmp_path, tier):
    """link brings the file to its place and links it there; another process may open it between."""
    where = tmp_path / "staged"
    run("sh", "-c", "echo 'what was there before' > a.dat", drain="async").check_returncode()
    wait_until(lambda: drained(tier))
    script = ("import os, subprocess\nwith open('a.dat', 'w') as file:\n    file.write('after')\n"
              "    file.flush()\n    subprocess.run(['ln', 'a.dat', 'other'], check=True,\n"
              "        env={'PATH': os.environ['PATH']})  # the kernel's part of it\n")
    run(sys.executable, "-c", script, drain="async").check_returncode()
    wait_until(lambda: (where / "a.dat").read_text() == "after")
    assert (where / "other").samefile(where / "a.dat")
    wait_until(lambda: tier_files(tier, where) == {})  # no copy of a file with two names
    assert sorted(one.name for one in where.iterdir()) == ["a.dat", "other"]


COUNTED = r"""
import struct
def used():
    with open("{tier}/control", "rb") as control:
        return struct.unpack_from("Q", control.read(48), 40)[0]
def put(name, size):
    with open(name, "wb") as file:
        file.write(bytes(size))
"""


def test_bytes_of_a_tier_are_counted_when_files_are_closed(run, tier):
    """While the daemon counts them anew, which it does all the time when a tier is nearly full."""
    script = COUNTED.format(tier=tier) + r"""
import time
put("large.dat", 9_000_000)
time.sleep(0.3)  # the daemon begins
for i in range(500):
    put("%d.dat" % i, 1000)
    assert used() == 9_000_000 + 1000 * (i + 1), (i, used())
file = open("0.dat", "ab")
file.write(bytes(1000))
file.flush()
time.sleep(0.3)
assert used() == 9_499_000, used()  # it is counted when it is closed
file.close()
assert used() == 9_501_000, used()
"""
    done = run(sys.executable, "-c", script, drain="never", stack=":capacity=10000000")
    assert (done.returncode, done.stderr) == (0, "")


DIRECT = """
import mmap, os
def put(name, content):
    with open(name, "wb") as f: f.write(content)
block = mmap.mmap(-1, 4096)
put("closed.dat", b"a" * 4096); put("open.dat", b"b" * 4096); f = open("open.dat", "r+b")
for name in ("closed.dat", "open.dat"):
    fd = os.open(name, os.O_RDWR | os.O_DIRECT)
    print(os.preadv(fd, [block], 0), block[:2])
    block[:] = b"c" * 4096
    print(os.pwritev(fd, [block], 4096), os.fstat(fd).st_size); os.close(fd)
f.seek(4096); print(f.read(2)); f.write(b"d"); f.close()
print([(os.stat(name).st_size, open(name, "rb").read()[4094:4099]) for name in ("closed.dat",
    "open.dat")])
"""


@pytest.mark.parametrize("drain", ["never", "async"])
def test_an_open_with_o_direct_sees_what_is_newer_on_the_tier(run, tmp_path, drain, weir, tier):
    plain = tmp_path / "plain"
    plain.mkdir()
    expected = subprocess.run([sys.executable, "-c", DIRECT], cwd=plain, capture_output=True,
        text=True, timeout=300, check=False)
    if "Invalid argument" in expected.stderr:
        pytest.skip("the file system of the tests knows no O_DIRECT")
    done = run(sys.executable, "-c", DIRECT, drain=drain)
    assert (done.stdout, done.stderr) == (expected.stdout, "")
    weir("stage", "recover", tier).ok()
    for name in ("closed.dat", "open.dat"):
        if drain == "async":
            assert (tmp_path / "staged" / name).read_bytes() == (plain / name).read_bytes()


def test_what_exists_and_is_changed_in_place_is_left_there(run, tmp_path, tier):
    where = tmp_path / "staged"
    where.mkdir()
    (where / "log.dat").write_text("before\n")
    run("sh", "-c", "echo after >> log.dat").check_returncode()
    assert (where / "log.dat").read_text() == "before\nafter\n"
    run("sh", "-c", "echo anew > log.dat").check_returncode()
    assert (where / "log.dat").read_text() == "before\nafter\n"
    assert run("cat", "log.dat").stdout == "anew\n"


def test_files_that_wait_for_the_end_of_the_step_go_there_then(weir, tmp_path, tier):
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[[rule]]\nname = "*.dat"\nstack = "stage:tier={tier}:drain=end"\n')
    script = f"echo data > {tmp_path}/out.dat; test ! -s /proc/self/root{tmp_path}/out.dat"
    weir("run", "--rules", rules, "--", "sh", "-c", f"{script}; cat {tmp_path}/out.dat").ok()
    assert (tmp_path / "out.dat").read_text() == "data\n"


def test_what_is_left_is_recovered_or_listed(weir, run, tmp_path, tier):
    where = tmp_path / "staged"
    run("sh", "-c", "mkdir d; echo a > d/a.dat; echo b > b.dat", drain="end").check_returncode()
    run("sh", "-c", "echo scratch > s.dat", drain="never").check_returncode()
    status = weir("stage", "status", tier).ok().stdout
    assert "3 files with 12 bytes; newer than at their place: 3 files" in status
    shutil.rmtree(where / "d")
    left = weir("stage", "recover", tier)
    assert left.returncode == 1 and f"{where}/d/a.dat: 2 bytes on the tier: No such" in left.stdout
    assert f"{where}/s.dat: 8 bytes on the tier: stays, by drain=never" in left.stdout
    assert "1 file with 2 bytes brought to their place, 1 file with 2 bytes left, 1 file with 8 bytes" in left.stdout
    (where / "d").mkdir()
    done = weir("stage", "recover", tier).ok()
    assert "1 file with 2 bytes brought to their place, 0 files" in done.stdout
    assert "1 of 1 files, 2 of 2 bytes, " in done.stderr  # progress
    assert real_files(where) == {"b.dat": b"b\n", "d/a.dat": b"a\n"}


def test_what_a_killed_program_had_not_closed_does_not_come_to_its_place(weir, run, tmp_path,
        tier):
    where = tmp_path / "staged"
    script = ("import os\nf = open('half.dat', 'w'); f.write('half'); f.flush()\n"
              "open('whole.dat', 'w').write('whole')\nos.kill(os.getpid(), 9)\n")
    run(sys.executable, "-c", script, drain="async")
    wait_until(lambda: (where / "whole.dat").exists())
    left = weir("stage", "recover", tier)
    assert left.returncode == 1
    assert f"{where}/half.dat: 4 bytes on the tier: its writer was killed before" in left.stdout
    assert real_files(where) == {"whole.dat": b"whole"}
    weir("stage", "recover", "--unfinished", tier).ok()
    assert real_files(where) == {"half.dat": b"half", "whole.dat": b"whole"}


def test_files_left_open_at_the_end_are_closed_by_it(run, tmp_path, tier):
    script = ("import os\na = os.open('a.dat', os.O_WRONLY | os.O_CREAT)\nos.write(a, b'x')\n"
              "if os.fork() == 0: os._exit(0)\nos.wait()\n")
    run(sys.executable, "-c", script + "os._exit(0)", drain="async").check_returncode()
    run("sh", "-c", "exec sh -c 'echo handed on' > b.dat", drain="async").check_returncode()
    wait_until(lambda: len(real_files(tmp_path / "staged")) == 2)


REPLACES = """
import os
with open("a.dat", "w") as file:
    file.write("old")
os.link("a.dat", "b.dat")
with open("new.dat", "w") as file:
    file.write("new")
os.rename("new.dat", "b.dat")
print(sorted(os.listdir(".")), open("a.dat").read(), open("b.dat").read())
"""


@pytest.mark.parametrize("drain", ["async", "end"])
def test_a_rename_onto_one_of_two_hard_links_leaves_the_other_file_alone(weir, run, tmp_path,
        tier, drain):
    """As Mercurial does before it changes a file that it has cloned by a link."""
    done = run(sys.executable, "-c", REPLACES, drain=drain)
    assert done.stdout == "['a.dat', 'b.dat'] old new\n", done.stderr
    weir("stage", "recover", tier).ok()
    staged = tmp_path / "staged"
    assert (staged / "a.dat").read_text() == "old"
    assert (staged / "b.dat").read_text() == "new"
