# SPDX-License-Identifier: Apache-2.0
"""weir output recover: a netCDF-4 file whose writer was killed at any of its writes is complete up
to its last finished record."""

from __future__ import annotations

import fcntl
import re
import shutil

import pytest
from netCDF4 import Dataset

from weir import output

pytestmark = pytest.mark.any_mpi

RECORDS = 6


@pytest.fixture
def write(native_build, execute):
    """Writes a file of RECORDS records; strace kills the writer at its n-th pwrite."""
    program = native_build / "native/output/weir-write-stream"
    if not program.exists():
        pytest.skip("the formats of netCDF are not built: cmake says which package they need")

    def call(path, at: int | None = None) -> str:
        command = [program, "netcdf4", "lonlat", path, RECORDS, 1]
        if at is not None:
            inject = f"inject=pwrite64:signal=KILL:when={at}"
            command = ["strace", "-f", "-e", "trace=pwrite64", "-e", inject, "-o", f"{path}.strace",
                *command]
        execute([str(part) for part in command])
        return f"{path}.strace"

    return call


@pytest.fixture(autouse=True)
def _here(native_build, monkeypatch):
    monkeypatch.setenv("WEIR_OUTPUT_LIBRARIES", str(native_build / "lib"))


def is_valid(journal) -> bool:
    return journal.exists() and journal.read_bytes()[:8] == b"weirjrn1"


def test_after_a_kill_at_each_write_of_a_record_the_finished_records_are_there(write, tmp_path):
    calls = write(tmp_path / "whole", at=65535)  # never
    with open(calls) as file:
        writes = sum("pwrite64(" in line for line in file)
    with Dataset(tmp_path / "whole") as file:
        whole = {name: file[name][:] for name in file.variables}
    per_record = writes // (RECORDS + 1)
    first = writes // 2
    valid = 0
    seen = set()
    for at in range(first, first + per_record + 2):
        path = tmp_path / f"f{at}"
        write(path, at)
        journal = path.with_name(path.name + ".journal")
        valid += is_valid(journal)
        words = output.recover(path)
        records = int(re.search(r": (\d+) finished steps?;", words)[1])
        seen.add(records)
        assert not journal.exists() and 0 < records < RECORDS
        with Dataset(path) as file:
            assert len(file.dimensions["time"]) == records
            for name, values in whole.items():
                found = file[name][:]
                part = values[:records] if "time" in file[name].dimensions else values
                assert found.tobytes() == part.tobytes(), (at, name)
    assert valid > 3, (
        f"no kill hit the metadata: {writes} writes, tried {per_record + 2} from {first} on"
    )
    assert len(seen) > 1


def test_the_command_finds_the_file_by_its_final_name_and_says_what_it_did(write, weir, tmp_path):
    write(tmp_path / "whole")
    (tmp_path / "whole").rename(tmp_path / ".h.nc.weir-part")
    env = {"WEIR_OUTPUT_LIBRARIES": str(output._check._library().rsplit("/", 1)[0])}
    done = weir("output", "recover", tmp_path / "h.nc", env=env).ok()
    assert (
        ".h.nc.weir-part: 6 finished steps; there is no journal, nothing was to do; to use it: mv "
        f"{tmp_path}/.h.nc.weir-part {tmp_path}/h.nc\n" in done.stdout
    )
    # as a writer leaves it that was killed between two records
    (tmp_path / ".h.nc.weir-part.journal").write_bytes(b"")
    done = weir("output", "recover", tmp_path / ".h.nc.weir-part", env=env).ok()
    assert "6 finished steps; what its journal said of the last one is done" in done.stdout
    assert not (tmp_path / ".h.nc.weir-part.journal").exists()


def test_what_cannot_be_recovered_is_said_with_status_3(write, weir, tmp_path):
    env = {"WEIR_OUTPUT_LIBRARIES": str(output._check._library().rsplit("/", 1)[0])}
    done = weir("output", "recover", tmp_path / "none.nc", env=env)
    assert done.returncode == 3 and "none.nc: there is no such file, and no" in done.stderr
    (tmp_path / "text.nc").write_text("no netCDF")
    done = weir("output", "recover", tmp_path / "text.nc", env=env)
    assert done.returncode == 3 and "text.nc" in done.stderr
    assert "expected a file that libweir writes" in done.stderr.replace("\n", " ")


def test_a_file_that_is_being_written_is_left_alone(write, tmp_path):
    write(tmp_path / "f")
    shutil.copy(tmp_path / "f", tmp_path / "g")
    with open(tmp_path / "g.journal", "wb") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        with pytest.raises(output.OrderError, match="a process is still writing it"):
            output.recover(tmp_path / "g")
    assert "finished" in output.recover(tmp_path / "g")


def test_a_file_whose_writer_holds_its_lock_is_left_alone_and_the_writer_named(write, weir,
        tmp_path):
    for part, lock in (("h.nc", ".h.nc.weir-part.lock"),
            (".g.nc.weir-part", ".g.nc.weir-part.lock"),
            (".g.nc.weir-part.2", ".g.nc.weir-part.lock")):
        write(tmp_path / part)
        (tmp_path / lock).write_text("word-0\nprocess 4711 on node7\n")
        assert "6 finished steps" in output.recover(tmp_path
            / part), "what a killed job leaves is in nobody's way"
        with open(tmp_path / lock) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(output.OrderError,
                    match=rf"process 4711 on node7 is still writing it \(it holds "
                          rf"{tmp_path / lock}\); .*--force"):
                output.recover(tmp_path / part)
            assert "6 finished steps" in output.recover(tmp_path / part, force=True)
    env = {"WEIR_OUTPUT_LIBRARIES": str(output._check._library().rsplit("/", 1)[0])}
    with open(tmp_path / ".g.nc.weir-part.lock") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = weir("output", "recover", tmp_path / "g.nc", env=env)
        assert (
            done.returncode == 3
            and ".g.nc.weir-part.2: process 4711 on node7 is still writing it" in done.stderr
        )
        assert ".g.nc.weir-part.2: 6 finished steps" in weir("output", "recover", "--force",
            tmp_path / "g.nc", env=env).ok().stdout


def test_a_job_that_lives_is_seen(model, monkeypatch, native_build):
    """The lock is that of the server; the model waits for the pipe at step 1."""
    import os
    import threading

    from weir_process import run

    os.mkfifo(model.directory / "pipe")
    env = {**model.mpi.env, "WEIR_OUTPUT_MODE": "servers"}
    command = model.mpi.launch(3, model.program, "", "path=o.nc", "wait=pipe", "format=netcdf4",
        "steps=4")
    job = threading.Thread(target=run, args=(command,),
        kwargs={"timeout": 90, "env": env, "cwd": model.directory})
    job.start()
    try:
        with open(model.directory / "pipe", "w"):  # returns when rank 0 is at step 1
            for _ in range(1000):
                if (model.directory / ".o.nc.weir-part").exists():  # after its lock
                    break
                threading.Event().wait(0.05)
            with pytest.raises(output.OrderError,
                    match=rf"process \d+ on {os.uname().nodename} is still writing it"):
                output.recover(model.directory / "o.nc")
    finally:
        job.join()
    assert "4 finished steps" in output.recover(model.directory / "o.nc")
