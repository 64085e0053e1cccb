# SPDX-License-Identifier: Apache-2.0
"""The shallow-water model: what its equations conserve, what theory says of its jets, and that
ranks do not matter."""

from __future__ import annotations

import math
import re
from functools import cache

import pytest
from wall_sums import splits_of

pytestmark = [pytest.mark.mpi, pytest.mark.any_mpi]
LINE = re.compile(r"^(nest )?step=(\d+) mass= *(\S+) energy= *(\S+) eddy= *(\S+)$", re.M)
JET = (
    "&grid nx=24, ny=24, dx=120000, dy=120000 / &physics case='jet', beta=1.6e-11 / &run dt=240, "
    "steps=400 /"
)
# A jet of sech^2 form: 6.98 widths around are one wave of the fastest growing length.
BICKLEY = """&grid nx=32, ny=80, dx=21816, dy=20000 /
&physics case='instability', depth=1000, f0=1e-5, speed=10, width=100000, perturbation=0.1 /
&run dt=120, steps=1600, report_every=800 /"""
NEST = """&grid nx=64, ny=80, dx=21816, dy=20000 /
&physics case='instability', depth=1000, f0=1e-5, speed=10, width=100000, perturbation=0.5, wavenumber=2 /
&run dt=100, steps=16 / &nest i0=20, j0=28, ni=24, nj=24 /"""


@pytest.fixture
def model(case, tmp_path):
    @cache
    def lines(ranks: int, text: str) -> list[tuple[str, ...]]:
        (tmp_path / "case.nml").write_text(re.sub(r" / &", " /\n&", text) + "\n")
        return LINE.findall(case.start("shallow_water", ranks, tmp_path / "case.nml").ok().stdout)

    def run(ranks: int, text: str, nest: bool = False) -> list[tuple[int, float, float, float]]:
        """Steps with mass, energy and energy of the meridional wind, of the channel or the nest."""
        return [(int(step), *map(float, values)) for which, step, *values in lines(ranks,
            text) if bool(which) == nest]

    return run


def test_a_balanced_jet_stays_and_mass_and_energy_with_it(model):
    (_, mass, energy, _), (_, mass_after, energy_after, eddy) = model(1, JET)
    assert abs(mass_after / mass - 1) < 1e-13
    assert abs(energy_after / energy - 1) < 1e-11
    assert eddy < 1e-20 * energy


def test_its_wall_time_is_split_to_the_nanosecond(case, mpi, weir, tmp_path):
    text = JET.replace("steps=400", "steps=20") + " &output history_every=5, layers=4 /"
    (tmp_path / "case.nml").write_text(re.sub(r" / &", " /\n&", text) + "\n")
    command = mpi.launch(3, case.program("shallow_water"), tmp_path / "case.nml")
    weir("trace", "--quiet", "-o", "run", "--", *command, cwd=tmp_path, env=mpi.env).ok()
    [wall] = splits_of(tmp_path / "run")
    assert len(wall.locations) == 3 and (wall.of_ranks.computing_ns > 0).all()


def test_energy_that_is_lost_falls_with_the_time_step(model):
    def lost(dt: int) -> float:
        text = JET.replace("steps=400", f"steps={24000 // dt}").replace("dt=240", f"dt={dt}")
        rows = model(1, text.replace("beta=1.6e-11", "perturbation=10, wavenumber=3"))
        return abs(rows[-1][2] / rows[0][2] - 1)

    coarse, fine = lost(480), lost(240)
    assert coarse > 8 * fine > 0, (coarse, fine)


def test_a_bickley_jet_grows_as_linear_theory_says(model):
    (first, *_, a), (last, *_, b) = model(1, BICKLEY)[1:]
    rate = 0.5 * math.log(b / a) / ((last - first) * 120) * 100000 / 10
    # 0.155 here, 0.160 with cells of half the size
    assert rate == pytest.approx(0.1606, rel=0.06), rate


def test_sums_do_not_depend_on_the_ranks(model):
    text = NEST.replace("steps=16", "steps=8")
    one = model(1, text), model(1, text, nest=True)
    four = model(4, text), model(4, text, nest=True)
    assert [row[0] for row in one[0]] == [row[0] for row in one[1]] == [0, 8]
    for alone, together in zip(one[0] + one[1], four[0] + four[1], strict=True):
        assert together == pytest.approx(alone, rel=1e-13)


def test_a_nest_follows_its_parent(model):
    rows = model(2, NEST, nest=True)
    assert [r[0] for r in rows] == [0, 16]
    assert rows[1][1] == pytest.approx(rows[0][1], rel=1e-4)
    assert 0.2 < rows[1][3] / rows[0][3] < 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("&grid nx=2 /", "nx and ny must be 4 or more"),
        ("&physics case='storm' /", "case must be jet, instability or rest, not storm"),
        ("&grid nx=many /", "case.nml:"),
        ("&nest i0=90, j0=3, ni=10, nj=10 /",
            "the nest must lie 3 cells or more inside of the domain"),
    ],
)
def test_a_wrong_namelist_is_named(case, tmp_path, text, said):
    (tmp_path / "case.nml").write_text(text + "\n")
    run = case.start("shallow_water", 1, tmp_path / "case.nml")
    assert run.returncode != 0
    assert said in run.stderr


WRITING = """&grid nx=48, ny=36, dx=21816, dy=20000 /
&physics case='instability', depth=1000, f0=1e-5, speed=10, width=100000, perturbation=0.5, wavenumber=2 /
&run dt=100, steps={steps}{more} /
&output history_every=4, restart_every=6, statistics=.true., directory='{directory}', config='{config}' /
&nest i0=16, j0=10, ni=16, nj=14 /"""
# ranks of the model, servers
MODES = {"serial": (1, 0), "collective": (3, 0), "servers": (2, 1), "servers+parallel": (2, 2)}


@pytest.fixture
def writing(case, tmp_path):
    def run(name: str, mode: str, steps: int = 12, more: str = "") -> dict[str, bytes]:
        """The files of a run, by name."""
        model, servers = MODES[mode]
        directory, config = tmp_path / name, tmp_path / f"{name}.toml"
        config.write_text(
            f'[output]\nmode = "{mode}"\ngroups = 1\nservers_per_group = {max(servers, 1)}\n')
        (tmp_path / f"{name}.nml").write_text(WRITING.format(steps=steps, more=more,
            directory=directory, config=config) + "\n")
        said = case.start("shallow_water", model + servers, tmp_path / f"{name}.nml").ok().stdout
        assert re.search(r"^output: put_s=.* percent=\S+$", said, re.M), said
        return {f.name: f.read_bytes() for f in sorted(directory.iterdir())}

    return run


def test_all_modes_and_numbers_of_ranks_write_the_same_bytes(writing):
    serial = writing("serial", "serial")
    restarts = [f"restart.20000101T00{minutes}000.nc" for minutes in range(3)]
    assert set(serial) == {nest + name for nest in ("", "nest_")
        for name in ("history.nc", "statistics.nc", *restarts)}
    for mode in ("collective", "servers", "servers+parallel"):
        assert writing(mode, mode) == serial, mode


def test_a_run_begun_again_with_other_ranks_goes_on_to_the_last_bit(writing, tmp_path):
    whole = writing("whole", "serial")
    begin = tmp_path / "whole" / "restart.20000101T001000.nc"
    again = writing("again", "collective", steps=6, more=f", first_step=6, restart_from='{begin}'")
    for name in ("restart.20000101T002000.nc", "nest_restart.20000101T002000.nc"):
        assert again[name] == whole[name]
