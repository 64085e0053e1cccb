# SPDX-License-Identifier: Apache-2.0
"""The tables of "Bad I/O and approaches to fixing it" (J. Carter, NERSC, on a Cray T3E), as they
were published."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """LOGIO requests, IOWAIT and MPP seconds; MB where the table has them."""

    requests: int
    io_wait_s: float
    mpp_s: float
    megabytes: float | None = None


@dataclass(frozen=True)
class Goal:
    """Requests must fall by this factor from one row to another; `bytes_of_file`: bytes moved must
    be those of the file."""

    base: str
    row: str
    factor: float
    ranks: int | None = None
    bytes_of_file: bool = False


TITLES = {
    "I": "each rank reads its own sequential unformatted file",
    "II": "all ranks read overlapping sections of one file by POSIX calls",
    "III": "all ranks read one netCDF file",
    "IV": "a matrix distributed over the ranks is written by MPI-IO",
}
ROWS: dict[str, dict[tuple[str, int | None], Row]] = {
    "I": {
        ("cos:48", None): Row(1736736, 43539, 222231, 333e3),
        ("bufa:256:2", None): Row(333400, 2779, 142892, 333e3),
    },
    "II": {
        ("none", None): Row(299632, 49327, 58626, 17e3),
        ("global:128:2", None): Row(44497, 992, 18103, 17e3),
    },
    "III": {
        ("bufa:336:2", 4): Row(214, 16, 21, 259),
        ("bufa:336:2", 16): Row(850, 252, 290, 1023),
        ("bufa:336:2", 32): Row(1698, 974, 1042, 2042),
        ("bufa:336:2", 64): Row(3394, 3835, 4023, 4079),
        ("global:512:2", 4): Row(45, 3, 17, 65),
        ("global:512:2", 16): Row(81, 2, 69, 65),
        ("global:512:2", 32): Row(129, 5, 177, 65),
        ("global:512:2", 64): Row(225, 5, 702, 65),
    },
    "IV": {
        ("no view", None): Row(64066, 30251, 39634),
        ("view, collective", None): Row(386, 3651, 6308),
        ("global:512:2", None): Row(668, 340, 4076),
    },
}
GOALS = {
    "I": Goal("cos:48", "bufa:256:2", 5.2),
    "II": Goal("none", "global:128:2", 6.7),
    "III": Goal("bufa:336:2", "global:512:2", 15, ranks=64, bytes_of_file=True),
    "IV": Goal("no view", "global:512:2", 96),
}
