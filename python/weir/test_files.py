# SPDX-License-Identifier: Apache-2.0
"""A file has its name when it is complete."""

from __future__ import annotations

import os

import pytest

from weir._files import complete_file


def test_a_file_is_replaced_at_the_end_alone(tmp_path):
    path = tmp_path / ("x" * 255)
    path.write_bytes(b"before")
    with complete_file(path) as stream:
        stream.write(b"after")
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"after" and os.listdir(tmp_path) == [path.name]


def test_what_is_not_complete_leaves_nothing(tmp_path):
    with pytest.raises(ValueError), complete_file(tmp_path / "x") as stream:
        stream.write(b"half")
        raise ValueError
    with pytest.raises(FileNotFoundError), complete_file(tmp_path / "no" / "x"):
        pass
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("permissions", "expected"),
    [(None, 0o640), (0o600, 0o600), (0o644, 0o644)])
def test_permissions_are_those_of_a_new_file_or_those_that_are_given(tmp_path, permissions,
        expected):
    before = os.umask(0o027)
    try:
        with complete_file(tmp_path / "x", permissions, sync=True):
            pass
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o7777 == expected


def test_a_device_is_written_to_as_it_is():
    with complete_file("/dev/null") as stream:
        stream.write(b"x")
    assert not os.path.isfile("/dev/null")


def test_an_open_descriptor_is_written_to_and_its_link_stays(tmp_path):
    """As /dev/stdout is, which leads to the file that the output goes to."""
    link = tmp_path / "stdout"
    with open(tmp_path / "output", "w+b") as output:
        link.symlink_to(f"/proc/self/fd/{output.fileno()}")
        with complete_file(link) as stream:
            stream.write(b"page")
        assert link.is_symlink() and output.read() == b"page"
