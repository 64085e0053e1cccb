# SPDX-License-Identifier: Apache-2.0
"""The bench of tracing's cost, at a small size: its counts. What it times is never judged here;
instructions are, as they are the same on any machine of one kind and compiler."""

import json
import shutil
import sys
from pathlib import Path

import pytest

CALLS = ["fread", "fwrite", "read", "pwrite", "open", "write"]
LEVELS = ["weir summary", "weir detail", "weir trace"]


@pytest.fixture(scope="module")
def bench(root, native_build, execute, tmp_path_factory):
    """``bench("--only", "fread")``: the bench's figures."""
    programs = native_build / "bench" / "cost"
    if not (programs / "loops").exists():
        pytest.skip(f"no bench programs in {programs}: built without workloads")

    def run(*options: str, timeout: float = 170) -> dict:
        directory = tmp_path_factory.mktemp("bench")
        command = [sys.executable, root / "bench/cost.py", "--quick", "--json", "-", "--programs",
            programs, "--directory", directory]
        result = json.loads(execute([*command, *options], timeout=timeout).ok().stdout)
        assert list(directory.iterdir()) == [], "the bench leaves files behind"
        return result

    return run


@pytest.fixture(scope="module")
def quick(bench) -> dict:
    return bench("--no-instructions")


def rows_of_weir(result: dict) -> list[dict]:
    return [row for row in result["calls"] if row["tool"].startswith("weir")]


def test_every_call_is_measured_with_every_tool(quick):
    tools = [*LEVELS]
    if Path("/dev/shm").exists():
        tools.append("weir trace (tmpfs)")
    if shutil.which("strace"):
        tools.append("strace -f")
    assert [(row["loop"], row["tool"]) for row in quick["calls"]] == [(call, tool)
        for call in CALLS for tool in tools]
    named = {row["tool"] for row in quick["calls"]} | set(quick["absent"])
    assert {"strace -f", "dftracer", "darshan"} <= named
    processes = [row["tool"] for row in quick["processes"]]
    assert set(tools) | {f"{level}, second process" for level in LEVELS} == set(processes)
    assert quick["floor_ns"]["median"] > 0


def test_every_call_is_in_the_trace_once_and_none_is_lost(quick):
    rows = rows_of_weir(quick)
    assert len(rows) >= len(CALLS) * len(LEVELS)
    assert [(r["loop"], r["tool"]) for r in rows if (r["unseen"], r["lost_events"], r["failures"])
        != (0, 0, 0)] == []


def test_a_record_takes_32_bytes_and_a_share_of_a_header(quick):
    """A chunk of events of 2^k bytes holds 2^k / 32 - 2 records, and chunks double from 4 KiB to 1
    MiB."""
    for row in rows_of_weir(quick):
        if "events" not in row or not row["events"]:
            assert row["tool"] in ("weir summary", "weir detail")
            continue
        headers = 64 * (9 + row["events"] * 32 // 2**20)
        assert 32 < row["filled_bytes_per_event"] <= 32 + headers / row["events"], row
        # At worst the last chunk, as large as all before it, has just been begun; a page each for
        # the file and the process, two for names.
        assert row["bytes_per_event"] * row["events"] <= 2 * (32 * row["events"]
            + headers) + 5 * 4096, row


def test_the_tables_have_every_row(root, native_build, execute, tmp_path, bench):
    command = [sys.executable, root / "bench/cost.py", "--quick", "--only", "pwrite",
        "--no-instructions", "--directory", tmp_path]
    text = execute([*command, "--programs", native_build / "bench" / "cost"],
        timeout=120).ok().stdout
    for tool in LEVELS:
        assert f"pwrite 4 KiB  {tool} " in text
    assert (
        "floor: " in text
        and "a process that does nothing" in text
        and "not measured: dftracer" in text
    )


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("valgrind"),
    reason="valgrind, which counts the instructions, is not installed")
def test_instructions_of_a_recorded_call(bench):
    """Bounds with a quarter to spare over gcc 12: who adds a system call's worth of work to the
    path of every call hears of it."""
    rows = bench("--only", "fread,pwrite,open")["instructions"]
    added = {(row["loop"], row["tool"]): row["added"] for row in rows}
    assert set(added) == {(call, level) for call in ("fread", "pwrite", "open") for level in LEVELS}
    assert 200 < added["open", "weir trace"] < 840, added  # of two calls; a path of 30 bytes
    assert 200 < added["open", "weir summary"] < 770, added
    for call in ("fread", "pwrite"):
        assert 40 < added[call, "weir trace"] < 125, added
        assert 40 < added[call, "weir summary"] < 190, added
        assert added[call, "weir detail"] < 190, added


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("valgrind"),
    reason="valgrind, which counts the instructions, is not installed")
def test_instructions_of_a_call_of_mpi(bench, native_build, pytestconfig):
    """What is not recorded passes the test of a flag; a record of MPI asks MPI for a size, or for
    the count in a status."""
    if not pytestconfig.getoption("slow"):
        pytest.skip("starts MPI some 50 times under valgrind; run it with --slow")
    if not list((native_build / "bench" / "cost").glob("mpi-*")):
        pytest.skip("no MPI was there when the bench was built")
    rows = [row for row in bench("--only", "fread,mpi", timeout=900)["instructions"]
        if "of one rank" in row["title"]]
    assert len(rows) >= 6 and {row["tool"] for row in rows} == {"weir trace", "weir trace --no-mpi"}
    for row in rows:
        calls = 3 if row["loop"] == "exchange" else 1
        # MPI-IO is recorded all the same
        unseen = "--no-mpi" in row["tool"] and row["loop"] != "write_at"
        assert row["added"] < calls * (30 if unseen else 1200), row
