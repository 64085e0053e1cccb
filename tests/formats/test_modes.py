# SPDX-License-Identifier: Apache-2.0
"""Formats under the engine: the same file in every mode, byte by byte, and a second run over the
first one's files."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.any_mpi

RANKS = {"serial": 3, "collective": 3, "servers": 4, "servers+parallel": 5}


def contents(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return {str(p.relative_to(path)): p.read_bytes() for p in files}


@pytest.fixture
def run_model(mpi, native_build, root, tmp_path, execute):
    """``run_model(format, mode)`` runs tests/output/model.c and returns the path of what it wrote.
    """
    libraries = native_build / "lib" / mpi.name
    if not (libraries / "libweir.so").exists():
        pytest.skip(f"libweir is not built for {mpi.name}")
    flags = (f"-I{root / 'include'}", f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lweir")
    program = mpi.cc(root / "tests" / "output" / "model.c", *flags, name="model")

    def call(format: str, mode: str, name: str, compression: str) -> Path:
        servers = 2 if mode == "servers+parallel" else 1
        config = tmp_path / "output.toml"
        config.write_text(
            f'[output]\nmode = "{mode}"\ngroups = 1\nservers_per_group = {servers}\naggregators = '
            f'2\ntime_limit_s = 60\n'
            f'[stream.history]\ncompression = '
            f'"{compression}"\n[stream.history.hints]\nstriping_factor = "4"\n'
        )
        options = [f"format={format}", f"path={name}", "nx=90", "ny=40", "steps=3", "mean=1",
            "lonlat=1", "kind=scatter"]
        done = mpi.run(RANKS[mode], program, config, *options, timeout=120, cwd=tmp_path)
        assert done.returncode == 0 and "WEIR_E_" not in done.stdout, done.stdout + done.stderr
        return tmp_path / name

    return call


@pytest.mark.parametrize(("format", "compression"), [("cdf5", "none"), ("netcdf4", "zstd:1"),
    ("netcdf4", "none"), ("zarr", "zstd:1")])
def test_every_mode_writes_the_same_bytes(run_model, format, compression):
    first = contents(run_model(format, "serial", "serial", compression))
    assert sum(map(len, first.values())) > 30_000
    for mode in list(RANKS)[1:]:
        assert contents(run_model(format, mode, mode.replace("+", "-"), compression)) == first, mode


def test_a_second_run_replaces_the_store_of_the_first(run_model):
    before = contents(run_model("zarr", "collective", "store", "zstd:1"))
    path = run_model("zarr", "servers", "store", "zstd:1")
    assert contents(path) == before
    assert not list(path.parent.glob(".*part*"))
