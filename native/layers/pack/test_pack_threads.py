# SPDX-License-Identifier: Apache-2.0
"""Many threads of a process make files under new names in new directories, as zarr does, on a file
system whose requests take long: each thread finds its own file under both names."""

from __future__ import annotations

import os
import sys
import uuid
import zipfile

THREADS, DIRECTORIES, FILES = 32, 4, 24
PROGRAM = f"""
import os
from concurrent.futures import ThreadPoolExecutor

def put(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".partial", "wb") as file:
        file.write(path.encode())
    os.replace(path + ".partial", path)

paths = [f"s/{{i}}/{{j}}" for i in range({DIRECTORIES}) for j in range({FILES})]
with ThreadPoolExecutor({THREADS}) as pool:
    list(pool.map(put, paths))
assert all(open(path).read() == path for path in paths)
"""


def test_threads_find_what_they_have_made_under_both_names(weir, testfs, tmp_path):
    fs = testfs("lustre")
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[[rule]]\npath = "{fs.path}/s/*/*"\nstack = "pack:name=all.zip"\n')
    job = f"pytest-{uuid.uuid4().hex[:12]}"
    weir("run", "--rules", rules, "--", sys.executable, "-c", PROGRAM, cwd=fs.path,
        env={"WEIR_JOB": job}).ok()
    made = [sorted(os.listdir(fs.backing / "s" / str(i))) for i in range(DIRECTORIES)]
    assert made == [["all.zip"]] * DIRECTORIES
    for i in range(DIRECTORIES):
        with zipfile.ZipFile(fs.backing / "s" / str(i) / "all.zip") as packed:
            names = [name for name in packed.namelist() if not name.startswith("weir")]
            assert {name: packed.read(name).decode() for name in names} == {
                str(j): f"s/{i}/{j}" for j in range(FILES)}
