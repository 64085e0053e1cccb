# SPDX-License-Identifier: Apache-2.0
"""Which libweir.so is taken, and what is said when none fits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import weir
from weir import output
from weir.output import _library, _mpi
from weir.output._errors import BY_CODE, OutputError, error_of

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("version", "mpi"),
    [
        ("Open MPI v4.1.4, package: Debian OpenMPI", "openmpi"),
        ("MPICH Version:      4.0.2\n", "mpich"),
        ("Intel(R) MPI Library 2021.9", "mpich"),
        ("Microsoft MPI 10.1", None),
    ],
)
def test_an_mpi_is_known_by_its_version(version, mpi):
    assert _library.mpi_of_version(version) == mpi


def test_an_mpi_without_library_is_reported(monkeypatch, tmp_path):
    monkeypatch.setattr(_library._native, "library_directory", lambda: tmp_path)
    monkeypatch.delenv("WEIR_OUTPUT_LIBRARIES", raising=False)
    (tmp_path / "mpich").mkdir()
    (tmp_path / "mpich" / "libweir.so").touch()
    with pytest.raises(weir.UsageError, match=r"runs with openmpi.*there is one for: mpich"):
        _library.library_path("openmpi")
    assert _library.library_path("mpich") == str(tmp_path / "mpich" / "libweir.so")


def test_the_launcher_chooses_without_mpi4py(monkeypatch):
    monkeypatch.delenv("PMI_RANK", raising=False)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    assert _library.choose_mpi() == "openmpi"
    monkeypatch.delenv("OMPI_COMM_WORLD_SIZE")
    monkeypatch.setenv("PMI_RANK", "0")
    assert _library.choose_mpi() == "mpich"


def test_a_launcher_of_another_mpi_is_reported(monkeypatch):
    monkeypatch.delenv("OMPI_COMM_WORLD_SIZE", raising=False)
    monkeypatch.setenv("PMI_SIZE", "4")
    with pytest.raises(weir.UsageError, match="mpich started 4 ranks, but mpi4py runs on openmpi"):
        _mpi._same_as_launcher("openmpi", 1)
    _mpi._same_as_launcher("mpich", 4)
    _mpi._same_as_launcher("openmpi", 4)


def test_every_code_has_its_exception():
    codes = {name: int(value) for name, value in re.findall(r"(WEIR_E_\w+)\s*=\s*(\d+)",
        (ROOT / "include/weir/status.h").read_text())}
    assert {kind.name: kind.code
        for kind in BY_CODE.values()} | {OutputError.name: OutputError.code} == codes
    assert type(error_of(12, "x")) is OutputError
    assert all(issubclass(kind, weir.Error) for kind in BY_CODE.values())
    assert [kind.__name__ for kind in BY_CODE.values() if getattr(output, kind.__name__,
        None) is not kind] == []


def test_every_function_that_is_called_is_declared_in_the_headers():
    headers = "".join(path.read_text() for path in (ROOT / "include" / "weir").glob("*.h"))
    assert [name for name in _library._CALLS if not re.search(rf"\b{name}\(", headers)] == []
