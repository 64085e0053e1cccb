# SPDX-License-Identifier: Apache-2.0
"""GRIB messages of files, found as any reader finds them: by their first bytes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

SECTION_0, PRODUCT = 16, 4


@dataclass(frozen=True)
class Message:
    step: int
    data: bytes

    def __repr__(self) -> str:
        """Category, number and level as template 4.0 has them, for messages."""
        at = _product(self.data)
        level = int.from_bytes(self.data[at + 24 : at + 28], "big")
        return (f"step {self.step} parameter {self.data[at + 9]}.{self.data[at + 10]} level {level} "
            f"({len(self.data)} bytes)")


def messages_of(path: Path) -> list[Message]:
    """Whole messages in order; what lies between them is left out."""
    data, found, at = path.read_bytes(), [], 0
    while (at := data.find(b"GRIB", at)) >= 0:
        length = int.from_bytes(data[at + 8 : at + SECTION_0], "big")
        one = data[at : at + length]
        if len(one) < SECTION_0 or len(one) != length or not one.endswith(b"7777"):
            at += 4
            continue
        found.append(Message(_step(one), one))
        at += length
    return found


def _product(message: bytes) -> int:
    """Where section 4 begins."""
    at = SECTION_0
    while message[at + 4] != PRODUCT:
        at += int.from_bytes(message[at : at + 4], "big")
    return at


def gaps_of(path: Path, messages: list[Message]) -> list[str]:
    """What lies between the whole messages, in the order of the file: torn ones, or holes."""
    data, at, found = path.read_bytes(), 0, []
    for one in messages:
        begin = data.index(one.data, at)
        if begin > at:
            found.append(f"{begin - at} bytes at {at}, {data[at:begin].count(0)} of them 0")
        at = begin + len(one.data)
    return found + ([f"{len(data) - at} bytes at the end"] if at < len(data) else [])


def _step(message: bytes) -> int:
    """The forecast time of template 4.0."""
    at = _product(message)
    return int.from_bytes(message[at + 18 : at + 22], "big")


@dataclass(frozen=True)
class Output:
    """The files of a run."""

    directory: Path

    def files(self) -> dict[str, list[Message]]:
        return {path.name: messages_of(path) for path in sorted(self.directory.glob("echam_*"))}

    def size(self) -> int:
        return sum(path.stat().st_size for path in self.directory.glob("echam_*"))

    def same_messages(self, other: Output) -> None:
        """Each file has the same set of messages; nothing else is in it; steps are in order."""
        mine, theirs = self.files(), other.files()
        assert mine.keys() == theirs.keys() and mine
        for name, found in mine.items():
            missing, more = (Counter(a) - Counter(b) for a, b in
                ((theirs[name], found), (found, theirs[name])))
            gaps = gaps_of(self.directory / name, found)
            assert not missing and not more and not gaps, (
                f"{name}: missing {dict(missing)}, too many {dict(more)}, between them {gaps}")
            assert sum(len(one.data) for one in found) == (self.directory / name).stat().st_size
            steps = [one.step for one in found]
            assert steps == sorted(steps), name


@pytest.fixture
def output(tmp_path):
    """``output("direct")``: an empty directory of this name in the test's."""

    def made(name: str) -> Output:
        (tmp_path / name).mkdir()
        return Output(tmp_path / name)

    return made
