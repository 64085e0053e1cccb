# SPDX-License-Identifier: Apache-2.0
"""The rules that `weir stage suggest` prints for a traced run, used for the next one: the same
files, fewer bytes at the file system."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from weir_fixtures import NATIVE_BUILD

RUN = Path(__file__).parents[1] / "run"
BIN = Path(os.environ.get("WEIR_4DVAR_BIN", NATIVE_BUILD / "workloads" / "4dvar"))


@pytest.fixture
def tier(tmp_path):
    place = Path("/dev/shm") / f"weir-test-4dvar-{os.getpid()}-{tmp_path.name[:40]}"
    yield place
    shutil.rmtree(place, ignore_errors=True)


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*") if path.is_file() and not path.is_symlink()}


@pytest.mark.mpi
@pytest.mark.slow
def test_a_run_under_the_suggested_rules_makes_the_same_files(any_workload, execute, weir, testfs,
        tmp_path, tmp_run, tier):
    fs = testfs("direct")
    work = fs.path / "w"
    job = [RUN, "--work", work, "--mpi", any_workload.mpi.name, "--ranks", "2", "--tiny", "--bin",
        BIN, "--compute", "0"]
    weir_command = Path(sys.executable).parent / "weir"
    execute([*job, "--weir", tmp_run, "--weir-command", weir_command], timeout=300).ok()
    shutil.rmtree(work)
    fs.reset()
    execute(job, timeout=300).ok()
    plain, files = fs.stats(), contents(fs.backing / "w")
    rules = tmp_path / "rules.toml"
    rules.write_text(weir("stage", "suggest", tmp_run, "--tier", tier).ok().stdout)
    shutil.rmtree(work)
    fs.reset()
    weir("run", "--rules", rules, "--", *job, timeout=300).ok()
    weir("stage", "recover", tier).ok()
    staged, at_place = fs.stats(), contents(fs.backing / "w")
    assert at_place == files
    # What a later step reads it reads from the tier.
    assert staged.bytes_read < plain.bytes_read / 2
    assert staged.data_requests < plain.data_requests and staged.opens < plain.opens
