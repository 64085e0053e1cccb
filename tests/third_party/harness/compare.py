# SPDX-License-Identifier: Apache-2.0
"""Compares a run with weir to the plain runs, and finds the declared cause of each difference."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from harness.model import HERE, Result


@dataclass(frozen=True)
class Difference:
    """An item that is not what it is in the plain run. cause: from differences.toml, "" if none is
    known."""

    suite: str
    mode: str
    item: str
    plain: str
    found: str
    cause: str = ""


@dataclass(frozen=True)
class Known:
    """A declared cause of the differences that its patterns match."""

    suite: str
    mode: str
    item: str
    cause: str

    def covers(self, suite: str, mode: str, item: str) -> bool:
        return (
            fnmatchcase(suite, self.suite)
            and fnmatchcase(mode, self.mode)
            and fnmatchcase(item, self.item)
        )


def read_known(path: Path = HERE / "differences.toml") -> list[Known]:
    return [Known(**entry) for entry in tomllib.loads(path.read_text()).get("difference", [])]


def _changed(one: Result, other: Result) -> set[str]:
    a, b = one.items(), other.items()
    return {item for item in a.keys() | b.keys() if a.get(item) != b.get(item)}


def unstable_items(plain_runs: Iterable[Result]) -> set[str]:
    """Items that differ between runs without weir: they say nothing about weir."""
    runs = list(plain_runs)
    return set().union(*(_changed(runs[0], run) for run in runs[1:])) if runs else set()


def find_differences(
    plain: Result, unstable: set[str], other: Result, known: Iterable[Known]
) -> list[Difference]:
    """The items of a run that are not those of the plain run, each with its cause if that is
    declared."""
    a, b = plain.items(), other.items()
    known = list(known)

    def cause(item: str) -> str:
        hits = (k.cause for k in known if k.covers(other.suite, other.mode, item))
        return next(hits, "")

    return [
        Difference(
            other.suite, other.mode, item, a.get(item, "absent"), b.get(item, "absent"), cause(item)
        )
        for item in sorted(_changed(plain, other) - unstable)
    ]


def read_open(path: Path = HERE / "differences.toml") -> list[dict[str, str]]:
    """What was seen outside of the runs of the table: suite, mode, seen."""
    return tomllib.loads(path.read_text()).get("open", [])
