# SPDX-License-Identifier: Apache-2.0
"""h5py of PyPI, with the tests that its package carries."""

from __future__ import annotations

from harness import parse
from harness.model import Step, Suite

_TESTS = ("test_file", "test_file2", "test_dataset", "test_group", "test_attrs", "test_vds",
    "test_h5f", "test_slicing")
_TESTS += ("test_datatype", "test_dimension_scales", "test_file_alignment", "test_file_image",
    "test_objects")


def _version(place):
    return next(place.python.parents[1]
        .glob("lib/*/site-packages/h5py-*.dist-info")).name.removesuffix(".dist-info")


def _steps(place):
    for test in _TESTS:
        target = ("--pyargs", f"h5py.tests.{'test_vds' if test == 'test_vds' else test}")
        environment = {"TMPDIR": str(place.work), "PYTHONDONTWRITEBYTECODE": "1"}
        command = (str(place.python), "-m", "pytest", *parse.PYTEST_OPTIONS, *target)
        yield Step(test, command, parse.pytest, environment)


SUITE = Suite(
    name="h5py",
    title="h5py's own tests of files, datasets, groups and attributes, with the HDF5 that its "
          "wheel carries",
    steps=_steps,
    version=_version,
    wheels=("h5py==3.16.0", "pytest>=8,<10"),
)
