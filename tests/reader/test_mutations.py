# SPDX-License-Identifier: Apache-2.0
"""Damaged copies of traces of every kind: `weir report --json` of each comes to an end, within a
bound of CPU time, and says what it could not read. WEIR_TEST_MUTATIONS=100000 makes a campaign of
it."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import struct
from pathlib import Path

import pytest
from query_runs import write_run

from weir._errors import Error
from weir.report import build, report_json

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.txt"))
MUTATIONS = int(os.environ.get("WEIR_TEST_MUTATIONS", "16"))
CPU_SECONDS = 20  # of one report, which takes some hundredths
WORDS = (0, 1, 2, 7, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63,
    (1 << 64) - 1)


def mutated(random_: random.Random, raw: bytes) -> bytes:
    """Bits, bytes, words and pieces changed, most of them where heads lie; sometimes the end is
    missing."""
    made = bytearray(raw)
    for _ in range(random_.choice((1, 1, 2, 4, 16))):
        size = len(made)
        if size < 16:
            break
        page = random_.randrange(max(1, size // 4096)) * 4096
        at = random_.choice((random_.randrange(128), page + random_.randrange(200),
            random_.randrange(size))) % (size - 8)
        kind = random_.randrange(6)
        if kind == 0:
            made[at] ^= 1 << random_.randrange(8)
        elif kind == 1:
            made[at] = random_.randrange(256)
        elif kind == 2:
            struct.pack_into("<Q", made, at & ~7, random_.choice(WORDS))
        elif kind == 3:
            struct.pack_into("<I", made, at & ~3, random_.choice(WORDS) & 0xFFFFFFFF)
        elif kind == 4:
            source, length = random_.randrange(size), random_.choice((8, 32, 64, 4096))
            made[at : at + length] = made[source : source + length].ljust(length,
                b"\0")[: size - at]
        elif random_.random() < 0.3:
            del made[at:]
    return bytes(made)


def damage(random_: random.Random, run: Path) -> None:
    traces = sorted(run.rglob("*.weir"))
    path = random_.choice(traces)
    path.write_bytes(mutated(random_, path.read_bytes()))


def report_in_a_child(run: Path) -> int:
    """The wait status of a process that makes the report, which SIGXCPU ends when it takes too
    long."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        status = 1
        try:
            report_json(build(run))
            status = 0
        except Error:
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Path]:
    directory = tmp_path_factory.mktemp("whole")
    return [write_run(directory / path.stem, path.read_text().split("\n? ")[0]) for path in GOLDEN]


@pytest.mark.timeout(180 + MUTATIONS)
def test_the_report_of_every_damaged_trace_ends(runs, tmp_path):
    seed = int(os.environ.get("WEIR_TEST_SEED", random.SystemRandom().randrange(2**32)))
    print("seed", seed)
    failures = []
    for at in range(MUTATIONS):
        random_ = random.Random(f"{seed} {at}")
        run = tmp_path / "run"
        shutil.copytree(random_.choice(runs), run)
        damage(random_, run)
        if (status := report_in_a_child(run)) != 0:
            failures.append((at, status))
            shutil.move(run, tmp_path / f"failed-{at}")
        else:
            shutil.rmtree(run)
    assert failures == [
        ], f"seed {seed}: number and wait status of each; the runs are in {tmp_path}"


HEADS = (*range(0, 128, 8), *range(4096, 4096 + 320, 8))  # words of the header and of the process


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.campaign)])
def test_figures_that_no_process_has_end_no_report(runs, tmp_path, step):
    """Words at the head of the first two pages, every eighth from a random one on, or each: sums of
    such figures fit no integer of numpy's."""
    first = random.SystemRandom().randrange(step)
    print("first", first)
    whole = next(run for run in runs if run.name == "detail")
    raw = next(whole.rglob("*.weir")).read_bytes()
    failures = []
    for word in HEADS[first::step]:
        run = tmp_path / f"word-{word}"
        shutil.copytree(whole, run)
        next(run.rglob("*.weir")).write_bytes(raw[:word] + struct.pack("<Q", 2**64 - 2**32)
            + raw[word + 8 :])
        if report_in_a_child(run) != 0:
            failures.append(word)
    assert failures == []
