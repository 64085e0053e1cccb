# SPDX-License-Identifier: Apache-2.0
"""Calls of the MPI library itself fail (mpi_faults.c), and windows have the memory model
MPI_WIN_SEPARATE. Every run ends; a file that has its name is that of a run without failures, byte
for byte; where one has not got it, every rank of the model has returned an error.

Only MPI_Comm_split, MPI_Win_create and MPI_Win_free wait for all ranks without a time limit, each
after a barrier that has one."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from weir_process import run

pytestmark = pytest.mark.any_mpi

HERE = Path(__file__).parent
RANKS = 3
WAYS = [("serial", "two-sided"), ("servers", "rma"), ("servers", "two-sided")]
WANTED = os.environ.get("WEIR_TEST_FAULTS", "")
PART = re.fullmatch(r"1|(\d+)/(\d+)", WANTED)  # of the complete campaign: all of it, or part I of N
EACH = 40 if PART else 2
AT_ONCE = 3  # most of a run with a failure is waiting for its time limit
LAST = re.compile(
    r"^rank (\d+): (\d+) calls, (\d+) of weir_init, (\d+) of MPI_Win_sync, number (\d+) waits "
    r"without a time limit; "
    r"(\d+) messages on (\d+) communicators that were freed$",
    re.M,
)


@pytest.fixture
def faults(model):
    """``faults("servers", "rma", 3, (2, 40, 1))``: the output of faults.c as run 3, in which call
    40 of rank 2 and all later ones fail. After a failure the state of MPI is undefined: each run is
    a job of its own."""
    flags = (f"-I{model.root / 'include'}", f"-I{HERE}", str(HERE / "mpi_faults.c"),
        f"-L{model.libraries}",
             f"-Wl,-rpath,{model.libraries}", "-lweir", "-ldl")
    program = model.mpi.cc(HERE / "faults.c", *flags, name="faults")

    def go(mode: str, transport: str, number: int = 0, failing: tuple[int, int, int] = (-1, 0, 0),
            **env: str) -> str:
        env |= {"WEIR_OUTPUT_MODE": mode, "WEIR_OUTPUT_TRANSPORT": transport, **model.mpi.env}
        done = run(model.mpi.launch(RANKS, program, number, *failing), timeout=60, env=env,
            cwd=model.directory)
        assert len(LAST.findall(done.stdout)) == RANKS, done.stdout[-4000:] + done.stderr[-4000:]
        assert all(messages == "0" for *_, messages, _ in LAST.findall(done.stdout)), done.stdout
        return done.stdout

    return go


def calls_to_fail(said: str) -> list[tuple[int, int, int]]:
    """Rank, call, and whether all later ones fail, too: spread over what each rank calls.

    Without the complete campaign only calls after weir_init.
    """
    before = 0 if PART else max(int(n) for _, _, n, *_ in LAST.findall(said))
    if one := re.fullmatch(r"(\d+):(\d+)(\+?)", WANTED):
        return [(int(one[1]), int(one[2]), int(bool(one[3])))]
    calls = [
        (int(rank), before + 1 + (int(calls) - before - 1) * i // (EACH - 1), i % 2)
        for rank, calls, *_ in LAST.findall(said)
        for i in range(EACH)
    ]
    return calls[int(PART[1]) - 1 :: int(PART[2])] if PART and PART[2] else calls


def check(directory: Path, said: str, runs: int) -> int:
    """Files of all runs. Returns how many have no name."""
    right = {name: (directory / f"0.{name}.nc").read_bytes() for name in ("each", "means")}
    assert "run 0 rank 0: computes" in said and not re.search(r"^run 0 .*WEIR_E_", said, re.M)
    lacking = 0
    for number in range(1, runs + 1):
        failed = re.findall(rf"^run {number} rank .*$", said, re.M)
        complete = True
        for name, content in right.items():
            path = directory / f"{number}.{name}.nc"
            if path.exists():
                assert path.read_bytes() == content, (path.name, failed)
            else:
                complete = False
        if complete:
            continue
        lacking += 1
        computes = set(re.findall(rf"^run {number} rank (\d+): computes", said, re.M))
        printed = set(re.findall(rf"^run {number} rank (\d+): WEIR_E_", said, re.M))
        assert printed and computes <= printed, failed
    return lacking


@pytest.mark.timeout(180 * EACH)
@pytest.mark.parametrize(("mode", "transport"), WAYS)
def test_files_are_right_or_missed_when_a_call_of_mpi_fails(model, faults, mode, transport):
    said = faults(mode, transport)
    failing = calls_to_fail(said)
    with ThreadPoolExecutor(AT_ONCE) as jobs:
        said += "".join(jobs.map(lambda run: faults(mode, transport, run[0], run[1]),
            enumerate(failing, 1)))
    assert len(re.findall(r"^run \d+ rank \d+: call .* failed: MPI_\w+$", said, re.M)) >= len(
        failing) // 2
    assert check(model.directory, said, len(failing)) > 0 or len(failing) == 1


@pytest.mark.parametrize("before", [1, 3])  # the end of the barrier, and of the agreement before it
def test_no_rank_is_waited_for_without_a_time_limit(model, faults, before):
    """A rank that gets an error from MPI, though all have met, still comes to the call in which the
    others wait without end, or they do not come either."""
    said = faults("serial", "two-sided")
    rank, *_, blocking, _, _ = LAST.findall(said)[1]
    said += faults("serial", "two-sided", 1, (int(rank), int(blocking) - before, 0))
    assert re.search(rf"^run 1 rank {rank}: call \d+ failed: MPI_Test(all)?$", said, re.M), said
    check(model.directory, said, 1)


# The begin and the end of MPI_Comm_idup; the begin and the end of MPI_Iallgather.
@pytest.mark.parametrize("call", [1, 2, 3, 4])
def test_the_first_calls_of_weir_init_wait_until_the_limit(faults, call):
    said = faults("serial", "two-sided", 1, (1, call, 0))
    name = ("MPI_Comm_idup", "MPI_Test", "MPI_Iallgather", "MPI_Testall")[call - 1]
    assert re.search(rf"^run 1 rank 1: call {call} failed: {name}$", said, re.M), said
    waited_for = "MPI_Comm_idup" if call == 1 else "MPI_Iallgather"
    for rank in range(RANKS):
        (code, message) = re.search(rf"^run 1 rank {rank}: (WEIR_E_\w+): (.*)$", said,
            re.M).groups()
        if rank == 1:
            assert code == "WEIR_E_MPI", said
        elif (
            call < 4
        ):  # at the end of MPI_Iallgather the others have what they need, and wait in a later call
            assert code == "WEIR_E_LOST" and message.startswith(
                waited_for) and "within 0 s" in message, said


@pytest.mark.parametrize(("mode", "transport"), WAYS)
def test_nothing_lies_on_a_communicator_that_is_freed(faults, mode, transport):
    """Ranks end as soon as they know enough; what comes for them later would meet the next
    communicator of that number."""
    freed = [int(n) for *_, n in LAST.findall(faults(mode, transport))]
    assert min(freed) >= 1 and sum(freed) >= 5


def test_windows_of_two_copies_are_brought_up_to_date(model, faults):
    """What is fetched is what MPI_Win_sync has made public: without it a file would have zeros."""
    syncs = [int(n) for _, _, _, n, *_ in LAST
        .findall(faults("servers", "rma", MPI_FAULT_SEPARATE="1"))]
    # the two that compute, at each step
    assert len(syncs) == RANKS and sum(n >= 5 for n in syncs) == 2
    separate = (model.directory / "0.each.nc").read_bytes()
    faults("servers", "two-sided")
    assert (model.directory / "0.each.nc").read_bytes() == separate
