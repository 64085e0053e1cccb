# SPDX-License-Identifier: Apache-2.0
"""LAMMPS writes a file for each time step; others read them packed, and unzip without weir."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid

import pytest

STEPS = 100
MELT = f"""units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 3 0 3 0 3
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
dump d all custom 1 steps/step.*.txt id x y z
dump_modify d sort id
run {STEPS}
"""
READ = "cd steps; ls; grep -h -A1 TIMESTEP step.*.txt | sort; diff -r . ../../plain/steps | wc -l"


@pytest.mark.skipif(shutil.which("lmp") is None, reason="LAMMPS (package lammps) is not installed")
@pytest.mark.skipif(shutil.which("unzip") is None, reason="unzip is not installed")
def test_files_of_lammps_are_read_by_others(preload, tmp_path):
    job = f"pytest-pack-{uuid.uuid4().hex[:12]}"
    rules = ("weir-rules 1\n"
             "rule source=test:1 name=step.*.txt stack=pack:name=steps.zip:always=1|system\n")
    own = {**os.environ, "LC_ALL": "C", "OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    packed = {**own, "LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}

    def run(line, place, env):
        return subprocess.run(line, cwd=tmp_path / place, env=env, stdout=subprocess.PIPE,
            text=True, timeout=300, check=True).stdout

    printed = {}
    try:
        for place, env in (("plain", own), ("packed", packed)):
            (tmp_path / place / "steps").mkdir(parents=True)
            (tmp_path / place / "in.melt").write_text(MELT)
            run(["lmp", "-in", "in.melt", "-log", "none"], place, env)
            printed[place] = run(["bash", "-c", READ], place, env)
    finally:
        shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)
    assert printed["packed"] == printed["plain"]
    assert printed["plain"].count("step.") == STEPS + 1
    assert os.listdir(tmp_path / "packed" / "steps") == ["steps.zip"]
    run(["unzip", "-q", "steps/steps.zip", "-d", "unzipped"], "packed", own)
    unzipped, plain = tmp_path / "packed" / "unzipped", tmp_path / "plain" / "steps"
    files = {path.name: path.read_bytes() for path in plain.iterdir()}
    assert {path.name: path.read_bytes() for path in unzipped.iterdir()} == files
