# SPDX-License-Identifier: Apache-2.0
"""netCDF4-python of PyPI, with the tests of its source package and the netCDF and HDF5 of its
wheel."""

from __future__ import annotations

from harness import parse
from harness.model import Step, Suite

_VERSION = "1.7.4"
# They need a server, or another program's plugins.
_LEFT_OUT = ("test_dap", "test_ncrc", "test_compression_blosc", "test_compression_bzip2",
    "test_compression_zstd")
_GROUPS = ("[a-c]", "[d-l]", "m", "[n-r]", "[s-z]")


def _steps(place):
    tests = place.downloads / "netCDF4" / "test"
    yield Step("inputs", ("cp", "-r", str(tests), "test"), prepare=True)
    yield Step("left out", ("rm", "-f", *(f"test/{name}.py" for name in _LEFT_OUT)), prepare=True)
    options = " ".join(parse.PYTEST_OPTIONS)
    environment = {"TMPDIR": str(place.work), "PYTHONDONTWRITEBYTECODE": "1", "NO_NET": "1"}
    for group in (*_GROUPS, "[A-Z]"):
        script = f"cd test && exec {place.python} -m pytest {options} test_{group}*.py"
        yield Step(f"test_{group}", ("bash", "-ec", script), parse.pytest, environment,
            time_limit_s=300)


SUITE = Suite(
    name="netcdf4-py",
    title="netCDF4-python's own tests, with the netCDF-C and HDF5 that its wheel carries",
    steps=_steps,
    version=lambda _: f"netCDF4 {_VERSION}",
    wheels=(f"netCDF4=={_VERSION}", "packaging", "pytest>=8,<10"),
    sdists=(f"netCDF4=={_VERSION}",),
)
