# SPDX-License-Identifier: Apache-2.0
"""The four cases on one machine: sizes, programs, rules, and which rows each table has.

Scale 1 keeps what makes the cases what they are: the size of a request (I, II, III) or the number
of pieces (IV), the size of the one file (III), the number of ranks of IV; it shortens files (I,
II), iterations and pieces (IV). docs/guide/nersc.md has the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

# 48 blocks of 4 KiB, the buffer that a sequential unformatted file had on the T3E: libgfortran is
# asked for the same.
FORTRAN_BUFFER = {"GFORTRAN_UNFORMATTED_BUFFER_SIZE": str(48 * 4096)}


@dataclass(frozen=True)
class Variant:
    """One row: how the program is run. ``stack``: None is plain, without the library; ``files``:
    pattern of the rule."""

    name: str
    stack: str | None
    arguments: tuple[object, ...]
    files: str = "*"
    once: bool = False  # takes so long that it runs in the first repetition alone
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """``setups`` run once, each with the stack it names; ``fresh``: files removed before each run,
    which writes them. ``check``: arguments of a run, on the backing directory, that reads what a
    row wrote."""

    number: str
    program: str
    ranks: int
    variants: tuple[Variant, ...]
    setups: tuple[Variant, ...] = ()
    setup_ranks: int = 4
    fresh: tuple[str, ...] = ()
    check: Callable[[str], Sequence[object]] | None = None
    file_bytes: int = 0  # of the one file that all ranks read, where there is one
    shape: str = ""


def case_one(ranks: int, scale: float) -> Case:
    megabytes, iterations, compute = max(0.4, 192 * scale), 2, 2.0 * min(1, scale)
    sizes = ("--megabytes", megabytes)
    run = (*sizes, "--iterations", iterations, "--compute", compute)

    def row(name: str, stack: str | None, directory: str) -> Variant:
        return Variant(name, stack, ("--dir", directory, *run), "integrals.*",
            environment=FORTRAN_BUFFER)

    def setup(stack: str | None, directory: str) -> Variant:
        return Variant("setup", stack, ("--setup", "--dir", directory, *sizes), "integrals.*",
            environment=FORTRAN_BUFFER)

    return Case(
        "I", "scf", ranks,
        variants=(row("none", None, "plain"), row("cos:48", "cos:48", "blocked"),
            row("bufa:256:2", "bufa:256:2", "plain")),
        setups=(setup(None, "plain"), setup("cos:48", "blocked")),
        setup_ranks=ranks,
        shape=f"{iterations} iterations, a file of {megabytes:g} MB for each rank",
    )  # fmt: skip


def case_two(ranks: int, scale: float) -> Case:
    planes = max(2 * ranks, round(512 * scale))
    ghost = max(1, planes // ranks // 4)
    sizes = ("--planes", planes, "--ghost", ghost)

    def row(name: str, stack: str | None) -> Variant:
        return Variant(name, stack, ("--file", "sections.dat", *sizes))

    return Case(
        "II", "overlap", ranks,
        variants=(row("none", None), row("global:128:2", "global:128:2")),
        setups=(Variant("setup", None, ("--setup", "--file", "sections.dat", *sizes)),),
        file_bytes=92 + 4 * planes * 84 * 84 * 8,
        shape=f"4 variables of {planes} planes of 56 KB, each rank reads {ghost} of its "
              f"neighbours'",
    )  # fmt: skip


def case_three(ranks: int, scale: float) -> Case:
    times = max(1, round(38 * min(scale, 1)))
    sizes = ("--times", times)
    rows = (("none", None), ("bufa:336:2", "bufa:336:2"), ("global:512:2", "global:512:2"))
    return Case(
        "III", "sharedread", ranks,
        variants=tuple(Variant(name, stack, ("--file", "climate.nc", *sizes))
            for name, stack in rows),
        setups=(Variant("setup", None, ("--setup", "--file", "climate.nc", *sizes)),),
        setup_ranks=1,
        file_bytes=times * 26 * 91 * 181 * 4,
        shape=f"a variable of {times * 26 * 91 * 181 * 4 / 1e6:.0f} MB in slabs of 66 KB",
    )  # fmt: skip


def case_four(ranks: int, scale: float) -> Case:
    rows = max(2 * ranks, round(8800 * scale))
    columns = 2000 if scale >= 0.25 else 200
    sizes = ("--rows", rows, "--columns", columns)

    def row(name: str, mode: str, stack: str | None = None, once: bool = False) -> Variant:
        return Variant(name, stack, ("--file", "matrix.dat", "--mode", mode, *sizes), once=once)

    return Case(
        "IV", "matrix", ranks,
        variants=(
            row("no view", "noview"),
            row("view", "view", once=True),
            row("view, collective", "collective"),
            row("global:512:2", "noview", "global:512:2"),
        ),
        fresh=("matrix.dat",),
        check=lambda directory: ("--file", f"{directory}/matrix.dat", "--verify", *sizes),
        file_bytes=rows * columns * 8,
        shape=f"{rows} x {columns} doubles, {columns} pieces of {rows // ranks * 8} bytes for each "
              f"rank",
    )  # fmt: skip


CASES: dict[str, Callable[[int, float], Case]] = {"I": case_one, "II": case_two, "III": case_three,
    "IV": case_four}
RANKS: dict[str, tuple[int, ...]] = {"I": (4,), "II": (8,), "III": (4, 16, 32, 64), "IV": (32,)}
