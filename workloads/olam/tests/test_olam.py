# SPDX-License-Identifier: Apache-2.0
"""The olam workload: sizes and requests of each phase, and the phases in weir's table."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.any_mpi

SIZES = ("--input-mb", "1", "--plot-kb", "20", "--result-kb", "50", "--history-mb", "0.2",
    "--state-mb", "1")
PHASES = ["1read", "2params", "3grid", "4halo", "5init", "6plot", "7sum", "8exec", "9write"]
MAP_WORDS = 1_000_000 // 8 // 8
MAP_REQUESTS, PLOT_REQUESTS, RESULT_REQUESTS, HISTORY_REQUESTS = 8 * 2, 5, 13, 49
WRITTEN = 20_000 + 50_000


@pytest.fixture
def directory(case, tmp_path):
    case("olam", 1, "--setup", "--input", tmp_path, *SIZES)
    return tmp_path


def places(directory) -> tuple:
    return "--input", directory, "--output", directory


def test_every_rank_reads_the_maps_and_writes_its_files(case, directory, pattern):
    run = case("olam", 3, *places(directory), *SIZES)
    assert run["requests"] == 3 * (MAP_REQUESTS + PLOT_REQUESTS + RESULT_REQUESTS) + (
        HISTORY_REQUESTS + 1)
    assert run["bytes"] == 3 * (64 * MAP_WORDS + WRITTEN) + 200_000 + 512 and run["wrong"] == 0
    assert len(list(directory.glob("plot.*"))) == len(list(directory.glob("result.000.*"))) == 3
    plot = (directory / "plot.0002").read_bytes()
    assert plot == pattern(1002, 0, 2500).astype("<u8").tobytes()
    assert case("olam", 3, "--verify", *places(directory), *SIZES)["wrong"] == 0


def test_ranks_share_the_maps(case, directory):
    run = case("olam", 4, "--share", *places(directory), *SIZES)
    assert run["bytes"] == 64 * MAP_WORDS + 4 * WRITTEN + 200_000 + 512 and run["wrong"] == 0


def test_frames_have_files_of_their_own(case, directory):
    case("olam", 2, "--frames", 3, "--io-only", *places(directory), *SIZES)
    counts = [len(list(directory.glob(f"{name}.*"))) for name in ("plot", "result", "history")]
    assert counts == [2, 6, 3]
    found = case("olam", 2, "--verify", "--frames", 3, *places(directory), *SIZES)
    assert found["bytes"] == 2 * (20_000 + 3 * 50_000) + 3 * 200_000


def test_a_changed_byte_and_a_short_map_are_found(case, directory):
    case("olam", 2, *places(directory), *SIZES)
    with open(directory / "result.000.0001", "r+b") as file:
        byte = file.read(1)[0]
        file.seek(0)
        file.write(bytes([byte ^ 1]))
    done = case.start("olam", 2, "--verify", *places(directory), *SIZES)
    assert done.returncode != 0 and "wrong=1" in done.stdout
    short = case.start("olam", 2, *places(directory), *SIZES, "--input-mb", 2)
    assert short.returncode != 0 and "is too short; give --setup the same sizes" in short.stderr


def test_phases_and_their_synchronization_are_those_of_the_report(case, directory, weir, tmp_run,
        mpi):
    command = mpi.launch(3, case.program("olam"), *places(directory), *SIZES, "--frames", 2)
    text = weir("trace", "-o", tmp_run, "--", *command, env=mpi.env).ok().stdout
    printed = [line.split(":")[0][5:] for line in text.splitlines() if " first_s=" in line]
    found = json.loads(weir("report", tmp_run, "--json").ok().stdout)["phases"]
    assert printed == PHASES and sorted(row["phase"] for row in found) == PHASES
    for row in found:
        assert row["ranks"] == 3 and row["times"] == (2 if row["phase"] > "7" else 1)


def test_without_barriers_there_are_no_times_of_phases(case, directory):
    done = case.start("olam", 2, "--no-barriers", *places(directory), *SIZES).ok()
    assert "first_s" not in done.stdout and "olam: ranks=2" in done.stdout


@pytest.mark.parametrize("options", [("--request", "12"), ("--frames", "0"), ("--plot-kb", "-1")])
def test_what_makes_no_sense_is_refused(case, directory, options):
    done = case.start("olam", 1, *places(directory), *SIZES, *options)
    assert done.returncode != 0
    assert "expected" in done.stderr or "negative" in done.stderr
