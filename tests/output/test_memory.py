# SPDX-License-Identifier: Apache-2.0
"""A server's private memory stays within 48 MB and its budget while a step is many times the
budget."""

from __future__ import annotations

import re

import pytest
from netCDF4 import Dataset

pytestmark = pytest.mark.any_mpi

STEP = {"nx": 1000, "ny": 1000, "fields": 4}  # 16 MB a level
WAYS = [
    # mode, format, compression, budget in MiB, transport. A slab is a chunk, 4 MB, at least; of
    # Zarr a shard of thirteen of them; two are in work, and two more come on their way from ranks
    # of other nodes.
    ("servers", "cdf5", "none", 8, "two-sided"),
    ("servers", "netcdf4", "deflate:1", 8, "shared"),
    ("servers", "zarr", "zstd:1", 100, "shared"),
    ("servers+parallel", "cdf5", "none", 8, "shared"),
    ("servers+parallel", "netcdf4", "zstd:1", 16, "two-sided"),
    ("servers+parallel", "zarr", "zstd:1", 100, "shared"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "form", "compression", "budget", "transport"), WAYS)
def test_a_step_many_times_the_budget(model, mode, form, compression, budget, transport):
    config = model.directory / "output.toml"
    config.write_text(
        f'[output]\nservers_per_group = '
        f'{1 if mode == "servers" else 2}\n[stream.history]\ncompression = "{compression}"\n')
    env = {"WEIR_OUTPUT_CONFIG": config, "WEIR_OUTPUT_SERVER_MEMORY": f"{budget}MiB",
        "WEIR_OUTPUT_TRANSPORT": transport}
    levels = 25 if form == "zarr" else 16
    ranks = 5 if mode == "servers" else 6
    ran = model(ranks, mode, **env, **STEP, levels=levels, steps=1, usage=1, format=form,
        path="m.out").fine()
    peaks = [int(kib) * 1024 for kib in re.findall(r"at most (\d+) KiB", ran.done.stdout)]
    print(mode, form, transport, [round(peak / 1e6, 1) for peak in peaks], "MB")
    assert len(peaks) == ranks - 4
    assert 1_000_000 < max(peaks) <= 48_000_000 + (budget << 20) < levels * 16_000_000, peaks
    if form != "zarr":
        with Dataset(model.directory / "m.out") as file:
            assert file["f3"].shape == (1, 16, 1000, 1000)
            assert file["f3"][0, 15, 999, ::333].tolist() == [300000 + 150000 + (999000 + i) % 997
                for i in range(0, 1000, 333)]
            (model.directory / "m.out").unlink()
