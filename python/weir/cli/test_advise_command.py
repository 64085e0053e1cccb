# SPDX-License-Identifier: Apache-2.0
"""Command `weir advise`: its answer, the rules that it writes, healthy programs, bad input."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
from weir_testfs import Mounts

from weir.rules.matching.native import fits

pytestmark = pytest.mark.any_mpi

SLOW = """
import os, sys, time
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for _ in range(2000): os.write(f, bytes(4096))
"""


@pytest.fixture(scope="module")
def slow_run(weir, tmp_path_factory):
    """2,000 small writes to a file system where each is a request."""
    if not os.path.exists("/dev/fuse"):
        pytest.skip("no /dev/fuse here: this kernel or container has no FUSE")
    mounts, run = Mounts(tmp_path_factory.mktemp("testfs")), tmp_path_factory.mktemp("slow") / "run"
    place = mounts("direct", data_us=200)
    weir("trace", "-o", run, "--", sys.executable, "-c", SLOW, place.path / "out").ok()
    yield place, run
    mounts.close()


def test_findings_rules_and_what_they_do(weir, slow_run, tmp_path):
    place, run = slow_run
    rules = tmp_path / "rules.toml"
    found = weir("advise", run, "--write", rules)
    assert found.returncode == 1 and "1. small-requests: " in found.stdout
    text = rules.read_text()
    assert tomllib.loads(text)["rule"] == [
        {"path": str(place.path / "out"), "stack": "bufa:1MiB:4"}]
    assert "# small-requests: 2,000 writes" in text and "# expected to save: " in text
    place.reset()
    weir("run", "--rules", rules, "--", sys.executable, "-c", SLOW, place.path / "out").ok()
    assert place.stats().requests["write"] < 50
    assert (place.backing / "out").read_bytes() == bytes(2000 * 4096)


def test_json_has_the_same(weir, slow_run):
    place, run = slow_run
    found = json.loads(weir("advise", run, "--json").stdout)
    (one,) = found["findings"]
    assert one["finding"] == "small-requests" and one["paths"] == [str(place.path / "out")]
    low, high = (one["saving"]["critical"][key] for key in ("low", "high"))
    assert 0 < low < high <= found["wall_s"]
    assert found["rules"] == [{"path": str(place.path / "out"), "stack": "bufa:1MiB:4"}]


def test_a_run_with_its_rules_has_no_finding_left(weir, slow_run, tmp_path):
    place, run = slow_run
    rules = tmp_path / "rules.toml"
    weir("advise", run, "--write", rules)
    weir("trace", "-o", tmp_path / "b", "--rules", rules, "--", sys.executable, "-c", SLOW,
        place.path / "out").ok()
    assert "small-requests" not in weir("advise", tmp_path / "b").stdout


STRANGE = """
import os
for name in (b'bad\\xff', b'a[1]', b'what*?', b'back\\\\slash"', b'plain'):
    os.makedirs(b'd-' + name)
    f = os.open(b'd-' + name + b'/f' + name, os.O_WRONLY | os.O_CREAT)
    for _ in range(1000): os.write(f, bytes(4096))
"""


def test_names_that_patterns_or_toml_take_otherwise(weir, testfs, tmp_path, tmp_run):
    place, rules = testfs("direct", data_us=200), tmp_path / "rules.toml"
    weir("trace", "-o", tmp_run, "--", sys.executable, "-c", STRANGE, cwd=place.path).ok()
    found = weir("advise", tmp_run, "--write", rules)
    assert (found.returncode, found.stderr) == (1, "")
    text = rules.read_text("utf-8")
    made = [rule["path"] for rule in tomllib.loads(text)["rule"]]
    for name in ("a[1]", "what*?", 'back\\slash"', "plain"):
        path = str(place.path / f"d-{name}" / f"f{name}")
        assert [fits(one, path) for one in made].count(True) == 1, (made, path)
        assert not any(fits(one, path + "1") for one in made)
    assert "# not used: the name is not UTF-8" in text and len(made) == 4
    weir("run", "--rules", rules, "--", "true").ok()


HEALTHY = {
    "cp": "cp big copy",
    "cp -r": "cp -r tree copy",
    "cat": "cat big big > twice",
    "sort": "seq 300000 | sort -R > mixed; sort -n mixed > sorted",
    "tar": "tar cf all.tar tree; mkdir out; tar xf all.tar -C out",
    "gzip": "gzip -k big",
    "checksum": "sha256sum big tree/*",
    "dd": "dd if=/dev/zero of=zeros bs=1M count=50 status=none",
    "ls": "ls -lR tree; find tree -size +1k; du -s tree",
    "git": "git init -q . && git add tree && git -c user.name=a -c user.email=a@b commit -qm x",
    "sqlite3": "sqlite3 a.db 'create table t(x); insert into t select value from "
               "generate_series(1,20000); select sum(x) from t'",
    "sqlite3 with an index": "sqlite3 a.db 'create table t(x); insert into t select "
        "value||hex(randomblob(100)) from generate_series(1,50000); create index i on t(x)'",
    "git of large files": "git init -q . && git add big && git -c user.name=a -c user.email=a@b "
        "commit -qm x && git repack -qad && git fsck",
}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_programs_have_none(weir, tmp_path, tmp_run, name):
    command = HEALTHY[name]
    if shutil.which(command.split()[0]) is None:
        pytest.skip(f"{command.split()[0]} is not installed here")
    work = tmp_path / "work"
    (work / "tree").mkdir(parents=True)
    (work / "big").write_bytes(bytes(range(256)) * 80_000)
    for number in range(300):
        (work / "tree" / f"f{number}").write_bytes(bytes(1000 + number))
    weir("trace", "-o", tmp_run, "--", "sh", "-c", command, cwd=work).ok()
    found = weir("advise", tmp_run)
    assert (found.returncode, found.stderr) == (0, ""), found.stdout
    has_rest = "with much I/O time" in found.stdout
    assert ("Nothing worth changing: " in found.stdout) != has_rest
    assert ("No finding: " in found.stdout) == has_rest


def test_many_cheap_calls_are_stated_with_their_time_and_the_least_that_counts(weir, tmp_path,
        tmp_run):
    weir("trace", "-o", tmp_run, "--", sys.executable, "-c",
        "import os; fd = os.open('in', os.O_RDWR | os.O_CREAT)\n"
        "for _ in range(20000): os.pread(fd, 10, 0)", cwd=tmp_path).ok()
    said = " ".join(weir("advise", tmp_run).ok().stdout.split())
    if "with much I/O time" not in said:  # a busy machine
        assert re.search(r"Nothing worth changing: 20,0\d\d I/O calls took [\d.]+ ?m?s "
            r"\([\d.]+ us each\) in [\d.]+ ?m?s of wall time, and no file, nor all files alike in "
            r"name together, delays the run by [\d.]+ m?s \(", said), said


FORTRAN = """
program t
  integer :: i
  real(8) :: a(100000)
  a = 1
  open(10, file='res.dat', form='unformatted')
  do i = 1, 30
    write(10) a
  end do
  rewind(10)
  do i = 1, 30
    read(10) a
  end do
end program
"""


def test_results_that_fortran_reads_back_stay_where_they_are(weir, tmp_path, tmp_run):
    if shutil.which("gfortran") is None:
        pytest.skip("gfortran is not installed here")
    (tmp_path / "t.f90").write_text(FORTRAN)
    subprocess.run(["gfortran", "t.f90", "-o", "t"], cwd=tmp_path, check=True)
    weir("trace", "-o", tmp_run, "--", tmp_path / "t", cwd=tmp_path).ok()
    found = weir("advise", tmp_run)
    assert found.returncode == 0 and "stage:" not in found.stdout, found.stdout


WRITER = r"""
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int size = 8 << 20;
  char *data = calloc(1, size);
  double sum = 1;
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < 100000000; ++i) sum = sum * 0.999999 + i;
    MPI_File_write_at_all(file, ((MPI_Offset)step * ranks + rank) * size, data, size, MPI_BYTE,
                          MPI_STATUS_IGNORE);
  }
  MPI_File_close(&file);
  data[0] = (char)sum;
  return MPI_Finalize();
}
"""


def test_a_collective_writer_of_large_blocks_has_none(weir, mpi, tmp_path, tmp_run):
    program = mpi.cc(WRITER, name="healthy_writer")
    weir("trace", "-o", tmp_run, "--", *mpi.launch(2, program, tmp_path / "out"), env=mpi.env).ok()
    found = weir("advise", tmp_run)
    assert found.returncode == 0, found.stdout


def test_other_levels_say_what_is_missing(weir, tmp_run):
    weir("trace", "--level", "detail", "-o", tmp_run, "--", "cat", __file__).ok()
    found = weir("advise", tmp_run)
    assert "not all steps are recorded at level trace" in found.stdout


def test_bad_input_is_refused(weir, tmp_path, tmp_run):
    refused = weir("advise", tmp_path)
    assert refused.returncode == 3 and str(tmp_path) in refused.stderr
    weir("trace", "-o", tmp_run, "--", "true").ok()
    refused = weir("advise", tmp_run, "--write", tmp_path / "no" / "rules.toml")
    assert refused.returncode == 3 and "cannot be written" in refused.stderr


@pytest.mark.parametrize("size", [0, 100, 5000, "random"])
@pytest.mark.parametrize("command", ["advise", "report"])
def test_damaged_traces_are_said_to_be(weir, tmp_run, command, size):
    weir("trace", "-o", tmp_run, "--", "cat", __file__).ok()
    (trace,) = (tmp_run / "main").glob("*.weir")
    data = trace.read_bytes()
    trace.write_bytes(random.Random(1).randbytes(20_000) if size == "random" else data[:size])
    found = weir(command, tmp_run)
    assert (found.returncode, found.stderr) == (4, ""), found.stderr
    assert "INCOMPLETE: " in found.stdout and "damaged:" in found.stdout
    assert "Nothing worth changing" not in found.stdout
    if command == "advise":
        assert not json.loads(weir(command, tmp_run, "--json").stdout)["complete"]


@pytest.mark.parametrize("command", ["advise", "report"])
def test_a_command_that_does_not_exist_has_an_incomplete_trace(weir, tmp_run, command):
    weir("trace", "-o", tmp_run, "--", "no-such-command")
    found = weir(command, tmp_run)
    assert (found.returncode, found.stderr) == (4, ""), found.stderr
    assert "no trace file" in found.stdout


def test_level_summary_is_not_taken_for_nothing_to_change(weir, tmp_path, tmp_run):
    weir("trace", "--level", "summary", "-o", tmp_run, "--", "dd", "if=/dev/zero",
        f"of={tmp_path}/out", "bs=1k", "count=2000", "status=none").ok()
    found = weir("advise", tmp_run).ok()
    assert "level summary does not record" in " ".join(found.stdout.split())
    assert "Nothing worth changing" not in found.stdout
