# SPDX-License-Identifier: Apache-2.0
"""Layer stage under SIGKILL at random moments of the program and of the daemon: what was closed is
brought to its place whole, what fsync acknowledged is there already, and nothing is ever half."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, fields

import pytest
from weir_process import clean_environment
from weir_stage import daemon_of

KILLS = int(os.environ.get("WEIR_TEST_KILLS", "3"))

# Prints what it has done, a line each, after it was done. A file's bytes say its name and version,
# and how many there are.
WRITER = r"""
import os, random, sys
seed, syncs = int(sys.argv[1]), sys.argv[2] == "sync"
random.seed(seed)
def body(name, version, size):
    line = b"%s %d %d\n" % (name.encode(), version, size)
    return (line * (size // len(line) + 1))[:size]
def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())
version = {}
for turn in range(100000):
    name = "f%d.dat" % random.randrange(12)
    what = random.random()
    n = version.get(name, 0) + 1
    if what < 0.75 or name not in version:
        version[name] = n
        size = random.choice((0, 10, 5000, 300000))
        target = name if random.random() < 0.6 else "tmp-" + name
        say("begin", name, n, size)
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        data = body(name, n, size)
        for at in range(0, size, 100000):
            os.write(fd, data[at:at + 100000])
        if syncs and random.random() < 0.3:
            os.fsync(fd)
            if target == name: say("synced", name, n, size)
        os.close(fd)
        if target != name:
            say("renaming", name, n, size)
            os.rename(target, name)
        say("closed", name, n, size)
    elif what < 0.85:
        say("removing", name)
        os.unlink(name)
        say("removed", name)
        del version[name]
    else:
        other = "f%d.dat" % random.randrange(12)
        if other == name: continue
        say("moving", name, other)
        os.rename(name, other)
        say("moved", name, other)
        version[other] = max(version.get(other, 0), n)
        version.pop(name)
"""


def body(name: str, version: int, size: int) -> bytes:
    line = f"{name} {version} {size}\n".encode()
    return (line * (size // len(line) + 1))[:size]


@dataclass
class Totals:
    kills: int = 0
    of_the_daemon: int = 0
    acknowledged: int = 0
    whole: int = 0
    unfinished: int = 0
    synced: int = 0
    lost: int = 0
    half: int = 0


def expected(lines: list[str]) -> tuple[dict[str, set[bytes | None]], int]:
    """For each name the contents that its place may have; None: it is not there. Each is a whole
    version: what was not closed is not brought there, and what was emptied to be written anew may
    be an older version there, but not older than the last that was synchronized."""
    may: dict[str, set[bytes | None]] = {}
    versions: dict[str, set[bytes | None]] = {}  # of the name since the last that is durable
    acknowledged = 0
    for line in lines:
        what, name, *rest = line.split()
        if what in ("begin", "renaming", "closed", "synced"):
            data = body(name, int(rest[0]), int(rest[1]))
        if what in ("begin", "renaming"):
            may[name] = versions.setdefault(name, {None}) | {data}
        elif what == "synced":
            may[name], versions[name] = {data}, {data}
            acknowledged += 1
        elif what == "closed":
            may[name] = {data}
            versions[name] = versions[name] | {data}
            acknowledged += 1
        elif what == "removing":
            may[name] = may[name] | {None}
        elif what == "removed":
            may[name], versions[name] = {None}, {None}
        elif what == "moving":
            may[rest[0]] = may.get(rest[0], {None}) | may[name]
            may[name] = may[name] | {None}
        elif what == "moved":
            may[rest[0]] = may[name] - {None}
            versions[rest[0]] = versions.get(rest[0], {None}) | versions[name]
            may[name], versions[name] = {None}, {None}
    return may, acknowledged


def one_kill(where, tier, preload, seed, sync, drain, totals: Totals):
    source = random.Random(seed)
    options = f"drain={drain}" + (":fsync=drain" if sync else "")
    environment = clean_environment() | {
        "LD_PRELOAD": str(preload), "WEIR_JOB": tier.name,
        "WEIR_RULES": "weir-rules 1\nrule source=test:1:1 name=*.dat "
                      f"stack=stage:tier={tier}:{options}|system\n"}
    with open(where / "said", "wb") as said:
        program = subprocess.Popen([sys.executable, "-c", WRITER, str(seed),
            "sync" if sync else "-"], cwd=where, env=environment, stdout=said)
        while not (where / "said").stat().st_size:
            assert program.poll() is None
            time.sleep(0.001)
        time.sleep(source.random() ** 2 * 0.4)
        if source.random() < 0.5 and (daemon := daemon_of(tier)) is not None:
            os.kill(daemon, signal.SIGKILL)
            totals.of_the_daemon += 1
            time.sleep(source.random() * 0.05)
        program.kill()
        program.wait()
    totals.kills += 1
    return expected((where / "said").read_text().splitlines())


def check(where, tier, may, totals: Totals, seed: int) -> None:
    for name, contents in may.items():
        path = where / name
        found = path.read_bytes() if path.exists() else None
        if found in contents:
            totals.whole += 1
        elif found is None:
            totals.lost += 1
        else:
            totals.half += 1
    left = [p.name for p in where.iterdir() if p.name.startswith(".weir-stage-")]
    assert totals.lost == 0 and totals.half == 0, f"seed {seed}: {totals}"
    assert len(left) <= 4, f"seed {seed}: {left}"


@pytest.mark.timeout(120 + 10 * KILLS)
@pytest.mark.parametrize("sync", [False, True], ids=["close", "fsync"])
@pytest.mark.parametrize("drain", ["async", "end"])
def test_what_was_closed_before_a_kill_is_recovered_whole(weir, preload, tmp_path, tier, drain,
        sync, record_property):
    totals = Totals()
    first = int(os.environ.get("WEIR_TEST_SEED", random.SystemRandom().randrange(10**6)))
    for seed in range(first, first + KILLS):
        where = tmp_path / str(seed)
        where.mkdir()
        may, acknowledged = one_kill(where, tier, preload, seed, sync, drain, totals)
        totals.acknowledged += acknowledged
        if sync:
            acknowledged_by_fsync(where, totals, seed)
        recovered = weir("stage", "recover", tier)
        unfinished = recovered.stdout.count("its writer was killed")
        assert re.search(f", {unfinished} files? with [0-9,]+ bytes left", recovered.stdout), (
            f"seed {seed}: {recovered}")
        totals.unfinished += unfinished
        check(where, tier, may, totals, seed)
        weir("stage", "recover", "--unfinished", tier).ok()
        shutil.rmtree(where)
    said = ", ".join(f"{f.name} {getattr(totals, f.name)}" for f in fields(totals))
    record_property("totals", said)
    print(f"drain={drain} fsync={sync}: {said}")


def acknowledged_by_fsync(where, totals, seed):
    """As if the tier were gone with the node: of a name that was synchronized, and not renamed or
    removed since, that version is at its place, or a later one."""
    synced: dict[str, set[bytes]] = {}
    for line in (where / "said").read_text().splitlines():
        what, name, *rest = line.split()
        if what == "synced":
            synced[name] = {body(name, int(rest[0]), int(rest[1]))}
        elif what in ("begin", "closed") and name in synced:
            synced[name].add(body(name, int(rest[0]), int(rest[1])))
        elif what in ("removing", "renaming", "moving"):
            for gone in (name, *rest[:1]):
                synced.pop(gone, None)
    for name, contents in synced.items():
        totals.synced += 1
        path = where / name
        assert path.exists() and path.read_bytes() in contents, f"seed {seed}: {name}"
