# SPDX-License-Identifier: Apache-2.0
"""Layer pack under programs that know nothing of it: what they see, and what lies on disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
import zipfile

import pytest

from weir.pack import Container, verify

HEADER = "import os, sys; d = sys.argv[1]; os.chdir(d)\n"


@pytest.fixture
def run(preload, tmp_path):
    """``run(program, **options)`` runs Python text or a command under pack in ``tmp_path/d``."""
    directory = tmp_path / "d"
    directory.mkdir()
    job = f"pytest-pack-{uuid.uuid4().hex[:12]}"

    def run_one(program, options="always=1", status=0, patterns=("*.dat",)):
        rules = "weir-rules 1\n" + "".join(f"rule source=test:1 name={pattern} "
            f"stack=pack:name=plots.zip:{options}|system\n" for pattern in patterns)
        env = {**os.environ, "LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}
        if isinstance(program, str):
            program = [sys.executable, "-c", HEADER + program, str(directory)]
        done = subprocess.run(program, env=env, capture_output=True, text=True, timeout=300,
            cwd=directory, check=False)
        assert done.returncode == status, done.stderr
        return done.stdout

    run_one.directory = directory
    yield run_one
    shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)


def names(run):
    return sorted(os.listdir(run.directory))


FEW = """
for i in range(5):
    with open(f"{i}.dat", "w") as f: f.write(f"file {i}")
"""


def test_one_file_on_disk_that_zip_reads(run):
    run(FEW)
    assert names(run) == ["plots.zip"]
    with zipfile.ZipFile(run.directory / "plots.zip") as archive:
        assert archive.testzip() is None
        assert archive.read("3.dat") == b"file 3"
    if shutil.which("unzip"):
        subprocess.run(["unzip", "-tq", run.directory / "plots.zip"], check=True)
    assert verify(run.directory / "plots.zip") == (5, [])


def test_a_later_step_reads_lists_and_changes(run):
    run(FEW)
    said = run("""
print(sorted(os.listdir(".")), open("2.dat").read(), os.stat("4.dat").st_size)
os.rename("0.dat", "zero.dat"); os.unlink("1.dat")
with open("2.dat", "a") as f: f.write(" and more")
os.chmod("3.dat", 0o600); os.utime("3.dat", (5, 5)); os.truncate("4.dat", 2)
""")
    assert said == "['0.dat', '1.dat', '2.dat', '3.dat', '4.dat'] file 2 6\n"
    said = run("""
print(sorted(os.listdir(".")), open("2.dat").read(), open("zero.dat").read())
s = os.stat("3.dat"); print(oct(s.st_mode), s.st_mtime, open("4.dat").read())
print(os.path.exists("1.dat"), os.path.exists("0.dat"))
""")
    assert said.splitlines() == [
        "['2.dat', '3.dat', '4.dat', 'zero.dat'] file 2 and more file 0",
        "0o100600 5.0 fi", "False False"]
    assert names(run) == ["plots.zip"]


def test_mv_renames_within_the_container(run):
    run(["bash", "-c", "cp /etc/hostname a.dat; cp /etc/hostname b.dat; mv a.dat c.dat"])
    assert names(run) == ["plots.zip"]
    script = "mv -n c.dat b.dat; ls; mv -f b.dat c.dat; ls; cat <<< x > r.dat; mv -n c.dat r.dat; ls"
    assert run(["bash", "-c", script]).split() == ["b.dat", "c.dat", "c.dat", "c.dat", "r.dat"]
    assert names(run) == ["plots.zip", "r.dat"]
    assert (run.directory / "r.dat").read_text() == "x\n"


def test_openings_of_one_file_see_each_other(run):
    run("""
a = open("x.dat", "w", buffering=1)
a.write("one\\n")
assert open("x.dat").read() == "one\\n" and os.stat("x.dat").st_size == 4
child = os.fork()   # the file becomes a real one, which both share
a.write("two\\n")
if child == 0: os._exit(0)
os.wait(); a.close()
assert open("x.dat").read() == "one\\ntwo\\ntwo\\n"
""")
    assert (run.directory / "x.dat").read_text() == "one\ntwo\ntwo\n"


def test_two_processes_at_once(run):
    run("""
import subprocess
code = '''
import sys
for i in range(200):
    with open(f"{sys.argv[1]}.{i}.dat", "w") as f: f.write(sys.argv[1] * i)
'''
both = [subprocess.Popen([sys.executable, "-c", code, n]) for n in "ab"]
assert [p.wait() for p in both] == [0, 0]
assert len(os.listdir(".")) == 400 and open("b.150.dat").read() == "b" * 150
""")
    assert names(run) == ["plots.zip"]
    assert verify(run.directory / "plots.zip") == (400, [])


@pytest.mark.parametrize(("what", "program"), [
    ("larger than the limit", 'open("x.dat", "wb").write(bytes(9000))'),
    ("handed to another program", """
f = open("x.dat", "wb")
import subprocess
subprocess.run(["head", "-c", "9000", "/dev/zero"], stdout=f, check=True); f.close()
"""),
    ("mapped for writing", """
import mmap
f = open("x.dat", "w+b"); f.truncate(9000)
m = mmap.mmap(f.fileno(), 9000); f.close(); m[0] = 0; m.close()
"""),
    ("linked", 'open("x.dat", "wb").write(bytes(9000)); os.link("x.dat", "y.dat")'),
])
def test_what_becomes_a_real_file(run, what, program):
    run(program, "always=1:limit=8192" if "limit" in what else "always=1")
    assert (run.directory / "x.dat").read_bytes() == bytes(9000), what
    assert "plots.zip" not in names(run)


def test_files_are_real_at_the_end_where_the_rule_says_so(run):
    run(FEW + 'os.chmod("1.dat", 0o640); os.utime("1.dat", (7, 7))', "always=1:extract=onexit")
    assert names(run) == [f"{i}.dat" for i in range(5)]
    about = (run.directory / "1.dat").stat()
    assert (about.st_mode & 0o777, about.st_mtime) == (0o640, 7)


def test_a_removed_directory_takes_the_container_along(run):
    run(FEW)
    run('import shutil; shutil.rmtree(d)')
    assert not run.directory.exists()


def test_damaged_contents_are_an_error(run):
    run(FEW)
    container = run.directory / "plots.zip"
    with Container(container, "r+b") as archive:
        record = archive.files()["2.dat"]
        archive.file.seek(record.data_offset)
        archive.file.write(b"X")
    assert "Input/output error" in run("""
try: open("2.dat")
except OSError as error: print(error.strerror)
assert open("3.dat").read() == "file 3"
""")


def test_an_archive_of_others_is_left_alone(run):
    with zipfile.ZipFile(run.directory / "plots.zip", "w") as archive:
        archive.writestr("mine", "x")
    before = (run.directory / "plots.zip").read_bytes()
    run(FEW)
    assert names(run) == [*(f"{i}.dat" for i in range(5)), "plots.zip"]
    assert (run.directory / "plots.zip").read_bytes() == before


def test_names_that_the_rule_does_not_match_are_real(run):
    run('open("a.txt", "w").write("x"); open("a.dat", "w").write("y"); '
        'os.rename("a.txt", "b.dat"); print(sorted(os.listdir(".")))')
    assert names(run) == ["b.dat", "plots.zip"]


def test_links_lead_to_packed_files(run):
    run(FEW + 'os.symlink("1.dat", "latest"); assert open("latest").read() == "file 1"; '
        'assert os.path.getsize("latest") == 6')
    run('os.symlink("latest", "newest"); assert open("newest").read() == "file 1"')


def test_the_c_library_resolves_names_of_packed_files(run):
    run(FEW + """
import ctypes
real = ctypes.CDLL(None).realpath
real.restype = ctypes.c_char_p
os.symlink("1.dat", "latest")
os.symlink("./latest", "newest")
for name in "1.dat", "../" + os.path.basename(os.getcwd()) + "/1.dat", "latest", "newest":
    assert real(name.encode(), None) == os.path.realpath("1.dat").encode(), name
assert real(b"9.dat", None) is None
""")


def test_files_that_are_not_closed_are_stored_at_exit(run, cc):
    program = cc("""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  FILE *f = fopen("stream.dat", "w");
  fputs("by a stream", f);
  return write(open("number.dat", O_CREAT | O_WRONLY, 0644), "by number", 9) != 9;
}
""", name="pack_open_at_exit")
    run([str(program)])
    assert run('print(open("stream.dat").read(), open("number.dat").read())') == \
        "by a stream by number\n"


def test_modes_of_access(run):
    run("""
import fcntl
a = os.open("x.dat", os.O_WRONLY | os.O_CREAT, 0o666)
assert fcntl.fcntl(a, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
def refused(call, *arguments):
    try: call(*arguments)
    except OSError as error: return error.strerror
assert refused(os.read, a, 1) == "Bad file descriptor"
b = os.open("x.dat", os.O_RDONLY)
assert refused(os.write, b, b"x") == "Bad file descriptor"
assert refused(os.open, "x.dat", os.O_CREAT | os.O_EXCL) == "File exists"
""")


def test_rules_that_share_a_container_list_each_file_once(run):
    program = """
for name in ("1.dat", "2.out", "3.log"): open(name, "w").write(name)
print(sorted(os.listdir(".")), [open(name).read() for name in sorted(os.listdir("."))])
"""
    found = run(program, patterns=("*.dat", "*.out", "*.log"))
    assert found == "%s %s\n" % ((["1.dat", "2.out", "3.log"],) * 2)
    assert verify(run.directory / "plots.zip") == (3, [])
