# SPDX-License-Identifier: Apache-2.0
"""weir doctor, as a user calls it."""

from __future__ import annotations

import json

HELLO = '#include <stdio.h>\nint main(void){puts("x");return 0;}\n'


def test_the_machine_is_described_line_by_line(weir, tmp_path):
    done = weir("doctor", "-o", tmp_path / "run", env={"OMPI_MCA_io": "romio321"}).ok()
    assert (
        "libweir-preload.so works" in done.stdout
        and f"{tmp_path}/run: traces can be written here" in done.stdout
    )
    assert {line.split()[0] for line in done.stdout.splitlines()} <= {"fine", "note"}
    assert "not seen: static and setuid programs" in done.stdout and done.stderr == ""


def test_findings_give_status_1(weir):
    done = weir("doctor", "--output", "/proc/self/run")
    assert done.returncode == 1 and "no trace can be written here" in done.stdout


def test_json_of_the_machine(weir, tmp_path):
    data = json.loads(weir("doctor", "--json", "-o", tmp_path, env={"OMPI_MCA_io": "romio321"})
        .ok().stdout)
    assert data["program"] is None and data["ok"] is True
    names = {f["name"] for f in data["findings"]}
    assert {"preload", "clock", "proc_io", "trace_directory", "seen", "unseen",
        "software.Slurm"} <= names
    assert all(set(f) == {"name", "status", "text"} for f in data["findings"])


def test_a_program_is_described(weir, cc):
    fine, static = cc(HELLO), cc(HELLO, "-static", name="static")
    assert "dynamically linked" in weir("doctor", fine).ok().stdout
    done = weir("doctor", static)
    assert done.returncode == 1 and "finding  statically linked: not seen at all" in done.stdout
    data = json.loads(weir("doctor", "--json", static).stdout)
    assert data["program"] == str(static) and data["ok"] is False


def test_a_program_that_is_not_there_is_bad_input(weir):
    done = weir("doctor", "no-such-program")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "weir: no-such-program: not found in PATH; name the file with its directory, for example "
        "./no-such-program\n"
    )
