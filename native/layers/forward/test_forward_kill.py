# SPDX-License-Identifier: Apache-2.0
"""Layer forward: ranks, the forwarding process, or both are killed or stopped at random moments:
every byte that write() had accepted is in the file, and living ranks come to their end.

WEIR_TEST_KILLS=300 makes a campaign of it; `pytest -s` shows the totals.
"""

from __future__ import annotations

import collections
import os
import random
import signal
import struct
import subprocess
import time
import uuid
from pathlib import Path

import numpy
import pytest
from weir_process import clean_environment

KILLS = int(os.environ.get("WEIR_TEST_KILLS", "3"))
pytestmark = pytest.mark.timeout(180 + 10 * KILLS)
RANKS = 4
# whose process is killed; "stop" stops the forwarding process until the ranks have ended
KINDS = ("rank", "forwarder", "rank and forwarder", "all", "stop")
LAYERS = Path(__file__).parents[3] / "tests" / "layers"


def content(bytes_: int) -> bytes:
    at = numpy.arange(bytes_, dtype=numpy.uint32)
    return (at * 7 + at // 251 + at // 65537).astype(numpy.uint8).tobytes()


def entries(page: Path) -> list[tuple[int, int, int]]:
    """Of each rank: pid, pieces accepted, whether it came to its end."""
    data = page.read_bytes() if page.exists() else b""
    if len(data) < 32 * RANKS:
        return [(0, 0, 0)] * RANKS
    return [struct.unpack_from("3q", data, 32 * i) for i in range(RANKS)]


def forwarders(directory: Path) -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == b"weir-forward" and words[1] == os.fsencode(directory):
            found.append(int(process.name))
    return found


def send(pids: list[int], number: int) -> int:
    sent = 0
    for pid in pids:
        try:
            os.kill(pid, number)
            sent += 1
        except ProcessLookupError:
            pass
    return sent


class Play:
    """One run of four ranks and what is done to them."""

    def __init__(self, program: Path, file: Path, page: Path, env: dict[str, str],
            directory: Path, chance: random.Random):
        self.page, self.directory = page, directory
        self.piece, self.pieces = chance.choice([300, 1000, 5000]), chance.choice([500, 2000])
        self.kind = chance.choice(KINDS)
        hits_rank = self.kind in ("rank", "rank and forwarder", "all")
        self.victim = chance.randrange(RANKS) if hits_rank else -1
        self.after = chance.randrange(1, self.pieces)
        self.running = subprocess.Popen([program, file, page, str(RANKS), str(self.piece),
            str(self.pieces), str(self.victim)], env=env, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE)

    def strike(self, counted: collections.Counter) -> None:
        limit = time.monotonic() + 300
        while entries(self.page)[max(self.victim, 0)][1] < self.after and \
                self.running.poll() is None:
            assert time.monotonic() < limit
            time.sleep(0.0005)
        processes = forwarders(self.directory)
        if self.kind in ("forwarder", "rank and forwarder", "all"):
            counted["forwarder"] += send(processes, signal.SIGKILL)
        if self.kind == "stop":
            counted["stopped"] += send(processes, signal.SIGSTOP)
        pids = [pid for pid, _, _ in entries(self.page)]
        hit = pids if self.kind == "all" else pids[self.victim:self.victim + 1]
        if self.victim >= 0:
            counted["rank"] += send([pid for pid in hit if pid != 0], signal.SIGKILL)
        _, said = self.running.communicate(timeout=450)
        send(processes, signal.SIGCONT)
        if self.kind != "all":
            assert self.running.returncode == 0, said
            ended = [end for i, (_, _, end) in enumerate(entries(self.page)) if i != self.victim]
            assert all(ended), entries(self.page)

    def check(self, data: bytes) -> int:
        """Bytes that were accepted; all of them are there."""
        whole, accepted = content(RANKS * self.piece * self.pieces), 0
        for rank, (_, count, _) in enumerate(entries(self.page)):
            for i in range(count):
                at = (i * RANKS + rank) * self.piece
                assert data[at:at + self.piece] == whole[at:at + self.piece], (
                    f"{self.kind}: piece {i} of {count} of rank {rank}"
                )
            accepted += count * self.piece
        return accepted


# What a launcher of MPI tells its ranks: they share opens of one name.
LAUNCHED = {"OMPI_COMM_WORLD_SIZE": str(RANKS), "OMPI_COMM_WORLD_LOCAL_SIZE": str(RANKS)}


@pytest.mark.parametrize(("stack", "launcher"), [("forward:65536:8", {}),
    ("forward:65536:8:ranks=2", {}), ("forward:65536:8", LAUNCHED)],
    ids=["alone", "two forwarders", "shared opens"])
def test_nothing_accepted_is_lost(cc, preload, weir, testfs, tmp_path, stack, launcher):
    seed = int(os.environ.get("WEIR_TEST_SEED", "0")) or random.randrange(1, 2**31)
    print(f"WEIR_TEST_SEED={seed}")
    chance, counted = random.Random(seed), collections.Counter()
    program = cc(LAYERS / "share_killed.c", name="share_killed")
    fs, job = testfs("direct"), f"pytest-{uuid.uuid4().hex[:12]}"
    directory = Path(f"/dev/shm/weir.{os.geteuid()}.{job}/0")
    rules = f"weir-rules 1\nrule source=test:1 name=*.dat stack={stack}|system\n"
    env = clean_environment({"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job,
        **launcher})
    try:
        for number in range(KILLS):
            name = f"k{number}.dat"
            play = Play(program, fs.path / name, tmp_path / f"page{number}", env, directory, chance)
            play.strike(counted)
            if directory.exists():
                weir("drain", "--wait", "--job", job, timeout=60).ok()
            counted["opens"] += fs.stats().file(name).opens
            file = fs.backing / name
            counted["bytes"] += play.check(file.read_bytes() if file.exists() else b"")
            counted["runs"] += 1
            file.unlink(missing_ok=True)
    finally:
        subprocess.run(["rm", "-rf", directory.parent], check=True)
    print(f"{stack}: {counted['runs']} runs, {counted['rank']} ranks and {counted['forwarder']} "
          f"forwarding processes killed, {counted['stopped']} stopped; {counted['bytes']} bytes "
          "accepted, none lost")
    assert counted["bytes"] > 0
    if launcher:
        assert counted["opens"] < RANKS * counted["runs"]
