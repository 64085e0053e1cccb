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

import numpy as np
import pytest
import zarr
from netCDF4 import Dataset
from weir_process import clean_environment

pytestmark = pytest.mark.any_mpi

KILLS = int(os.environ.get("WEIR_TEST_KILLS", "6"))
FORMATS = ("cdf5", "netcdf4", "zarr")
VICTIMS = ("all", "server", "model")
RANKS, SERVERS, POINTS = 5, 2, 64 * 64


class Job:
    """One job of the model that writes a file a step until it is ended."""

    def __init__(self, model, directory, form: str, survive: bool):
        self.model, self.directory = model, directory
        directory.mkdir()
        command = model.mpi.launch(RANKS, model.program, "", "steps=100000", "rotation=1", "nx=64",
            "ny=64", f"format={form}", "path=h{step}")
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

    def await_output(self) -> None:
        deadline = time.monotonic() + 300
        while not any(self.directory.glob("h*")) and self.process.poll() is None and time.monotonic(
                ) < deadline:
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
            rank = chance.choice(range(RANKS - SERVERS, RANKS) if victim == "server"
                else range(RANKS - SERVERS))
            ranks = {self.rank_of(pid): pid for pid in self.everybody()}
            assert rank in ranks, f"rank {rank} has ended by itself; there are {sorted(ranks)}"
            self.kill([ranks[rank]])
            time.sleep(chance.random() * 0.5)
        self.kill(self.everybody())
        self.process.wait(timeout=300)


def check_complete(path) -> None:
    step = int(path.name[1:])
    if path.is_dir():
        group = zarr.open_group(path, mode="r")
        time_s, values = group["time"][:], group["f1"][:]
    else:
        with Dataset(path) as file:
            time_s, values = file["time"][:].data, file["f1"][:].data
    assert time_s.tolist() == [60.0 * step]
    expected = 100000 + 10000 * np.arange(3)[:, None] + np.arange(POINTS) % 997 + step * 0.25
    np.testing.assert_array_equal(values.reshape(3, POINTS), expected.astype(np.float32))


@pytest.mark.timeout(120 + 15 * KILLS)
def test_no_incomplete_file_has_its_final_name(model):
    seed = int(os.environ.get("WEIR_TEST_SEED", random.randrange(10**6)))
    print("seed", seed)
    chance = random.Random(seed)
    count: Counter[str] = Counter()
    for number in range(KILLS):
        form, victim = FORMATS[number % 3], VICTIMS[number // 3 % 3]
        survive = victim == "server" and model.mpi.name == "openmpi" and chance.random() < 0.5
        job = Job(model, model.directory / str(number), form, survive)
        job.strike(victim, chance)
        named = sorted(job.directory.glob("h*"), key=lambda path: path.stat().st_mtime_ns)
        for path in named[-25:]:  # the others were named long before the kill
            check_complete(path)
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
