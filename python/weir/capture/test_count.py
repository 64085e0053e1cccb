# SPDX-License-Identifier: Apache-2.0
"""Counting processes and records of a trace, damaged ones included."""

from __future__ import annotations

import struct

import pytest

from weir.capture._count import Count, count_traces

PAGE = 4096


def chunk(kind: int, used: int, body: bytes = b"", pages: int = 1,
        magic: int = 0x4B484357) -> bytes:
    head = struct.pack("<IIQIIIIQQQQ", magic, kind, pages * PAGE, 1, 1, 0, 0, used, 0, 0, 0)
    return (head + body).ljust(max(pages, 1) * PAGE, b"\0")


def counter(calls: int) -> bytes:
    return struct.pack("<IBBBBQ", 1, 6, 1, 0, 0, calls).ljust(64, b"\0")


def histogram() -> bytes:
    """With bins that read as a counter's calls, were they taken for one."""
    return struct.pack("<IBBBB", 0, 6, 1, 0, 1).ljust(64, b"\0") + struct.pack("<72Q", *[9] * 72)


def wide_counter(calls: int) -> bytes:
    return counter(calls) + struct.pack("<72Q", *[9] * 72)


def records(number: int) -> bytes:
    return struct.pack("<QIIQIBBBB", 1, 1, 1, 0, 1, 6, 1, 0, 0) * number


HEADER = struct.pack("<8sI", b"WEIRTRC1", 2).ljust(PAGE, b"\0")
HEADER_1 = struct.pack("<8sI", b"WEIRTRC1", 1).ljust(PAGE, b"\0")


def process(pid: int, rank: int, program: bytes = b"model") -> bytes:
    begin = struct.pack("<IIi", pid, 1, rank).ljust(144 - 64, b"\0") + struct.pack("<Q", 7)
    return chunk(1, 1, begin.ljust(256 - 64, b"\0") + b"/bin/" + program)


PROCESS, RANK, LAUNCHER = process(20, -1), process(21, 3), process(22, -1, b"mpirun")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (HEADER, Count(nodes=1)),
        (HEADER + PROCESS, Count(1, 1, 0, 0, 7)),
        (HEADER + RANK + PROCESS, Count(1, 2, 0, 0, 14, ranks=1)),
        (HEADER + PROCESS + PROCESS, Count(1, 1, 0, 0, 14)),  # one program executes another
        (HEADER + LAUNCHER + RANK, Count(1, 1, 0, 0, 14, ranks=1, launchers=1)),
        (HEADER + LAUNCHER, Count(1, 1, 0, 0, 7, launchers=1)),
        (HEADER + PROCESS + chunk(3, 5, records(5)) + chunk(3, 126, records(126)),
            Count(1, 1, 131, 0, 7)),
        # taken, not written
        (HEADER + chunk(3, 126, records(77)) + chunk(3, 126) + chunk(3, 126, records(1)),
            Count(1, 0, 78)),
        (HEADER + chunk(4, 2, counter(3) + counter(40) + counter(500)), Count(1, 0, 0, 43)),
        (HEADER + chunk(4, 22, histogram() + counter(3) + histogram() + counter(40) + counter(500)),
            Count(1, 0, 0, 43)),
        # no room for the histogram
        (HEADER + chunk(4, 5, counter(3) + histogram()), Count(1, 0, 0, 3)),
        (HEADER_1 + chunk(4, 2, wide_counter(3) + wide_counter(40) + wide_counter(500)),
            Count(1, 0, 0, 43)),
        (HEADER + bytes(3 * PAGE) + PROCESS, Count(1, 1, 0, 0, 7)),  # space taken and never used
        # a count no chunk can hold
        (HEADER + chunk(3, 2**63, records(126)) + chunk(3, 1, records(1)), Count(1, 0, 127)),
        (HEADER + chunk(3, 4, records(4), pages=2)[:PAGE], Count(1, 0, 4)),  # cut in a chunk
        (HEADER + PROCESS[:100], Count(1)),
        (HEADER + chunk(3, 9, magic=1) + PROCESS, Count(1, 1, 0, 0, 7)),
        # a size that leads nowhere
        (HEADER + chunk(3, 9, pages=0) + PROCESS, Count(1, 1, 0, 0, 7)),
        (b"", Count()),
        (b"no trace".ljust(2 * PAGE), Count()),
    ],
)
def test_what_is_whole_is_counted(tmp_path, content, expected):
    path = tmp_path / "n.weir"
    path.write_bytes(content)
    assert count_traces([str(path)]) == expected


def test_nodes_are_added_and_missing_files_are_nothing(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(HEADER + PROCESS + chunk(3, 5, records(5)))
    assert count_traces([str(tmp_path / n) for n in ("a", "b", "c")]) == Count(2, 2, 10, 0, 14)
