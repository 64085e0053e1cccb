# SPDX-License-Identifier: Apache-2.0
"""``weir bench wrf`` at a small scale: every writer that is installed writes the right values, the
table and the goals come. No time is judged."""

from __future__ import annotations

import json
import re

import pytest

pytestmark = pytest.mark.any_mpi

SCALE = "scale=0.0003"


@pytest.fixture
def program(mpi, native_build):
    """A program of the bench for this MPI; what its packages are not there for is skipped."""

    def of(name):
        path = native_build / "bench" / "wrf" / mpi.name / f"wrf-{name}"
        if not path.exists():
            pytest.skip(f"wrf-{name} is not built for {mpi.name}")
        return path

    return of


def numbers_of(done) -> dict[str, float]:
    (line,) = (line for line in done.ok().stdout.splitlines() if line.startswith("wrf: "))
    return {key: float(value) for key, value in re.findall(r"(\w+)=(\S+)", line)}


@pytest.mark.mpi
@pytest.mark.parametrize(("mode", "ranks"), [("serial", 3), ("collective", 4), ("servers", 4),
    ("servers+parallel", 5)])
def test_weir_writes_what_a_gathered_netcdf_has(mpi, program, tmp_path, mode, ranks):
    steps = ("steps=5", "every=2", SCALE, f"directory={tmp_path}")
    config = tmp_path / "output.toml"
    config.write_text(f'[output]\nmode = "{mode}"\n' + ("servers_per_group = 2\n"
        if mode == "servers+parallel" else ""))
    weir = numbers_of(mpi.run(ranks, program("weir"), *steps, f"config={config}"))
    gather = numbers_of(mpi.run(3, program("gather"), *steps))
    assert weir["frames"] == gather["frames"] == 3 and weir["bytes"] == gather["bytes"] > 0
    assert weir["servers"] == {"servers": 1, "servers+parallel": 2}.get(mode,
        0) and weir["ranks"] + weir["servers"] == ranks
    compared = mpi.run(1, program("compare"), "gather", "weir", *steps)
    assert numbers_of(compared)["compared"] == weir["bytes"] / 4


@pytest.mark.mpi
@pytest.mark.parametrize(("mode", "ranks"), [("collective", 3), ("servers", 4)])
def test_weir_reads_what_it_wrote_and_finds_a_wrong_value(mpi, program, tmp_path, mode, ranks):
    config = tmp_path / "output.toml"
    config.write_text(f'[output]\nmode = "{mode}"\n')
    frame = ("steps=1", "bare=1", SCALE, f"directory={tmp_path}", f"config={config}")
    mpi.run(2, program("weir"), *frame).ok()
    numbers_of(mpi.run(ranks, program("weir"), *frame, "check=1"))
    file = tmp_path / "weir_d02_000.nc"
    data = bytearray(file.read_bytes())
    data[-5000] ^= 1
    file.write_bytes(data)
    numbers_of(mpi.run(ranks, program("weir"), *frame, "check=2"))
    done = mpi.run(ranks, program("weir"), *frame, "check=1")
    assert done.returncode != 0 and "weir_d02_000.nc: has other values" in done.stderr


@pytest.mark.mpi
def test_a_wrong_value_is_found(mpi, program, tmp_path):
    steps = ("steps=1", SCALE, f"directory={tmp_path}")
    mpi.run(2, program("gather"), *steps).ok()
    for file in tmp_path.glob("gather_*"):
        (tmp_path / file.name.replace("gather", "weir")).write_bytes(file.read_bytes())
    mpi.run(1, program("compare"), "gather", "weir", *steps).ok()
    file = tmp_path / "weir_d02_000.nc"
    data = bytearray(file.read_bytes())
    data[-5000] ^= 1
    file.write_bytes(data)
    done = mpi.run(1, program("compare"), "gather", "weir", *steps)
    assert done.returncode != 0 and "weir_d02_000.nc: level" in done.stderr


@pytest.mark.mpi
def test_what_the_experiment_does_not_know_is_refused(mpi, program, tmp_path):
    for wrong in ("depth=3", "steps=0"):
        done = mpi.run(1, program("none"), f"directory={tmp_path}", wrong)
        assert done.returncode != 0 and "error: " in done.stderr


@pytest.mark.campaign
@pytest.mark.slow
@pytest.mark.mpi
def test_all_writers_come_to_their_end(weir, native_build, tmp_path):
    if not list((native_build / "bench" / "wrf").glob("*/wrf-weir")):
        pytest.skip("wrf-weir is not built: no MPI is installed here")
    file = tmp_path / "bench.json"
    options = ["--scale", 0.0003, "--ranks", 2, "--repeat", 1, "--interval", 0.05, "--steps", 3,
        "--every", 2, "--table"]
    done = weir("bench", "wrf", "--programs", native_build, "--directory", tmp_path, *options,
        "--json", file, timeout=170)
    assert [path.name for path in tmp_path.iterdir()] == [
        "bench.json"], "the bench leaves files behind"
    data = json.loads(file.read_text())
    rows = {row["name"]: row for row in data["writers"]}
    assert len(rows) == 9 and data["goals"] == []
    there = {name: row for name, row in rows.items()
        if not (row["error"] or "").startswith("left out")}
    assert {name: row["error"] for name, row in there.items() if row["error"]} == {}
    assert {"serial", "collective", "servers", "servers+parallel", "plain"} <= set(there)
    (size,) = {row["model"]["bytes"]["median"] for row in there.values()}
    for name, row in there.items():
        assert row["back_to_back"]["mb_s"]["median"] > 0 and row["title"] in done.stdout
        if "gather" in there and name != "plain":
            assert row["values_compared"] == size / 4
    assert {rows[name]["model"]["servers"]["median"]
        for name in ("servers", "servers+parallel")} == {1, 2}
    assert done.returncode == 0, done.stdout + done.stderr
