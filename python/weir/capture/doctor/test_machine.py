# SPDX-License-Identifier: Apache-2.0
"""weir doctor without a program."""

from __future__ import annotations

import os

import pytest

from weir.capture.doctor import _machine, _software


def statuses(findings) -> list[tuple[str, str]]:
    return [(f.name, f.status) for f in findings]


@pytest.fixture
def plain_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OMPI_MCA_io", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("version", "status"),
    [
        ("2.1.1", "finding"),
        ("3.1.6", "finding"),
        ("4.0.7", "finding"),
        ("4.1.4", "finding"),
        ("4.1.6", "finding"),
        ("4.1.7", "note"),
        ("4.2.0", "note"),
        ("5.0.5", "finding"),
        ("5.0.6", "note"),
        ("5.1.0", "note"),
        ("6.0.0", "note"),
    ],
)
def test_open_mpi_versions_that_write_wrong_data_are_findings(plain_home, version, status):
    found = _software.ompio(version)
    assert found.status == status and "#12718" in found.text
    if status == "finding":
        assert f"OMPI_MCA_io=romio{'341' if version[0] == '5' else '321'}" in found.text


def test_choosing_romio_settles_it(plain_home, monkeypatch):
    monkeypatch.setenv("OMPI_MCA_io", "romio321")
    assert _software.ompio("4.1.4").status == "fine"
    monkeypatch.setenv("OMPI_MCA_io", "ompio")
    assert _software.ompio("4.1.4").status == "finding"
    monkeypatch.delenv("OMPI_MCA_io")
    (plain_home / ".openmpi").mkdir()
    (plain_home / ".openmpi" / "mca-params.conf").write_text(
        "# io = ompio\nbtl = self\nio = ^ompio\n")
    assert _software.ompio("4.1.4").status == "fine"


def fake(directory, name: str, says: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)


def test_versions_are_asked_of_the_commands(plain_home, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    fake(tmp_path, "mpirun", "mpirun (Open MPI) 5.0.7")
    fake(tmp_path, "srun", "slurm 23.11.4")
    fake(tmp_path, "gfortran", "another compiler 9.9")
    found = dict(_software.versions())
    assert (found["Open MPI"], found["Slurm"]) == ("5.0.7", "23.11.4")
    assert found["gfortran"] is None and found["MPICH"] is None and found["strace"] is None
    text = [f.text for f in _software.software()]
    assert "Slurm 23.11.4" in text and "MPICH is not installed" in text


def test_a_command_that_hangs_or_cannot_start_is_not_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "srun").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "broken").write_text("#!/nowhere\n")
    for name in ("srun", "broken"):
        (tmp_path / name).chmod(0o755)
    assert _software.ask(["srun", "--version"], timeout_s=0.2) == ""
    assert _software.ask(["broken"]) == ""


def test_the_library_is_tried_with_a_real_program():
    [found] = _machine.preload()
    assert found.status == "fine" and "libweir-preload.so works" in found.text


def test_a_library_that_is_missing_or_no_library_is_a_finding(monkeypatch, tmp_path):
    from weir import _native

    monkeypatch.setattr(_native, "library_directory", lambda: tmp_path)
    assert statuses(_machine.preload()) == [("preload", "finding")]
    (tmp_path / "libweir-preload.so").write_text("no library")
    [found] = _machine.preload()
    assert (
        found.status == "finding"
        and "left no trace" in found.text
        and "libweir-preload.so" in found.text
    )
    blank = tmp_path / "with blank"
    blank.mkdir()
    (blank / "libweir-preload.so").write_text("")
    monkeypatch.setattr(_native, "library_directory", lambda: blank)
    assert "blanks and colons" in _machine.preload()[0].text


def test_a_directory_that_can_be_written_is_fine_and_left_clean(tmp_path):
    found = _machine.trace_directory(str(tmp_path / "new" / "run"))
    assert found[0].status == "fine" and _machine.file_system_type(str(tmp_path)) in found[0].text
    assert list(tmp_path.iterdir()) == []


def test_memory_is_a_place_for_traces():
    if not os.path.isdir("/dev/shm"):
        pytest.skip("no /dev/shm")
    assert _machine.file_system_type("/dev/shm") == "tmpfs"
    assert statuses(_machine.trace_directory("/dev/shm/weir-run")) == [("trace_directory", "fine")]


def test_a_directory_that_cannot_be_written_is_a_finding():
    found = _machine.trace_directory("/proc/self/weir-run")
    assert statuses(found) == [("trace_directory",
        "finding")] and "choose another with -o" in found[0].text


@pytest.mark.parametrize(
    ("kind", "refusal", "names"),
    [
        ("ext4", 95, ["trace_directory", "trace_directory.allocate"]),
        ("lustre", 0, ["trace_directory", "trace_directory.network"]),
        ("nfs4", 95, ["trace_directory", "trace_directory.allocate", "trace_directory.network"]),
        ("fuse.sshfs", 0, ["trace_directory", "trace_directory.network"]),
    ],
)
def test_file_systems_that_cost_more_are_noted(monkeypatch, tmp_path, kind, refusal, names):
    monkeypatch.setattr(_machine, "file_system_type", lambda directory: kind)
    monkeypatch.setattr(_machine, "_allocate", lambda fd, size: refusal)
    found = _machine.trace_directory(str(tmp_path))
    assert [f.name for f in found] == names and {f.status for f in found[1:]} == {"note"}


def test_a_full_file_system_is_a_finding(monkeypatch, tmp_path):
    monkeypatch.setattr(_machine, "_allocate", lambda fd, size: 28)
    assert ("trace_directory.allocate", "finding") in statuses(_machine
        .trace_directory(str(tmp_path)))


def test_clock_and_kernel_figures_of_this_machine_are_said():
    assert _machine.clock()[0].status in ("fine", "note")
    assert statuses(_machine.kernel_figures()) == [("proc_io", "fine")]


def test_what_is_set_in_the_environment_is_said(monkeypatch):
    monkeypatch.delenv("WEIR_TRACE_DIR", raising=False)
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    assert _machine.present_environment() == []
    monkeypatch.setenv("WEIR_TRACE_DIR", "/run/a")
    monkeypatch.setenv("LD_PRELOAD", "/x.so")
    assert statuses(_machine.present_environment()) == [("ld_preload", "note"), ("tracing", "note")]
