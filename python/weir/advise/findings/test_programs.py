# SPDX-License-Identifier: Apache-2.0
"""Findings in traces of real MPI programs, beside programs that just miss them. Times are sleeps
and those of the test file system; nodes are host names of UTS namespaces."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from advised import advise_run, names, the

ROOT = Path(__file__).resolve().parents[4]
PROGRAM = ROOT / "tests" / "programs" / "advised.c"
MIB = 1 << 20
SLOW = pytest.mark.campaign
pytestmark = [pytest.mark.mpi, pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)]


@pytest.fixture
def found(mpi, weir, tmp_path):
    """``found(ranks, "work", path, 300, step="a", nodes=2)``: runs the program, traced, as one more
    step of the run; the report on all steps."""

    def call(ranks: int, *words: object, step: str = "main", nodes: int = 1):
        command = [mpi.cc(PROGRAM), *map(str, words)]
        if nodes > 1:
            if os.geteuid() != 0 or shutil.which("unshare") is None:
                pytest.skip("host names of a rank's own need root and unshare")
            name = f"hostname node$((OMPI_COMM_WORLD_RANK * {nodes} / {ranks}))"
            command = ["unshare", "-u", "sh", "-c", f'{name}; exec "$@"', "sh", *command]
        run = tmp_path / "run"
        weir("trace", "-o", run, "--step", step, "--", *mpi.launch(ranks, *command), env=mpi.env,
            timeout=90).ok()
        return advise_run(run)

    return call


@pytest.mark.parametrize("directory", ["", pytest.param("own", marks=SLOW)])
def test_creates_of_all_ranks_in_one_directory(found, testfs, directory):
    """The kernel sends creates of one directory one after the other; each takes 40 ms here."""
    place = testfs("direct", round_trip_us=40_000)
    if directory:
        for rank in range(8):
            (place.backing / f"own{rank}").mkdir()
    report = found(8, "creates", place.path / (f"{directory}%d/file%d" if directory else "f%d.%d"))
    assert ("lock-step-creates" in names(report)) == (not directory)
    if not directory:
        assert "8 ranks create 8 files" in the(report, "lock-step-creates").sentence


@pytest.mark.parametrize(("aggregators", "nodes", "said"), [
    (1, 2, "1 aggregator for 2 nodes"), (1, 1, ""),
    pytest.param(2, 2, "2 aggregators on 1 node of 2", marks=SLOW),
    pytest.param(4, 2, "", marks=SLOW)])
def test_aggregators_of_nodes(found, testfs, aggregators, nodes, said):
    """ROMIO takes the first ranks, which are those of the first node. On one node an aggregator is
    no server. On two of them the shells that set host names, on a node of the machine's own name,
    count as ranks of another program."""
    place = testfs("direct", data_us=10_000)
    report = found(4, "collective", place.path / "all", 4 * MIB, f"cb_nodes={aggregators}",
        "cb_config_list=*:4", "romio_cb_write=enable", "cb_buffer_size=1048576", nodes=nodes)
    assert ("aggregators" in names(report)) == bool(said) and report.facts.has_collectives
    assert nodes > 1 or not {"serial-io", "io-servers"} & set(names(report))
    if said:
        assert said in the(report, "aggregators").sentence.replace("\u00a0", " ")


@pytest.mark.parametrize(("factor", "at", "said"), [
    (16, 0, "16 stripes of 1 MiB, of which 2 hold a byte"),
    pytest.param(1, 9 << 30, "lie on 1 stripe", marks=SLOW),
    pytest.param(2, 0, "", marks=SLOW), pytest.param(2, 9 << 30, "", marks=SLOW)])
def test_stripes_beside_the_size_of_the_file(found, testfs, factor, at, said):
    """The layout is that of the hints, as on file systems that do not say theirs."""
    place = testfs("direct", round_trip_us=20_000, data_us=100_000)
    report = found(2, "striped", place.path / "all", factor, at)
    assert ("stripes" in names(report)) == bool(said) and not report.facts.has_collectives
    if said:
        assert said in the(report, "stripes").sentence.replace("\u00a0", " ")


@pytest.mark.campaign
@pytest.mark.parametrize("in_turn", [0, 1])
def test_streams_of_ranks_that_mix_on_their_node(found, testfs, in_turn):
    """2,000 requests of 300 KiB of a sparse file."""
    place = testfs("lustre")
    size = 300 << 10
    with open(place.backing / "all", "wb") as file:
        file.truncate(4 * 510 * size)
    report = found(4, "streams", place.path / "all", 510, size, in_turn)
    assert ("node-interleaving" in names(report)) == (not in_turn)


@pytest.mark.parametrize(("servers", "compute_ms", "data_us", "said"), [
    (1, 100, 500_000, "the model waits"), pytest.param(2, 100, 0, "they stand still", marks=SLOW),
    pytest.param(1, 100, 5_000, "", marks=SLOW)],
    ids=["late", "idle", "well"])
def test_servers_that_are_late_or_stand_still(found, testfs, servers, compute_ms, data_us, said):
    place = testfs("direct", data_us=data_us)
    report = found(4 + servers, "quilt", place.path / "frame%d", servers, 8, compute_ms)
    assert ("io-servers" in names(report)) == bool(said)
    if said:
        assert said in the(report, "io-servers").sentence.replace("\u00a0", " ")


def test_one_program_started_for_each_of_three_steps(found, tmp_path):
    for step in ("first", "second"):
        assert "one-binary" not in names(found(2, "work", tmp_path / "out", 1, step=step))
    assert "3 parallel programs" in the(found(2, "work", tmp_path / "out", 1, step="third"),
        "one-binary").sentence.replace("\u00a0", " ")


@pytest.mark.parametrize(("few_ms", "many_ms"), [(300, 1500), pytest.param(1500, 300, marks=SLOW)])
def test_ranks_that_make_it_no_faster(found, tmp_path, few_ms, many_ms):
    found(2, "work", tmp_path / "out", few_ms, step="few")
    report = found(4, "work", tmp_path / "out", many_ms, step="many")
    assert ("too-many-cores" in names(report)) == (many_ms > few_ms)
