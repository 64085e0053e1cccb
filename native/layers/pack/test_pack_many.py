# SPDX-License-Identifier: Apache-2.0
"""Many files, from many processes, in many directories, two containers in each; read back by
programs that know nothing of weir, with its rules and without."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
import zipfile
from pathlib import Path

import pytest

from weir.pack import verify

PROCESSES, DIRECTORIES = 8, 128
RULES = ("weir-rules 1\n"
    "rule source=test:1 name=*.dat stack=pack:name=data.zip:always=1|system\n"
    "rule source=test:2 name=*.log stack=pack:name=logs.zip:always=1|system\n")
# Every process writes into all directories; what a file has is in its name.
WRITER = """
import sys
rank, processes, files, directories = map(int, sys.argv[1:5])
for i in range(rank, files, processes):
    kind = ("dat", "log")[i // directories % 4 == 0]
    with open(f"d{i % directories:03}/f{i:06}.{kind}", "wb", buffering=0) as file:
        file.write(b"%d\\n" % i * (1 + i % 700))
"""


def contents(number: int) -> bytes:
    return b"%d\n" % number * (1 + number % 700)


@pytest.fixture
def under_pack(preload):
    job = f"pytest-pack-{uuid.uuid4().hex[:12]}"
    yield {**os.environ, "LD_PRELOAD": str(preload), "WEIR_RULES": RULES, "WEIR_JOB": job}
    shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)


def read_all(top: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(top.rglob("f*")) if path.is_file()}


@pytest.mark.parametrize("files", [2_000,
    pytest.param(100_000, marks=[pytest.mark.campaign, pytest.mark.timeout(900)])])
def test_other_programs_find_each_file(under_pack, tmp_path, files):
    place = tmp_path / "place"
    for i in range(DIRECTORIES):
        (place / f"d{i:03}").mkdir(parents=True)
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(rank), str(PROCESSES),
        str(files), str(DIRECTORIES)], cwd=place, env=under_pack) for rank in range(PROCESSES)]
    assert [writer.wait(timeout=800) for writer in writers] == [0] * PROCESSES

    containers = sorted(place.rglob("*.zip"))
    assert len(containers) == 2 * DIRECTORIES == sum(1 for p in place.rglob("*") if p.is_file())
    checked = [verify(container) for container in containers]
    assert sum(count for count, _ in checked) == files and not any(bad for _, bad in checked)

    def run(*command: str) -> str:
        return subprocess.run(command, cwd=place, env=under_pack, text=True, check=True,
            timeout=800, stdout=subprocess.PIPE).stdout

    names = run("find", ".", "-type", "f").splitlines()
    assert len(names) == len(set(names)) == files and not any(".zip" in name for name in names)
    run("tar", "-cf", str(tmp_path / "all.tar"), ".")
    (tmp_path / "tar").mkdir()
    subprocess.run(["tar", "-xf", tmp_path / "all.tar", "-C", tmp_path / "tar"], check=True)
    wanted = {Path(name).name: contents(int(Path(name).stem[1:])) for name in names}
    assert read_all(tmp_path / "tar") == wanted

    archived = {}
    for container in containers:
        with zipfile.ZipFile(container) as archive:
            archived |= {name: archive.read(name) for name in archive.namelist()}
    assert archived == wanted
    if shutil.which("unzip"):
        some = tmp_path / "unzipped"
        for container in containers[:6]:
            subprocess.run(["unzip", "-qq", container, "-d", some], check=True)
        found = read_all(some)
        assert found and all(wanted[name] == data for name, data in found.items())
