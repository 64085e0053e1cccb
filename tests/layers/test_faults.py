# SPDX-License-Identifier: Apache-2.0
"""Layers error, delay, short, and hints away from Lustre: what the program gets, the same in every
run of one seed, and what the trace says of it; and a limit of the system on what the layers need
for themselves."""

from __future__ import annotations

import json
import time

import pytest

PROGRAM = r"""
import errno, os, sys
def tried(what, call):
    try:
        print(what, call())
    except OSError as error:
        print(what, errno.errorcode[error.errno])
def made():
    global fd
    fd = os.open("faulty", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    return "opened"
tried("open", made)
if "fd" in globals():
    for i in range(int(sys.argv[1])):
        tried("write", lambda: os.pwrite(fd, bytes(1000), i * 1000))
    for i in range(int(sys.argv[1])):
        tried("read", lambda: len(os.pread(fd, 1000, i * 1000)))
    tried("truncate", lambda: os.ftruncate(fd, 10))
    tried("fsync", lambda: os.fsync(fd))
    tried("close", lambda: os.close(fd))
"""


@pytest.fixture
def faulty(weir, tmp_path):
    """``faulty(stack, 5)``: results of five writes and reads and what follows, by call, and the
    file's entry in the report."""

    def run(stack, count=5):
        rules, run_directory = tmp_path / "rules.toml", tmp_path / f"run{time.monotonic_ns()}"
        rules.write_text(f'[[rule]]\nname = "faulty"\nstack = "{stack}"\n')
        command = ["python3", "-c", PROGRAM, str(count)]
        done = weir("run", "--rules", rules, "--trace", run_directory, "--", *command,
            cwd=tmp_path).ok()
        results: dict[str, list[str]] = {}
        for line in done.stdout.splitlines():
            what, result = line.split()
            results.setdefault(what, []).append(result)
        report = json.loads(weir("report", run_directory, "--json").stdout)
        layered = {file["file"].rsplit("/", 1)[-1]: file for file in report["layers"]}
        return results, layered.get("faulty")

    return run


def statistic(file, layer, name):
    return next((f["value"] for f in file["statistics"] if (f["layer"], f["name"])
        == (layer, name)), 0)


def test_error_fails_the_calls_that_it_names(faulty):
    results, file = faulty("error:op=write:errno=ENOSPC:after=2:times=1")
    assert results["write"] == ["1000", "1000", "ENOSPC", "1000", "1000"]
    assert results["read"] == ["1000"] * 5 and results["fsync"] == results["close"] == results[
        "truncate"] == ["None"]
    assert statistic(file, "error", "failed") == 1
    assert file["logical"]["writes"] == 5 and file["system"][
        "writes"] == 4, "the failed one did not reach the system"


@pytest.mark.parametrize("op", ["open", "read", "write", "fsync", "truncate", "close"])
def test_error_in_each_operation(faulty, op):
    results, _ = faulty(f"error:op={op}:errno=EIO")
    assert set(results[op]) == {"EIO"}
    assert all("EIO" not in found for other, found in results.items() if other != op)


def test_error_by_bytes_of_the_file(faulty):
    results, _ = faulty("error:op=read:first=2500:last=3000")
    assert results["read"] == ["1000", "1000", "EIO", "EIO", "1000"]


def test_error_by_chance_is_the_same_for_the_same_seed(faulty):
    first, file = faulty("error:op=write:rate=0.3:seed=7", 60)
    again, _ = faulty("error:op=write:rate=0.3:seed=7", 60)
    other, _ = faulty("error:op=write:rate=0.3:seed=8", 60)
    assert first == again != other
    assert 5 <= first["write"].count("EIO") <= 35
    assert statistic(file, "error", "failed") == first["write"].count("EIO")


def test_delay_waits_at_least_so_long(faulty):
    begin = time.monotonic()
    results, file = faulty("delay:op=write:us=20000")
    assert time.monotonic() - begin >= 5 * 0.02
    assert results["write"] == ["1000"] * 5
    assert statistic(file, "delay", "delayed") == 5 and statistic(file, "delay",
        "waited") == 5 * 20_000_000
    assert file["iowait_s"] >= 5 * 0.02


def test_short_moves_fewer_bytes_and_says_so(faulty):
    results, file = faulty("short:op=write:bytes=300")
    assert results["write"] == ["300"] * 5
    assert results["read"] == ["1000"] * 4 + ["300"], "holes are zeros"
    assert statistic(file, "short", "shortened") == 5


def test_short_by_chance_never_moves_nothing(faulty):
    results, _ = faulty("short:rate=0.5:seed=3", 60)
    moved = [int(result) for result in results["write"] + results["read"]]
    assert min(moved) >= 1 and any(n < 1000 for n in moved) and any(n == 1000 for n in moved)


def test_a_program_that_loops_is_not_disturbed_by_short(weir, tmp_path):
    (tmp_path / "rules.toml").write_text('[[rule]]\nname = "copy"\nstack = "short:seed=5"\n')
    (tmp_path / "source").write_bytes(bytes(range(256)) * 500)
    done = weir("run", "--rules", tmp_path / "rules.toml", "--", "dd", "if=source", "of=copy",
        "bs=7001", cwd=tmp_path)
    assert done.ok() and (tmp_path / "copy").read_bytes() == (tmp_path / "source").read_bytes()


def test_hints_does_nothing_away_from_lustre(faulty):
    results, file = faulty("hints:striping_factor=4:striping_unit=1MiB")
    assert results["write"] == ["1000"] * 5 and results["close"] == ["None"]
    assert statistic(file, "hints", "striped") == statistic(file, "hints", "refused") == 0


@pytest.mark.parametrize("stack", ["bufa:1MiB:4", "gather:1MiB:4:always=1",
    "global:1MiB:2:always=1", "forward:4KiB:8:always=1", "keep:always=1", "cos:16"])
def test_a_limit_on_the_size_of_files_ends_no_program(weir, tmp_path, stack):
    """What layers share lies in files of their own, larger than what this program may write."""
    (tmp_path / "rules.toml").write_text(f'[[rule]]\nname = "limited"\nstack = "{stack}"\n')
    program = (
        "import os; fd = os.open('limited', os.O_RDWR | os.O_CREAT)\nfor i in range(2000): assert "
        "os.write(fd, b'x' * 16) == 16"
    )
    command = ["bash", "-c", 'ulimit -f 100; exec python3 -c "$0"', program]
    weir("run", "--rules", tmp_path / "rules.toml", "--", *command, cwd=tmp_path).ok()
    assert (tmp_path / "limited").stat().st_size == (32_768 if stack == "cos:16" else 32_000)
