# SPDX-License-Identifier: Apache-2.0
"""Run directories: names, refusal, overwriting, job.json."""

from __future__ import annotations

import json
import os
import stat

import pytest

from weir import StorageError, UsageError
from weir.capture._run import (
    Job, batch_job, check_run, check_step, finish_env_step, make_step, trace_files
)  # fmt: skip


def job(**changes) -> Job:
    return Job(**{**dict(step="a", command=["x"], cwd="/", level="trace", budget_bytes=1, weir="1",
        started_realtime_ns=5), **changes})


@pytest.mark.parametrize("name", ["main", "traj0", "with blank", "Schritt ä", "a.b", "x-1", "日本",
    "x" * 255])
def test_any_plain_directory_name_is_a_step(name):
    assert check_step(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "-", "--", "-x", "a/b", "/a", "a\nb",
    "a\tb", "a\x7f", "x" * 256, "ä" * 128])
def test_other_names_are_refused(name):
    with pytest.raises(UsageError, match=r"^--step .*a step is the name of one directory"):
        check_step(name)


@pytest.mark.parametrize("name", ["", "-", "--", "-q"])
def test_a_run_directory_that_looks_like_an_option_is_refused(name):
    with pytest.raises(UsageError, match="^-o .*directory"):
        check_run(name)
    assert check_run(f"./{name}x") == f"./{name}x"


def test_a_step_with_a_trace_is_refused_and_left_alone(tmp_path):
    directory = tmp_path / "run" / "a"
    assert make_step(str(tmp_path / "run"), "a", False) == str(directory)
    (directory / "n1.weir").write_bytes(b"old")
    with pytest.raises(UsageError, match="holds a trace already.*--overwrite"):
        make_step(str(tmp_path / "run"), "a", False)
    assert (directory / "n1.weir").read_bytes() == b"old"


@pytest.mark.parametrize("share, directory_mode, file_mode",
    [(None, 0o700, 0o600), ("group", 0o750, 0o640), ("all", 0o755, 0o644)])
def test_only_whom_the_owner_shares_a_run_with_can_read_it(tmp_path, share, directory_mode,
        file_mode):
    before = os.umask(0o077 if share else 0)
    try:
        directory = make_step(str(tmp_path / "above" / "run"), "a", False, share=share)
        job().write(directory, share)
        job().ended(0).write(directory)  # keeps what the first one has
    finally:
        os.umask(before)
    made = tmp_path / "above" / "run"
    assert [stat.S_IMODE(one.stat().st_mode) for one in (made, made / "a",
        made / "a" / "job.json")] == [directory_mode, directory_mode, file_mode]


def test_a_directory_that_is_there_keeps_its_permissions(tmp_path):
    (tmp_path / "run").mkdir(mode=0o755)
    make_step(str(tmp_path / "run"), "a", False)
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o755


def test_a_step_without_a_trace_can_be_begun_again(tmp_path):
    directory = make_step(str(tmp_path), "a", False)
    job().write(directory)
    assert make_step(str(tmp_path), "a", False) == directory


def test_overwriting_removes_nothing_but_the_trace_of_that_step(tmp_path):
    for step in ("a", "b"):
        directory = tmp_path / step
        directory.mkdir()
        for name in ("n1.weir", "n2.weir", "job.json", "model.f90"):
            (directory / name).write_text("x")
    make_step(str(tmp_path), "a", True)
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["model.f90"]
    assert len(list((tmp_path / "b").iterdir())) == 4


def test_the_step_one_is_traced_into_cannot_be_overwritten(tmp_path):
    directory = make_step(str(tmp_path), "a", False)
    (tmp_path / "a" / "n.weir").write_text("x")
    with pytest.raises(UsageError, match="itself traced into that step"):
        make_step(str(tmp_path), "a", True, outer=directory)


def test_the_step_one_is_traced_into_can_be_begun_again_by_weir_env_alone(tmp_path):
    directory = make_step(str(tmp_path), "a", False)
    assert make_step(str(tmp_path), "a", False, outer=directory, begun=True) == directory
    with pytest.raises(UsageError, match="itself traced into that step"):
        make_step(str(tmp_path), "a", False, outer=f"{tmp_path}/./a/")


def test_a_place_that_cannot_be_written_is_named_with_the_reason(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError,
            match=r"file/run/a: the trace cannot be written here: Not a directory"):
        make_step(str(tmp_path / "file" / "run"), "a", False)


def test_trace_files_of_no_directory_are_none(tmp_path):
    assert trace_files(str(tmp_path / "nowhere")) == []


def test_job_json_has_the_keys_of_the_format_and_leaves_no_other_file(tmp_path):
    job(command=["./model", "ä b", "\udcff"]).write(str(tmp_path))
    written = json.loads((tmp_path / "job.json").read_text())
    assert written == {
        "format": 1, "step": "a", "command": ["./model", "ä b", "\udcff"], "cwd": "/",
        "level": "trace", "budget_bytes": 1,
        "started_realtime_ns": 5, "ended_realtime_ns": None, "exit_status": None,
        "kernel_bytes": None, "user": None, "batch_system": None, "job_id": None, "weir": "1",
        "pid": None, "rules": None, "node_job": None,
    }  # fmt: skip
    job().ended(-9).write(str(tmp_path))
    written = json.loads((tmp_path / "job.json").read_text())
    assert written["exit_status"] == -9 and written["ended_realtime_ns"] > written[
        "started_realtime_ns"]
    assert [p.name for p in tmp_path.iterdir()] == ["job.json"]


@pytest.mark.parametrize("variable, system", [("SLURM_JOB_ID", "Slurm"), ("PBS_JOBID", "PBS"),
    ("LSB_JOBID", "LSF"), ("PJM_JOBID", "PJM"), ("FLUX_JOB_ID", "Flux"),
    ("COBALT_JOBID", "Cobalt")])
def test_the_job_of_the_batch_system_is_known_by_its_variable(variable, system):
    assert batch_job({variable: "17.server"}) == (system, "17.server")
    assert batch_job({variable: ""}) == batch_job({}) == (None, None)


def test_only_a_step_of_weir_env_that_still_runs_is_finished_from_outside(tmp_path):
    for name, begun in {"env": job(command=None), "trace": job(),
            "over": job(command=None, ended_realtime_ns=7)}.items():
        (tmp_path / name).mkdir()
        begun.write(str(tmp_path / name))
        finish_env_step(str(tmp_path / name))
    ended = {p.name: json.loads((p / "job.json").read_text())["ended_realtime_ns"]
        for p in tmp_path.iterdir()}
    assert ended["trace"] is None and ended["over"] == 7 and ended["env"] > 7


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 2}', "\xff",
    '{"format": 1, "command": null, "ended_realtime_ns": null}'])
def test_a_job_file_that_is_something_else_is_left_as_it_is(tmp_path, text):
    (tmp_path / "job.json").write_text(text, encoding="latin-1")
    finish_env_step(str(tmp_path))
    finish_env_step(None)
    assert (tmp_path / "job.json").read_text(encoding="latin-1") == text
