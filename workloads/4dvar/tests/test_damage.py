# SPDX-License-Identifier: Apache-2.0
"""One byte changed in any file that a step reads ends that step with a message that names the file.
"""

from __future__ import annotations

import os
import random

import pytest

# File (its first match), the step it is damaged after, the step that reads it.
READ = [
    ("ICMSHweirINIT", "prepare", "traj0"),
    ("ICMGGweirINIUA", "prepare", "traj0"),
    ("specwavein", "prepare", "traj0"),
    ("wam_subgrid_0", "prepare", "traj0"),
    ("VARBC.cycle", "prepare", "traj0"),
    ("ECMA.satob/ECMA.iomap", "prepare", "traj0"),
    ("ECMA.conv/2/body", "prepare", "traj0"),
    ("ECMA.airs/1/timeslot_index", "prepare", "traj0"),
    ("LEDGER", "prepare", "traj0"),
    ("TRAJHR00/trajgridL001", "traj0", "min0"),
    ("TRAJHR00/trajspecL002", "traj0", "min0"),
    ("wavelet.cv", "traj0", "min0"),
    ("CCMA/CCMA.iomap", "traj0", "min0"),
    ("CCMA/1/depar", "traj0", "min0"),
    ("poolmask.CCMA", "traj0", "min0"),
    ("ICMSHweirBGHR", "min0", "traj1"),
    ("ICMGGweirBGHRUA", "min0", "traj1"),
    ("ME2", "traj1", "min1"),
    ("traj00", "traj1", "min1"),
    ("traj01", "min1", "traj2"),
    ("ECMA.iasi/3/radiance", "min1", "traj2"),
]


@pytest.mark.parametrize(("name", "done", "reader"), READ, ids=[f"{r}-{n}" for n, _, r in READ])
@pytest.mark.mpi
def test_a_changed_byte_is_found(any_workload, copy, name, done, reader):
    seed = int(os.environ.get("WEIR_TEST_SEED", random.randrange(2**32)))
    chance = random.Random(seed)
    for part in (chance.random(), 1):
        work = copy(done)
        path = (work / name).resolve()
        data = bytearray(path.read_bytes())
        position, value = int(part * (len(data) - 1)), chance.randrange(1, 256)
        print(f"WEIR_TEST_SEED={seed}: byte {position} of {name} xor {value}")
        data[position] ^= value
        path.write_bytes(data)
        result = any_workload.step(reader, work)
        assert result.returncode != 0
        # not splitlines(): a changed byte may be one at which it ends lines
        message = [line for line in result.stderr.split("\n") if line.startswith("weir-4dvar: ")]
        assert any(f": {name}: " in m and "expected " in m and ", found " in m
            for m in message), result.stderr


@pytest.mark.any_mpi
@pytest.mark.mpi
@pytest.mark.parametrize("change", ["cut", "grown", "missing"])
def test_a_file_of_another_length_is_found(workload, copy, change):
    work = copy("traj0")
    path = work / "TRAJHR00" / "trajgridL002"
    data = path.read_bytes()
    if change == "missing":
        path.unlink()
    else:
        path.write_bytes(data[:-1] if change == "cut" else data + b"\0")
    result = workload.step("min0", work)
    assert result.returncode != 0
    assert f"TRAJHR00/trajgridL002: size: expected {len(data)} bytes, found " in result.stderr


@pytest.mark.mpi
def test_undamaged_files_pass(any_workload, copy):
    """The tests above fail for the damage, not for the copying."""
    any_workload.step("min0", copy("traj0")).ok()
