# SPDX-License-Identifier: Apache-2.0
"""Definitions that are wrong, or differ between ranks: every rank learns of them, and what exactly.
"""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.any_mpi

RANKS = 3
MISTAKES = {
    "none": ["fine"],
    "units": ["WEIR_E_ARGUMENT",
        "field 't', attribute 'units', value is 'K' on rank 0 and 'degC' on rank 2"],
    "outside": ["WEIR_E_DECOMPOSITION",
        "3 rows from 4 do not all lie in grid 'plane', which has 4 x 6 points", "rank 2"],
    "halo": ["WEIR_E_ARGUMENT", "decomposition 'rows': a halo is negative", "rank 2"],
    "doubled": ["WEIR_E_DECOMPOSITION", "rows", "12"],
    "missing": ["WEIR_E_DECOMPOSITION", "rows", "20"],
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_rank_gets_the_error(libweir, tmp_path, mistake):
    program = libweir.cc(libweir.root / "tests" / "faces" / "programs" / "differ.c")
    done = libweir.run(RANKS, program, mistake, cwd=tmp_path).ok()
    for rank in range(RANKS):
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"rank {rank}: ")]
        for words in MISTAKES[mistake]:
            assert words in line, done.stdout
    assert not (tmp_path / "differ.nc").exists() or mistake == "none"


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("[output]\nmode = 'server'\n", "o.toml:2:8: mode is 'server'; expected"),
        ("[stream.histroy]\n",
            "o.toml:1:1: stream 'histroy' is not defined by the program; did you mean 'history'?"),
        ("[output]\nmode = 'servers'\ngroups = 3\n", "servers"),
    ],
)
def test_a_wrong_configuration_is_reported_on_every_rank(libweir, tmp_path, config, says):
    (tmp_path / "o.toml").write_text(config)
    program = libweir.cc(libweir.root / "tests" / "faces" / "programs" / "differ.c")
    done = libweir.run(RANKS, program, "none", "o.toml", cwd=tmp_path).ok()
    lines = [line for line in done.stdout.splitlines() if "WEIR_E_CONFIG" in line and says in line]
    assert len(lines) == RANKS, done.stdout + done.stderr
