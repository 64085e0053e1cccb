# SPDX-License-Identifier: Apache-2.0
"""``kill -9`` at random moments, of servers, of ranks that compute and of all: a file with its
final name is complete. WEIR_TEST_KILLS=200 for a campaign; the counts are printed (pytest -s)."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from datetime import datetime
from importlib.util import find_spec

import numpy as np
import pytest
import zarr
from netCDF4 import Dataset
from weir_process import clean_environment, limit

KILLS = int(os.environ.get("WEIR_TEST_KILLS", "8"))
# A record of GRIB is long enough here that a server writes it in parts.
SHAPES = {"cdf5": (64, 64, 3), "netcdf4": (64, 64, 3), "zarr": (64, 64, 3), "grib2": (256, 128, 24)}
FORMATS = tuple(form for form in SHAPES if form != "grib2" or find_spec("eccodes"))
CONFIG = """
[stream.history.grib]
bitsPerValue = 24
typeOfLevel = "hybrid"
[[stream.history.field]]
name = "f0"
grib = { discipline = 0, parameterCategory = 192, parameterNumber = 1 }
[[stream.history.field]]
name = "f1"
grib = { discipline = 0, parameterCategory = 192, parameterNumber = 2 }
"""
VICTIMS = ("all", "server", "model")
RANKS, SERVERS = 5, 2


# Steps without end, a file each.
ENDLESS = ("steps=100000", "rotation=1", "path=h{step}")


class Job:
    """A job of the model; survive: servers are left when one is killed."""

    def __init__(self, model, directory, form: str, survive: bool, options=ENDLESS):
        self.model, self.directory = model, directory
        directory.mkdir()
        nx, ny, levels = SHAPES[form]
        config = directory.with_suffix(".toml")
        config.write_text(CONFIG)
        command = model.mpi.launch(RANKS, model.program, config if form == "grib2" else "",
            *options, f"nx={nx}", f"ny={ny}", f"levels={levels}", f"format={form}")
        if survive:
            command.insert(1, "--enable-recovery")
        env = clean_environment({**model.mpi.env, "WEIR_OUTPUT_MODE": "servers",
            "WEIR_OUTPUT_GROUPS": str(SERVERS)})
        self.process = subprocess.Popen(command, cwd=directory, env=env, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def everybody(self) -> list[int]:
        """The launcher and all below it: MPICH's gives its ranks a session of their own."""
        listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True,
            timeout=300).stdout.split()
        children: dict[int, list[int]] = {}
        for pid, parent in zip(map(int, listed[::2]), map(int, listed[1::2]), strict=True):
            children.setdefault(parent, []).append(pid)
        found = [self.process.pid]
        for pid in found:
            found += children.get(pid, [])
        return found

    def rank_of(self, pid: int) -> int:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                variables = dict(entry.partition(b"=")[::2] for entry in file.read().split(b"\0"))
            with open(f"/proc/{pid}/comm") as file:
                if "model" not in file.read():
                    return -1
        except OSError:
            return -1
        return int(variables.get(b"OMPI_COMM_WORLD_RANK", variables.get(b"PMI_RANK", b"-1")))

    def await_output(self, pattern: str = "h*") -> None:
        deadline = time.monotonic() + 300
        while (not any(self.directory.glob(pattern)) and self.process.poll() is None
                and time.monotonic() < deadline):
            time.sleep(0.005)
        assert self.process.poll() is None, "the job has ended by itself"

    def kill(self, pids: list[int]) -> None:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def strike(self, victim: str, chance: random.Random) -> None:
        """Kill the victim at a random moment; when one rank was killed, the others have a moment,
        then all go."""
        self.await_output()
        time.sleep(chance.random() * 0.5)
        if victim != "all":
            self.kill_rank(chance.choice(range(RANKS - SERVERS, RANKS) if victim == "server"
                else range(RANKS - SERVERS)))
            time.sleep(chance.random() * 0.5)
        self.end()

    def kill_rank(self, rank: int) -> None:
        ranks = {self.rank_of(pid): pid for pid in self.everybody()}
        assert rank in ranks, f"rank {rank} has ended by itself; there are {sorted(ranks)}"
        self.kill([ranks[rank]])

    def end(self) -> None:
        self.kill(self.everybody())
        self.process.wait(timeout=300)


def read_grib(path) -> tuple[np.ndarray, np.ndarray]:
    """Seconds since 2000-01-01 of all messages, which are one, and the levels of f1."""
    import eccodes

    times, levels = set(), {}
    with open(path, "rb") as file:
        while (message := eccodes.codes_grib_new_from_file(file)) is not None:
            number, level, date, clock = (eccodes.codes_get(message, key, int)
                for key in ("parameterNumber", "level", "validityDate", "validityTime"))
            times.add((date, clock))
            if number == 2:
                levels[level] = eccodes.codes_get_values(message)
            eccodes.codes_release(message)
    ((date, clock),) = times
    since = datetime.strptime(f"{date}{clock:04}", "%Y%m%d%H%M") - datetime(2000, 1, 1)
    return np.array([since.total_seconds()]), np.array([levels[key] for key in sorted(levels)])


def check_complete(path, form: str) -> None:
    step = int(path.name[1:])
    if form == "grib2":
        time_s, values = read_grib(path)
    elif path.is_dir():
        group = zarr.open_group(path, mode="r")
        time_s, values = group["time"][:], group["f1"][:]
    else:
        with Dataset(path) as file:
            time_s, values = file["time"][:].data, file["f1"][:].data
    assert time_s.tolist() == [60.0 * step]
    nx, ny, levels = SHAPES[form]
    expected = (100000 + 10000 * np.arange(levels)[:, None] + np.arange(nx * ny) % 997
                + step * 0.25).astype(np.float32)
    # Half a step of 24 bits in the range of a level.
    precision = 997 / 2**24 if form == "grib2" else 0
    np.testing.assert_allclose(values.reshape(levels, nx * ny), expected, rtol=0, atol=precision)


@pytest.mark.any_mpi
@pytest.mark.timeout(120 + 15 * KILLS)
def test_no_incomplete_file_has_its_final_name(model):
    seed = int(os.environ.get("WEIR_TEST_SEED", random.randrange(10**6)))
    print("seed", seed)
    chance = random.Random(seed)
    count: Counter[str] = Counter()
    for number in range(KILLS):
        form, victim = FORMATS[number % len(FORMATS)], VICTIMS[number // len(FORMATS) % 3]
        survive = victim == "server" and model.mpi.name == "openmpi" and chance.random() < 0.5
        job = Job(model, model.directory / str(number), form, survive)
        job.strike(victim, chance)
        named = sorted(job.directory.glob("h*"), key=lambda path: path.stat().st_mtime_ns)
        for path in named[-25:]:  # the others were named long before the kill
            check_complete(path, form)
        growing = list(job.directory.glob(".h*.weir-part"))
        count.update(["kills", f"kills of {victim}", f"kills with {form}"])
        count.update({"named files": len(named), "files checked": min(25, len(named)),
            "kills that left a growing file": bool(growing)})
        odd = [path.name for path in job.directory.iterdir()
            if not re.fullmatch(r"h\d+|\.h\d+\.weir-part(\.\d+)?(\.journal|\.lock)?", path.name)]
        assert not odd
        subprocess.run(["rm", "-rf", job.directory], check=True)
    print(model.mpi.name, dict(count))
    assert count["files checked"] >= KILLS
    assert count["kills that left a growing file"] > 0 or KILLS < 30


def steps_in(path, messages: int) -> list[bytes]:
    """The bytes of each step of a file of GRIB."""
    data, ends = path.read_bytes(), [0]
    while ends[-1] < len(data):
        at = ends[-1]
        ends.append(at + int.from_bytes(data[at + 8:at + 16], "big"))
        assert data[at:at + 4] == b"GRIB" and data[ends[-1] - 4:ends[-1]] == b"7777"
    assert (len(ends) - 1) % messages == 0
    return [data[a:b] for a, b in zip(ends[::messages], ends[messages::messages])]


@pytest.mark.timeout(120 + 15 * KILLS)
def test_a_file_of_grib_that_another_group_takes_over_has_whole_steps(model):
    """The killed server had written a part of its last step."""
    if model.mpi.name == "mpich":
        pytest.skip("MPICH's launcher ends the whole job when a rank is killed")
    options, messages = ("steps=60", "rotation=0", "path=h"), 2 * SHAPES["grib2"][2]
    whole = Job(model, model.directory / "whole", "grib2", False, options)
    assert whole.process.wait(timeout=300) == 0
    expected = {step: at for at, step in enumerate(steps_in(whole.directory / "h", messages))}
    assert len(expected) == 60
    chance = random.Random(int(os.environ.get("WEIR_TEST_SEED", random.randrange(10**6))))
    kills, lost = 0, 0
    for number in range(max(2, KILLS // 4)):
        job = Job(model, model.directory / str(number), "grib2", True, options)
        job.await_output(".h.weir-part")
        time.sleep(chance.random() * 0.3)
        if not (job.directory / "h").exists():
            job.kill_rank(RANKS - SERVERS)  # which has the file
            kills += 1
        deadline = time.monotonic() + limit(120)
        while (not (job.directory / "h").exists() and job.process.poll() is None
                and time.monotonic() < deadline):
            time.sleep(0.02)
        job.end()  # MPI_Finalize of Open MPI may wait for the killed one without end
        steps = [expected[step] for step in steps_in(job.directory / "h", messages)]
        assert steps == sorted(set(steps))
        assert len(steps) >= 50  # all but those that had no buffer meanwhile
        lost += 60 - len(steps)
    print(kills, "kills", lost, "steps that were not written")
    assert kills > 0 and (lost > 0 or KILLS < 30)
