# SPDX-License-Identifier: Apache-2.0
"""A run read by workers of Dask: the same report to the last digit, whatever happens to workers;
clear words where they cannot."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

import weir
from weir import InputError, UsageError
from weir.analysis.tiles import TILE
from weir.cluster import ClusterError, connect
from weir.export import export_parquet
from weir.report import build, report_json
from weir.report.frame.kind import ALL, Options
from weir.report.processes.compute import is_complete
from weir.report.timeline.compute import timeline
from weir.report.timeline.page import has_calls, span_of
from weir.report.waits.summary import synchronisation_of

open_run = weir.open  # `weir` is a fixture in the tests below


def everything_of(run: Path, **choice) -> str:
    """All figures that a report has, as text."""
    made = build(run, **choice)
    figures = report_json(made, Options(tables=(ALL, "graph", "reads")))
    return json.dumps(figures, indent=1)


@pytest.mark.parametrize("choice", [{}, {"all": True}, {"rank": 1}, {"step": "waits"}], ids=str)
def test_the_report_is_the_same_to_the_last_digit(cluster, nodes_run, choice):
    here = everything_of(nodes_run, **choice)
    assert everything_of(nodes_run, reader=cluster, **choice) == here
    assert json.loads(here)["waits"][-1]["critical_s"] > 0


def test_the_command_prints_the_same_from_a_scheduler_that_is_there(cluster, nodes_run, weir):
    address = cluster.client.scheduler.address
    for arguments in (("--json",), ("--trace", "--rank", "1")):
        here, there = weir("report", nodes_run, *arguments), weir("report", nodes_run, *arguments,
            "--dask", address)
        assert (there.stdout, there.stderr, there.returncode) == (here.stdout, here.stderr,
            here.returncode)
        assert here.stdout


def test_tiles_over_time_are_the_same(cluster, nodes_run):
    def made(reader):
        steps = [span_of(step) for step in build(nodes_run, reader=reader).steps if has_calls(step)]
        return timeline(steps)

    here, there = made(None), made(cluster)
    assert (there.lanes, there.segments, there.shift) == (here.lanes, here.segments, here.shift)
    for figure in TILE.names:
        assert (there.by_lane[figure] == here.by_lane[figure]).all(), figure
        assert (there.by_group[figure] == here.by_group[figure]).all(), figure
    assert here.by_lane["calls"].sum() > 400


def test_a_worker_that_is_killed_changes_nothing(cluster, nodes_run):
    here = everything_of(nodes_run)

    def kill(pids: list[int]) -> None:
        time.sleep(0.05)
        os.kill(pids[0], signal.SIGKILL)

    killing = threading.Thread(target=kill, args=(list(cluster.client.run(os.getpid).values()),))
    killing.start()
    made = build(nodes_run, reader=cluster)
    killing.join()
    synchronisation = synchronisation_of(made.steps[0])  # the step is sent to a worker
    assert synchronisation.account is not None
    cluster.client.wait_for_workers(2, timeout=300)
    sent = [future for _, future in cluster._sent.values() if future.status == "finished"]
    holders = {worker for workers in cluster.client.who_has(sent).values() for worker in workers}
    assert holders
    pids = cluster.client.run(os.getpid)
    for worker in holders:
        os.kill(pids[worker], signal.SIGKILL)
    figures = report_json(made, Options(tables=(ALL, "graph", "reads")))
    assert json.dumps(figures, indent=1) == here


def test_a_trace_that_was_cut_tells_the_same(cluster, nodes_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(nodes_run, run)
    cut = run / "waits" / "n1.weir"
    os.truncate(cut, cut.stat().st_size // 2)
    os.truncate(run / "waits" / "n2.weir", 100)
    (run / "traj0" / "n2.weir").write_bytes(b"")
    here = everything_of(run)
    assert everything_of(run, reader=cluster) == here
    assert str(cut) in here and "n2.weir" in here and not is_complete(build(run, reader=cluster))


def test_a_worker_that_does_not_see_a_file_is_named(cluster, nodes_run, tmp_path, monkeypatch):
    """A path that each process sees in its own way: as a directory that a node has for itself."""
    (tmp_path / "empty").mkdir()
    cluster.client.run(os.chdir, str(tmp_path / "empty"))
    monkeypatch.chdir(nodes_run)
    with pytest.raises(InputError) as printed:
        build("/proc/self/cwd", reader=cluster)
    workers = cluster.client.scheduler_info(n_workers=-1)["workers"]
    assert "/proc/self/cwd/" in str(printed.value) and "No such file" in str(printed.value)
    assert any(f"worker {address} on {os.uname().nodename}" in str(printed.value)
        for address in workers)


def test_a_worker_that_sees_another_file_there_is_named(cluster, nodes_run, tmp_path, monkeypatch):
    for directory, trace in (("theirs", "n1.weir"), ("mine", "n0.weir")):
        (tmp_path / directory / "other").mkdir(parents=True)
        shutil.copy(nodes_run / "waits" / trace, tmp_path / directory / "other" / "n0.weir")
    cluster.client.run(os.chdir, str(tmp_path / "theirs"))
    monkeypatch.chdir(tmp_path / "mine")
    with pytest.raises(InputError,
            match=r"/proc/self/cwd/other/n0.weir: .* another file for worker tcp://"):
        build("/proc/self/cwd/other", reader=cluster)


def test_no_scheduler_no_workers_no_dask_are_said_in_bounded_time(monkeypatch):
    import dask
    from distributed import LocalCluster

    with LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty:
        with pytest.raises(ClusterError,
                match="the scheduler has no workers; start some: dask worker"):
            connect(empty.scheduler_address, seconds=1)
    with pytest.raises(ClusterError,
            match=r"--dask tcp://127.0.0.1:9: no scheduler answers there within 1 s"):
        connect("tcp://127.0.0.1:9", seconds=1)
    with pytest.raises(ClusterError, match="--dask elsewhere: no scheduler answers"):
        connect("elsewhere", seconds=1)
    assert dask.base.get_scheduler() is None, "a client that failed is used by other libraries"
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"pip install 'weir-io\[dask\]'"):
        connect("local")


def test_local_workers_end_with_the_command(nodes_run, weir):
    mark = f"of_test={nodes_run}"
    here, there = weir("report", nodes_run, "--json"), weir("report", nodes_run, "--json", "--dask",
        "local", env={"of_test": str(nodes_run)})
    assert (there.stdout, there.stderr, there.returncode) == (here.stdout, here.stderr,
        here.returncode)
    assert not [path for path in Path("/proc").glob("[0-9]*/environ") if mark in _text(path)]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has just ended
        return ""


def rows(table) -> list[dict]:
    """DuckDB gives the rows of a view in any order."""
    return sorted(table.to_pylist(), key=lambda row: json.dumps(row, sort_keys=True))


def test_parquet_by_workers_and_tables_are_the_same(cluster, nodes_run, tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset",
        reason="needs the test extra, on Python 3.11 or newer")
    with open_run(nodes_run) as here, open_run(nodes_run, reader=cluster) as there:
        export_parquet(here, str(tmp_path / "here"), ("events", "files", "processes"))
        export_parquet(there, str(tmp_path / "there"), ("events", "files", "processes"))
        for name in ("critical", "phases", "totals"):
            assert rows(there.table(name).to_arrow()) == rows(here.table(name).to_arrow()) != []
    names = [sorted(str(path.relative_to(tmp_path / place))
        for path in (tmp_path / place).rglob("*.parquet")) for place in ("here", "there")]
    assert names[0] == names[1] and len([name for name in names[0] if "events" in name]) == 9
    for name in names[0]:
        made = [dataset.dataset(tmp_path / place / name).to_table() for place in ("here", "there")]
        assert rows(made[0]) == rows(made[1]), name
    assert dataset.dataset(tmp_path / "there" / "events").count_rows() > 1000
