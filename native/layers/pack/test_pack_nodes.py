# SPDX-License-Identifier: Apache-2.0
"""Layer pack on two simulated nodes of two ranks each, which pack into one directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid

import pytest

from weir.pack import Container, merge, verify

RANKS, FILES = 4, 25

WRITER = """
#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
  int rank, wrong = 0;
  char name[64], text[64], found[64];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < %(files)d; ++i) {
    snprintf(name, sizeof name, "r%%d.%%02d.dat", rank, i);
    snprintf(text, sizeof text, "rank %%d file %%d", rank, i);
    FILE *f = fopen(name, "w");
    if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0) {
      perror(name);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < %(files)d; ++i) { /* of the other rank of the node */
    snprintf(name, sizeof name, "r%%d.%%02d.dat", rank ^ 1, i);
    snprintf(text, sizeof text, "rank %%d file %%d", rank ^ 1, i);
    FILE *f = fopen(name, "r");
    memset(found, 0, sizeof found);
    wrong += f == NULL || fread(found, 1, sizeof found - 1, f) == 0 || strcmp(found, text) != 0;
    if (f != NULL) fclose(f);
  }
  MPI_Finalize();
  return wrong != 0;
}
""" % {"files": FILES}

READER = """
import os
names = sorted(n for n in os.listdir(".") if n.endswith(".dat"))
for name in names: print(name, open(name).read(), sep=":")
"""


def expected() -> dict[str, str]:
    return {f"r{rank}.{i:02}.dat": f"rank {rank} file {i}"
        for rank in range(RANKS) for i in range(FILES)}


@pytest.mark.any_mpi
def test_two_nodes_pack_into_one_directory(mpi, preload, tmp_path):
    directory = tmp_path / "out"
    directory.mkdir()
    job = f"pytest-pack-{uuid.uuid4().hex[:12]}"
    rules = ("weir-rules 1\nrule source=test:1 name=*.dat "
             "stack=pack:name=out.zip:always=1|system\n")
    env = {"WEIR_RULES": rules, "WEIR_JOB": job, "LD_PRELOAD": str(preload)}
    try:
        program = mpi.cc(WRITER, name="pack_nodes")
        started = mpi.run(RANKS, program, env={**env, "WEIR_NODE_RANKS": "2"}, cwd=directory)
        assert started.ok(), started
        containers = sorted(directory.iterdir())
        assert len(containers) == 2 and containers[0].name == "out.zip"
        assert containers[1].name.startswith("out@")
        assert [verify(c) for c in containers] == [(2 * FILES, [])] * 2
        later = subprocess.run([sys.executable, "-c", READER], env={**os.environ, **env},
            cwd=directory, capture_output=True, text=True, timeout=300, check=True)
        assert dict(line.split(":", 1) for line in later.stdout.splitlines()) == expected()
    finally:
        shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)
    if shutil.which("unzip"):
        for container in containers:
            subprocess.run(["unzip", "-q", container, "-d", tmp_path / "unzipped"], check=True)
        assert {p.name: p.read_text() for p in (tmp_path / "unzipped").iterdir()} == expected()
    assert merge(containers, tmp_path / "all.zip") == RANKS * FILES
    with Container(tmp_path / "all.zip") as archive:
        assert set(archive.files()) == set(expected())
    assert verify(tmp_path / "all.zip") == (RANKS * FILES, [])
