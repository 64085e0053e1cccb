#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What waits cost as the calls of MPI grow: CPU seconds and peak memory of `weir report --json` of
a run with so many records of MPI, and the memory for each record more.

    python bench/waiting.py [--records 0.2,1,2,10] [--ranks 4] [--directory DIR] [--keep]

The run: ranks on nodes of their own that exchange messages with their neighbours (blocking ones and
by requests), and meet in collectives of all kinds and in MPI_Barrier, with a call on a file for
each 10 records of MPI. A barrier of all ranks ends each of its rounds, of some 20 records.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from scale import cost_of

SEED = 20260101
ROUND_NS = 1_000_000
ROUNDS_AT_ONCE = 1 << 13
RECORDS_OF_ROUND = 20
SYNCS = 3  # barriers of MPI_Init, and of MPI_Finalize, by which clocks are aligned


def write_run(run: Path, count: int, ranks: int = 4) -> None:
    """At least so many records of MPI of all ranks together."""
    from weir.trace._synthetic import TraceWriter, sync

    (run / "main").mkdir(parents=True)
    rounds = -(-count // (RECORDS_OF_ROUND * ranks))
    with ExitStack() as stack:
        for rank in range(ranks):
            writer = stack.enter_context(
                TraceWriter(run / "main" / f"node{rank:05d}.weir", f"node{rank:05d}"))
            end = writer.created_ticks + (rounds + 2) * ROUND_NS
            process = writer.process(100 + rank, rank, ranks, rank_source=2, last_ticks=end,
                end_ticks=end, last_mono_ns=writer.mono_ns(end))
            names = [process.name(text) for text in (f"mpi:world:{ranks}", f"/scratch/an/{rank}")]
            for first in range(0, rounds, ROUNDS_AT_ONCE):
                at = np.arange(first, min(first + ROUNDS_AT_ONCE, rounds))
                process.events(_rounds(rank, ranks, at, writer.created_ticks, *names))
            marks = [sync(end - 1000 * (9 - one) if one > SYNCS else writer.created_ticks + one,
                one, ranks) for one in range(1, 2 * SYNCS + 1)]
            process.events(marks, thread=2)


def _rounds(
    rank: int, ranks: int, at: np.ndarray, created: int, world: int, file: int
) -> np.ndarray:
    """What one rank does in some rounds, in the order in which its calls end."""
    from weir.trace._synthetic import event, mpi
    from weir.trace.ops import mpi_routines

    routine = {name: value for value, name in mpi_routines().items()}
    random = np.random.default_rng([SEED, rank, int(at[0])])
    begin = created + (at + 1) * ROUND_NS
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    sequence, made = 6 * at, []

    def spread(most: int) -> np.ndarray:
        return random.integers(0, most, len(at))

    def message(op: str, name: str, after: int, peer: int, lasts: int, size: int = 1000) -> None:
        made.append(mpi(op, begin + after + spread(5000), 500 + spread(lasts), routine[name],
            file=world, offset=peer, size=size))

    def wait(after: int, lasts: int, kinds: list[tuple[int, int | np.ndarray]]) -> None:
        start, length = begin + after + spread(5000), 500 + spread(lasts)
        made.append(mpi("MPI_wait", start, length, routine["MPI_Waitall"], size=len(kinds)))
        for kind, offset in kinds:
            made.append(mpi("MPI_awaited", start, length, kind, file=world, offset=offset,
                size=1 << 14, nested=True))

    def collective(name: str, after: int, late: int, number: int, starts: bool = False) -> None:
        came = begin + after + spread(late)
        op = "MPI_start_collective" if starts else "MPI_collective"
        length = 300 if starts else begin + after + late + 2000 - came
        made.append(mpi(op, came, length, routine[name], file=world, offset=sequence + number,
            size=8))

    made.append(event("write", begin + 1000 + spread(3000), 20_000 + spread(60_000 * (1 + rank)),
        file=file, size=4096))
    made.append(event("read", begin + 300_000, 100 + spread(50_000), file=file, size=512))
    for number in range(2):
        after = 310_000 + 30_000 * number
        message("MPI_send", "MPI_Send", after, right, 8000, 100_000 * number + 100)
        message("MPI_receive", "MPI_Recv", after + 14_000, left, 12_000, 100_000 * number + 100)
    collective("MPI_Iallreduce", 380_000, 4000, 0, starts=True)
    wait(400_000, 30_000, [(1, left), (3, right), (1, left), (3, right)])
    wait(440_000, 30_000, [(2, sequence)])
    collective("MPI_Bcast", 500_000, 40_000, 1)
    collective("MPI_Allreduce", 560_000, 40_000, 2)
    collective("MPI_Reduce", 620_000, 40_000, 3)
    collective("MPI_Gather", 680_000, 40_000, 4)
    message("MPI_probe", "MPI_Probe", 730_000, left, 10_000)
    message("MPI_send", "MPI_Send", 730_000, right, 8000)
    message("MPI_receive", "MPI_Recv", 750_000, left, 10_000)
    collective("MPI_Barrier", 800_000, 90_000, 5)
    return np.stack(made, axis=1).ravel()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", default="0.2,1,2,10",
        help="millions of records of MPI, separated by commas")
    parser.add_argument("--ranks", type=int, default=4, help="how many, each on a node of its own")
    parser.add_argument("--directory",
        help="where to put the traces; a temporary directory otherwise")
    parser.add_argument("--keep", action="store_true", help="leave the traces")
    options = parser.parse_args()
    directory = Path(options.directory or tempfile.mkdtemp(prefix="weir-waiting-"))
    print(f"seed {SEED}; {options.ranks} ranks; load {os.getloadavg()[0]:.1f} on "
          f"{len(os.sched_getaffinity(0))} cores at the beginning")
    print(f"{'records':>10} {'wall s':>8} {'CPU s':>8} {'peak MB':>8} {'B more':>8} {'ns more':>8}"
          "  (for each record more)")
    before = None
    try:
        for count in (round(float(one) * 1e6) for one in options.records.split(",")):
            run = directory / f"waits-{count}-{options.ranks}"
            if not run.exists():
                write_run(run, count, options.ranks)
            cost = cost_of([sys.executable, "-m", "weir", "report", str(run), "--json"])
            more = ""
            if before is not None:
                records = count - before[0]
                more = (f"{(cost.rss - before[1].rss) / records:8.0f} "
                        f"{(cost.cpu - before[1].cpu) / records * 1e9:8.0f}")
            print(f"{count / 1e6:8.1f} M {cost.wall:8.2f} {cost.cpu:8.2f} {cost.rss / 1e6:8.0f} "
                  f"{more}", flush=True)
            before = count, cost
            if not options.keep:
                shutil.rmtree(run)
    finally:
        if not options.keep and not options.directory:
            shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
