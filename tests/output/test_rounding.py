# SPDX-License-Identifier: Apache-2.0
"""keep_bits and keep_information: what stays of each value, and of how many bytes. The estimate of
information is made here a second time, from the paper's formulas (Kloewer et al. 2021,
doi:10.1038/s43588-021-00156-2)."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from netCDF4 import Dataset

pytestmark = pytest.mark.any_mpi

MISSING = -9e9


def smooth(records: int, levels: int, ny: int, nx: int, noise: float, seed: int) -> np.ndarray:
    """Waves of many lengths, as weather has them, and an instrument's noise."""
    random = np.random.default_rng(seed)
    ky, kx = np.fft.fftfreq(ny)[:, None] * ny, np.fft.fftfreq(nx) * nx
    shape = (1 + kx**2 + ky**2) ** -1.2
    fields = np.fft.ifft2(np.fft.fft2(random.normal(size=(records, levels, ny, nx))) * shape).real
    fields /= fields.std(axis=(2, 3), keepdims=True)
    return 250 + 20 * fields + noise * random.normal(size=fields.shape)


def entropy(*chances: np.ndarray) -> np.ndarray:
    return -sum(np.where(p > 0, p * np.log2(np.where(p > 0, p, 1)), 0) for p in chances)


def information(words: np.ndarray, bits: int) -> np.ndarray:
    """Of each bit, the most significant first, between neighbours of the last dimension."""
    shifts = np.arange(bits - 1, -1, -1, dtype=words.dtype)
    first, second = ((part.ravel()[:, None] >> shifts & 1).astype(bool)
        for part in (words[..., :-1], words[..., 1:]))
    joint = [(first == a) & (second == b) for a in (False, True) for b in (False, True)]
    mutual = (entropy(first.mean(0), 1 - first.mean(0)) + entropy(second.mean(0),
        1 - second.mean(0)) - entropy(*(cell.mean(0) for cell in joint)))
    # the paper's limit for one coin, for as many as there are bits
    chance = np.array([bits * math.erfc(math.sqrt(max(0, m) * len(first) * math.log(2)))
        for m in mutual])
    return np.where((chance < 0.01) & (chance.min() < 1e-6), mutual, 0)


def leading_bits(words: np.ndarray, bits: int, share: float) -> int:
    sums = np.cumsum(information(words, bits))
    return int(np.argmax(sums >= share * sums[-1])) + 1


def exponent_of(bits: int, width: float) -> int:
    """Of the steps in which packed numbers of so many bits count the width."""
    return -int(np.floor(np.log2((2**bits - 1) / width)))


def rounded(values: np.ndarray, bits: int) -> np.ndarray:
    """To the nearest multiple of the last bit that stays, by arithmetic."""
    _, exponents = np.frexp(values)
    step = np.ldexp(1.0, exponents - 1 - bits)
    return (np.rint(values / step) * step).astype(values.dtype)


@pytest.fixture
def write(mpi, native_build, execute, tmp_path):
    """``write(values, more, format)``: the path of the file, and what the library printed."""
    libraries = native_build / "lib" / mpi.name
    if not (libraries / "libweir.so").exists():
        pytest.skip(f"libweir is not built for {mpi.name}")
    variable = "OMPI_COMM_WORLD_SIZE" if mpi.name == "openmpi" else "PMI_SIZE"
    env = {**mpi.env, "WEIR_OUTPUT_LIBRARIES": str(libraries.parent), variable: "1"}

    def call(values: np.ndarray, more: str, form: str = "netcdf4", name: str = "o",
            fails: bool = False) -> tuple[Path, str]:
        np.save(tmp_path / "values.npy", values)
        (tmp_path / "output.toml").write_text(
            f'[output]\nverbose = true\n[stream.history]\nformat = "{form}"\n{more}')
        done = execute([sys.executable, Path(__file__).parent / "round.py", "output.toml",
            "values.npy", name], cwd=tmp_path, env=env, timeout=120)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return tmp_path / name, done.stderr

    return call


def kept(printed: str) -> tuple[int, int]:
    least, most = re.search(r"field 't': .*, (\d+) to (\d+) bits kept", printed).groups()
    return int(least), int(most)


@pytest.mark.parametrize(("type", "bits"), [("f4", 5), ("f4", 11), ("f8", 9), ("f8", 30)])
def test_values_keep_so_many_bits(write, type, bits):
    values = smooth(2, 2, 30, 60, 0.1, 1).astype(type)
    values[0, 0, 3, 4:9] = MISSING
    values[1, 1, 0, 0] = 0
    path, printed = write(values, f'compression = "zstd:1"\nkeep_bits = {bits}\n')
    with Dataset(path) as file:
        file.set_auto_mask(False)
        there = file["t"][:]
    assert np.array_equal(there, np.where(values == values.dtype.type(MISSING), values,
        rounded(values, bits)))
    usual = values != values.dtype.type(MISSING)
    assert (np.abs(there - values)[usual] <= np.abs(values[usual]) * 2.0 ** -(bits + 1)).all()
    assert kept(printed) == (bits, bits)


@pytest.mark.parametrize(("type", "share", "noise"), [("f4", 0.99, 0.01), ("f4", 0.9, 0.01),
    ("f4", 0.99, 3), ("f8", 0.99, 1e-4)])
@pytest.mark.parametrize("form", ["netcdf4", "zarr"])
def test_bits_with_the_share_of_the_information_are_kept(write, form, type, share, noise):
    """A chunk is a level: the bits of each follow from its own values."""
    values = smooth(2, 2, 90, 180, noise, 7).astype(type)
    path, printed = write(values, f'compression = "zstd:1"\nkeep_information = {share}\n'
        '[[stream.history.field]]\nname = "t"\nchunk = [1, 90, 180]\n', form)
    width, mantissa = {"f4": (32, 23), "f8": (64, 52)}[type]
    words = values.view(f"u{width // 8}")
    if form == "zarr":
        import xarray

        there = xarray.open_zarr(path, decode_times=False)["t"].values
    else:
        with Dataset(path) as file:
            there = file["t"][:]
    expected = []
    for record in range(2):
        for level in range(2):
            leading = leading_bits(words[record, level], width, share)
            expected.append(leading - (width - mantissa))
            assert np.array_equal(there[record, level], rounded(values[record, level],
                expected[-1]))
    assert 1 <= min(expected) < mantissa - 2
    assert kept(printed) == (min(expected), max(expected))


def test_the_estimate_is_that_of_another_implementation():
    """It takes all values as one row, and divides by their number instead of that of pairs."""
    other = pytest.importorskip("bitinformation.analyser",
        reason="the package bitinformation is not installed")
    values = smooth(1, 1, 90, 180, 0.01, 3).astype("f4").ravel()
    there = other.BitInformationAnalyser().analyse(values)["bitinformation"]
    assert there == pytest.approx(information(values.view("u4"), 32), abs=1e-3)


def test_information_of_packed_numbers_decides_in_grib(write, tmp_path):
    """GRIB packs whole numbers of 24 bits first: their leading bits are counted and kept."""
    if shutil.which("grib_get") is None:
        pytest.skip("grib_get is not installed")
    values = smooth(2, 3, 90, 180, 0.5, 11).astype("f4")
    for packing in ("grid_simple", "grid_ccsds"):
        path, printed = write(values, "keep_information = 0.99\n"
            f'grib = {{ packingType = "{packing}" }}\n', "grib2", name=packing)
        text = subprocess.run(["grib_get", "-p", "bitsPerValue:i,binaryScaleFactor:i", path],
            capture_output=True, text=True, check=True).stdout
        expected = []
        for level in values.reshape(-1, 90, 180).astype("f8"):
            least = np.float32(level.min()).astype("f8")
            finest = int(np.floor(np.log2(np.abs(level).max()))) - 22  # of two steps of float32
            bits, exponent = 24, exponent_of(24, level.max() - least)
            if exponent < finest:
                bits -= finest - exponent
                exponent = exponent_of(bits, level.max() - least)
            words = np.floor((level - least) * 2.0**-exponent + 0.5).astype("u4")
            expected.append(leading_bits(words, bits, 0.99))
        assert [int(line.split()[0]) for line in text.splitlines()] == expected
        assert kept(printed) == (min(expected), max(expected)) and max(expected) < 16
        sizes = re.search(r"'t': (\S+) MB in (\S+) MB", printed).groups()
        assert float(sizes[0]) == pytest.approx(values.nbytes / 1e6, abs=1e-3)
        assert float(sizes[1]) == pytest.approx(path.stat().st_size / 1e6, abs=1e-3)


def test_a_field_that_is_the_same_everywhere_stays_as_it_is(write):
    values = np.full((1, 1, 30, 60), 273.15, "f4")
    path, printed = write(values, 'compression = "zstd:1"\nkeep_information = 0.99\n')
    with Dataset(path) as file:
        assert (file["t"][:] == values).all()
    assert kept(printed) == (23, 23)


@pytest.mark.parametrize(("form", "more"), [("netcdf4", 'compression = "zstd:1"\n'),
    ("grib2", "")])
def test_noise_is_not_rounded(write, form, more):
    """In GRIB it has as many of the 24 bits as its float32 have over their range."""
    values = 1 + np.random.default_rng(3).random((40, 1, 72, 144)).astype("f4")
    _, printed = write(values, f"{more}keep_information = 0.99\n", form)
    assert kept(printed)[0] >= 22


@pytest.mark.parametrize(("form", "type"), [("netcdf4", "f4"), ("netcdf4", "f8"), ("zarr", "f4")])
def test_what_is_no_usual_number_stays_and_denormal_ones_are_rounded(write, form, type):
    """NaN, infinity and missing values to the bit; denormal numbers within half of the last bit of
    the smallest normal one."""
    import xarray

    values = smooth(1, 1, 30, 60, 0.1, 1).astype(type)
    special = [np.nan, np.inf, -np.inf, MISSING, 0, -0.0]
    values[0, 0, 0, : len(special)] = special
    least = np.finfo(type).smallest_normal
    denormal = least * np.linspace(-1, 1, 60)
    values[0, 0, 1] = denormal
    path, printed = write(values, 'compression = "zstd:1"\nkeep_bits = 5\n', form)
    opened = xarray.open_zarr if form == "zarr" else xarray.open_dataset
    with opened(path, decode_times=False, mask_and_scale=False) as data:
        there = data["t"].values
    kept_bits = there[0, 0, 0, : len(special)]
    assert kept_bits.tobytes() == np.array(special, type).tobytes()
    assert (np.abs(there[0, 0, 1] - denormal) <= least * 2.0**-6).all()
    assert len(set(there[0, 0, 1])) > 32 and kept(printed) == (5, 5)


def test_small_numbers_are_packed_in_grib_and_none_is_infinite(write):
    """Denormal float32; NaN is a gap in the bitmap; infinity is refused."""
    values = (np.finfo("f4").smallest_normal * np.linspace(-1, 1, 288)).astype("f4").reshape(
        1, 1, 12, 24)
    values[0, 0, 0, 3] = np.nan
    path, _ = write(values, "", "grib2")
    if shutil.which("grib_get_data") is None:
        pytest.skip("grib_get_data is not installed")
    lines = subprocess.run(["grib_get_data", "-m", "nan", "-F", "%.9e", path], capture_output=True,
        text=True, check=True).stdout.splitlines()[1:]
    there = np.array([float(line.split()[2]) for line in lines])
    assert np.isnan(there).nonzero()[0].tolist() == [3]
    assert np.nanmax(np.abs(there - values.ravel())) < 1e-37
    values[0, 0, 5, 7] = np.inf
    _, printed = write(values, "", "grib2", fails=True)
    assert "it has infinite values, which GRIB cannot say; make them the missing value" in printed


def test_fewer_bits_make_smaller_files(write):
    values = smooth(1, 4, 180, 360, 0.01, 5).astype("f4")
    sizes = [write(values, f'compression = "{method}"\n{more}', name=f"{method}{more[:6]}"
        )[0].stat().st_size for method in ("zstd:1", "deflate:1")
        for more in ("", "keep_bits = 12\n", "keep_information = 0.99\n")]
    for plain, twelve, informative in (sizes[:3], sizes[3:]):
        assert informative < twelve < 0.75 * plain


@pytest.mark.parametrize(("more", "form", "says"), [
    ("keep_bits = 0", "netcdf4", "output.toml:5:13: keep_bits is '0'; expected bits of the "
     "mantissa that stay, 1 to 52"),
    ("keep_information = 1.5", "netcdf4", "keep_information is '1.5'; expected the share"),
    ('compression = "zstd:1"\nkeep_bits = 3\nkeep_information = 0.9', "netcdf4",
     "keep_bits and keep_information are both given"),
    ("keep_bits = 7", "netcdf4", "variable t is to be rounded (keep_bits, keep_information) but "
     "not compressed"),
    ("keep_bits = 7", "cdf5", "not compressed, which saves nothing; give its compression"),
    ("keep_bits = 7", "grib2", "keep_bits are bits of a mantissa, and GRIB packs whole numbers"),
    ('keep_information = 0.99\ngrib = { packingType = "grid_second_order" }', "grib2",
     "keep_information chooses the bits of grid_simple and grid_ccsds in edition 2"),
])
def test_what_cannot_be_rounded_is_refused_with_its_place(write, more, form, says):
    _, printed = write(smooth(1, 1, 12, 24, 1, 1).astype("f4"), more + "\n", form, fails=True)
    assert says in printed and re.search(r"output\.toml:\d+:\d+: ", printed), printed
