# SPDX-License-Identifier: Apache-2.0
"""Striped files, made here byte by byte as the layer's page says, joined."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir._errors import InputError, NotThere, UsageError
from weir.stripe import join, read_index


def striped(directory, data: bytes, unit: int, count: int):
    pieces = [directory / f"piece{number}" for number in range(count)]
    parts = [bytearray() for _ in pieces]
    for at in range(0, len(data), unit):
        parts[at // unit % count] += data[at : at + unit]
    for piece, part in zip(pieces, parts):
        piece.write_bytes(part)
    index = directory / "out.nc"
    index.write_text("weir stripe 1\n" + f"unit_bytes {unit}\n" + "".join(f"piece {piece}\n"
        for piece in pieces))
    return index, pieces


@settings(max_examples=40)
@given(data=st.binary(max_size=200), unit=st.integers(1, 20), count=st.integers(2, 5))
def test_joined_is_what_was_striped(tmp_path_factory, data, unit, count):
    index, pieces = striped(tmp_path_factory.mktemp("striped"), data, unit, count)
    assert read_index(index).size() == len(data)
    assert join(index) == len(data)
    assert index.read_bytes() == data
    assert not any(piece.exists() for piece in pieces)


def test_under_another_name_everything_stays(tmp_path):
    index, pieces = striped(tmp_path, b"0123456789", 3, 2)
    assert join(index, tmp_path / "whole") == 10
    assert (tmp_path / "whole").read_bytes() == b"0123456789"
    assert read_index(index).pieces == tuple(pieces) and all(piece.exists() for piece in pieces)
    with pytest.raises(UsageError, match="exists already"):
        join(index, tmp_path / "whole")
    join(index, tmp_path / "again", remove=True)
    assert not index.exists() and not any(piece.exists() for piece in pieces)


def test_a_hole_at_the_end_of_a_piece_is_zeros(tmp_path):
    index, pieces = striped(tmp_path, b"a" * 12, 2, 2)
    pieces[0].write_bytes(b"aa")
    join(index)
    assert index.read_bytes() == b"aaaa" + b"\0\0aa" * 2


@pytest.mark.parametrize(
    "text", ["", "CDF", "weir stripe 1\n", "weir stripe 1\nunit_bytes 0\n",
        "weir stripe 1\nunit_bytes 4\npiece /a\n", "weir stripe 1\nelse 3\n"]
)
def test_what_is_no_index_is_refused(tmp_path, text):
    (tmp_path / "file").write_text(text)
    with pytest.raises(InputError, match="file"):
        join(tmp_path / "file")
    assert (tmp_path / "file").read_text() == text


def test_a_missing_piece_is_named_and_nothing_is_written(tmp_path):
    index, pieces = striped(tmp_path, b"0123456789", 3, 2)
    pieces[1].unlink()
    with pytest.raises(NotThere, match="piece1"):
        join(index)
    assert read_index(index).unit_bytes == 3
